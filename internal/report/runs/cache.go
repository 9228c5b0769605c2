package runs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"prony.example/internal/base/files"
	"prony.example/internal/report/history"
	"prony.example/record"
)

// cacheFile has a line for each run that was read, below record.Kept of the folder. A line is the
// CRC-32 of the rest, a space and JSON. The first line has the version of the format and of the
// program. Changed runs are appended: the last line of a run counts. Several programs may append;
// each replaces the file only by a complete one.
const cacheFile = "runs.ndjson"

// cacheVersion is the version of the file's format.
const cacheVersion = 6

// maxCacheLine bounds a line, in bytes: entries have some kB.
const maxCacheLine = 4 << 20

// slack is the number of bytes of outdated lines that the file may have in any case.
const slack = 1 << 20

// cache is the file of a shelf.
type cache struct {
	loaded   bool
	disabled bool     // it is not written
	file     *os.File // for reading; nil without one
	size     int64
	shapes   history.Shapes // in the file, or to be written with the next runs
	fresh    []string       // of these, the ones to be written
	unsent   []*item        // runs to be written
}

// place is the place of a line in a file, which stays readable if another one has replaced it.
type place struct {
	file   *os.File
	offset int64
	size   int32
}

// cacheLine is a line: the head, a shape or a run.
type cacheLine struct {
	Version int    `json:"version,omitempty"`
	Program string `json:"program,omitempty"`

	Shape string          `json:"shape,omitempty"`
	Form  json.RawMessage `json:"form,omitempty"`

	ID      string          `json:"id,omitempty"`
	Stamps  *[4]Stamp       `json:"stamps,omitempty"`
	Problem string          `json:"problem,omitempty"`
	Entry   json.RawMessage `json:"entry,omitempty"`
	Past    json.RawMessage `json:"past,omitempty"`
	// Ended is the stamp of the progress file, if that says that the run has ended.
	Ended Stamp `json:"ended,omitzero"`
}

// sealed returns a line with its checksum.
func sealed(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(b), b), nil
}

// unsealed parses a line and reports whether it is whole.
func unsealed(line []byte) (l cacheLine, ok bool) {
	sum, b, cut := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if !cut || err != nil || uint32(want) != crc32.ChecksumIEEE(b) ||
		json.Unmarshal(b, &l) != nil {
		return cacheLine{}, false
	}
	return l, true
}

// load reads the cache once. A cache of another version, or a damaged line, counts as missing.
func (s *Shelf) load() {
	s.saving.Lock()
	defer s.saving.Unlock()
	if s.cache.loaded {
		return
	}
	s.cache.loaded, s.cache.shapes = true, history.Shapes{}
	s.cache.disabled = s.options.Program == ""
	known := map[string]*item{}
	if f := s.openCache(); f != nil {
		if info, err := f.Stat(); err == nil {
			s.cache.file, s.cache.size = f, info.Size()
			s.loadLines(f, info.Size(), known)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.order = known, nil
}

// openCache opens the file for reading; nil if there is none of this version and program.
func (s *Shelf) openCache() *os.File {
	dir := filepath.Join(s.dir, record.Kept)
	if s.options.Program == "" || !isFolder(dir) {
		return nil
	}
	f, err := OpenIn(dir, cacheFile)
	if err != nil {
		return nil
	}
	line, err := bufio.NewReader(f).ReadBytes('\n')
	head, ok := unsealed(line)
	if err != nil || !ok || head.Version != cacheVersion || head.Program != s.options.Program {
		_ = f.Close() // nothing was written
		return nil
	}
	return f
}

// loadLines reads the lines of a file, on as many cores as the program may use.
func (s *Shelf) loadLines(f *os.File, size int64, known map[string]*item) {
	parts := int64(runtime.GOMAXPROCS(0))
	parsed := make([]map[string]*item, parts)
	var mu sync.Mutex
	var all errgroup.Group
	for i := range parts {
		parsed[i] = map[string]*item{}
		all.Go(func() error {
			eachLine(f, size*i/parts, size*(i+1)/parts, size, func(line []byte, offset int64) {
				l, ok := unsealed(line)
				switch {
				case ok && l.Shape != "":
					mu.Lock()
					defer mu.Unlock()
					s.cache.shapes.Add(l.Shape, l.Form)
				case ok && l.ID != "" && l.Stamps != nil:
					if run, ok := itemOf(l); ok {
						run.entry.State = s.state(run.entry, run.progress)
						run.place = place{f, offset, int32(len(line))}
						parsed[i][l.ID] = run
					}
				}
			})
			return nil
		})
	}
	_ = all.Wait() // a line that cannot be read is a run that is read again
	for _, part := range parsed {
		maps.Copy(known, part)
	}
}

// eachLine calls use for the lines of a file that begin within a part of it.
func eachLine(f io.ReaderAt, from, to, size int64, use func(line []byte, offset int64)) {
	offset := max(0, from-1) // the line that begins at from has a line feed before it
	r := bufio.NewReaderSize(io.NewSectionReader(f, offset, size-offset), 1<<16)
	var line []byte
	for skip := from > 0; offset < to; skip = false {
		line = line[:0]
		b, err := r.ReadSlice('\n')
		n := int64(len(b))
		for line = append(line, b...); errors.Is(err, bufio.ErrBufferFull); {
			b, err = r.ReadSlice('\n')
			if n += int64(len(b)); n <= maxCacheLine {
				line = append(line, b...)
			}
		}
		if err != nil {
			return // a line without an end is being written
		}
		if !skip && n <= maxCacheLine {
			use(line, offset)
		}
		offset += n
	}
}

// itemOf returns the item of a line, without what is left in the file.
func itemOf(l cacheLine) (*item, bool) {
	run := &item{id: l.ID, stamps: *l.Stamps, problem: l.Problem}
	if run.problem == "" && json.Unmarshal(l.Entry, &run.entry) != nil {
		return nil, false
	}
	run.entry = run.entry.brief()
	if l.Ended != (Stamp{}) {
		run.progress = progress{stamp: l.Ended, ended: true}
	}
	return run, true
}

// lineOf returns the complete line of an item; false if it is lost.
func lineOf(run *item) (cacheLine, bool) {
	if run.line != nil {
		return unsealed(run.line)
	}
	if run.place.file == nil {
		return cacheLine{}, false
	}
	b := make([]byte, run.place.size)
	if _, err := run.place.file.ReadAt(b, run.place.offset); err != nil {
		return cacheLine{}, false
	}
	l, ok := unsealed(b)
	return l, ok && l.ID == run.id
}

// keep puts a run that was read on the list of those to be written, with its shapes.
func (s *Shelf) keep(run *item, shapes history.Shapes) {
	s.saving.Lock()
	defer s.saving.Unlock()
	c := &s.cache
	for _, name := range shapes.Names() {
		if c.shapes.Text(name) == nil {
			c.shapes.Add(name, shapes.Text(name))
			c.fresh = append(c.fresh, name)
		}
	}
	c.unsent = append(c.unsent, run)
	if len(c.unsent) >= maxUnsent {
		s.save()
	}
}

// maxUnsent is the number of runs after which they are written, so that a first reading of many
// runs can be interrupted, and needs little memory.
const maxUnsent = 500

// save writes the runs that were read; the caller holds saving. If that fails, the cache is not
// written again, which only costs time.
func (s *Shelf) save() {
	c := &s.cache
	if len(c.unsent) == 0 {
		return
	}
	if !c.disabled && !s.send() {
		c.disabled = true
	}
	if c.disabled && !s.options.Pasts {
		s.move(func(run *item, _ int) { run.line = nil })
	}
	c.unsent = nil
}

// move changes the runs to be written, except those that have changed since.
func (s *Shelf) move(change func(run *item, index int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, run := range s.cache.unsent {
		if s.known[run.id] == run {
			moved := *run
			change(&moved, i)
			s.known[run.id] = &moved
		}
	}
	s.order = nil
}

// send appends the runs to the file, which it creates if there is none of this program.
func (s *Shelf) send() bool {
	c, dir := &s.cache, filepath.Join(s.dir, record.Kept)
	if record.Keep(dir) != nil || !isFolder(dir) {
		return false
	}
	path := filepath.Join(dir, cacheFile)
	f := s.openCache()
	if f == nil {
		head, err := sealed(cacheLine{Version: cacheVersion, Program: s.options.Program})
		if err != nil || files.Put(path, head) != nil {
			return false
		}
		if f = s.openCache(); f == nil {
			return false
		}
	}
	if sameFile(f, c.file) {
		_ = f.Close() // nothing was written
	} else { // it may have none of the shapes
		c.file, c.fresh = f, c.shapes.Names()
	}
	return s.add(path)
}

// sameFile reports whether two open files are one.
func sameFile(f, g *os.File) bool {
	if f == nil || g == nil {
		return false
	}
	a, err1 := f.Stat()
	b, err2 := g.Stat()
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// add appends the runs to the file, in one write, so that lines of several programs do not mix.
func (s *Shelf) add(path string) bool {
	c := &s.cache
	text := []byte("\n") // ends a line that another program left incomplete
	for _, name := range c.fresh {
		line, err := sealed(cacheLine{Shape: name, Form: c.shapes.Text(name)})
		if err != nil {
			return false
		}
		text = append(text, line...)
	}
	begin := make([]int64, len(c.unsent))
	for i, run := range c.unsent {
		begin[i] = int64(len(text))
		text = append(text, run.line...)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // a lost line is a run that is read again
	if !sameFile(f, c.file) {        // just replaced
		return false
	}
	if _, err := f.Write(text); err != nil {
		return false
	}
	end, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return false
	}
	c.size, c.fresh = end, nil
	s.move(func(run *item, i int) {
		run.place = place{c.file, end - int64(len(text)) + begin[i], int32(len(run.line))}
		run.line = nil
	})
	return true
}

// settle writes what is left, and a new file if most of the old one is outdated.
func (s *Shelf) settle() {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.save()
	c := &s.cache
	s.mu.Lock()
	used := int64(0)
	live := make([]*item, 0, len(s.known))
	for _, run := range s.known {
		if run.place.file == nil {
			s.mu.Unlock()
			return // it could not be written
		}
		used += int64(run.place.size)
		live = append(live, run)
	}
	s.mu.Unlock()
	if c.file == nil || c.size <= 2*used+slack {
		return
	}
	err := files.Write(filepath.Join(s.dir, record.Kept, cacheFile), func(w io.Writer) error {
		return s.rewrite(w, live)
	})
	f := s.openCache()
	if err != nil || f == nil {
		return
	}
	if info, err := f.Stat(); err == nil {
		again := map[string]*item{}
		s.loadLines(f, info.Size(), again)
		s.replace(live, again)
		c.file, c.size = f, info.Size()
	}
}

// rewrite writes a complete file of some runs.
func (s *Shelf) rewrite(w io.Writer, live []*item) error {
	lines := []cacheLine{{Version: cacheVersion, Program: s.options.Program}}
	for _, name := range s.cache.shapes.Names() {
		lines = append(lines, cacheLine{Shape: name, Form: s.cache.shapes.Text(name)})
	}
	put := func(l cacheLine) error {
		b, err := sealed(l)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
	for _, l := range lines {
		if err := put(l); err != nil {
			return err
		}
	}
	slices.SortFunc(live, func(a, b *item) int { return newest(a.entry, b.entry) })
	for _, run := range live {
		if l, ok := lineOf(run); ok {
			if err := put(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace makes items refer to a new file, if they have not changed since it was written.
func (s *Shelf) replace(live []*item, again map[string]*item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, run := range live {
		if next := again[run.id]; next != nil && s.known[run.id] == run {
			moved := *run
			moved.place = next.place
			s.known[run.id] = &moved
		}
	}
	s.order = nil
}
