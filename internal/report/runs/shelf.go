// Package runs lists the runs below a folder: their subjects, how their trials ended and how their
// targets rank. It reads the records of a run once and caches the results until the records change,
// so that it lists a hundred thousand runs quickly.
//
//	s, err := runs.Open("results", runs.Options{})
//	index, err := s.List(ctx)
//
// A run is identified only by the name of its folder: callers pass no paths, links are not
// followed, and folders that are not runs of Prony are left alone.
//
// Non-goals: it has no statistics of its own, compares nothing and does not depend on a server.
package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"

	"prony.example/record"
)

// Shelf gives access to the runs below a folder. Several goroutines may use it.
type Shelf struct {
	dir     string
	options Options

	mu    sync.Mutex
	known map[string]*item // its items do not change; a changed run gets a new item
	order []*item          // the known ones, the newest first; nil: to be sorted again
	now   *pass            // under way
	next  *pass            // begins when now ends

	saving sync.Mutex
	cache  cache
}

// Options depend on the program that uses a Shelf.
type Options struct {
	// Program is the version of the program that makes entries. Entries of another version may
	// differ and are made again. Empty: no cache on disk.
	Program string
	// Born returns the start of a process as in progress.ndjson, or "" without such a process. Nil:
	// the start is unknown, and no run counts as under way.
	Born func(pid int) string
	// Report is called while many runs are read, with the number of runs that were read and of all
	// runs. Several goroutines call it. It may be nil.
	Report func(read, total int)
	// Pasts keeps what Shelf.Pasts needs in memory if the cache cannot be written.
	Pasts bool
}

// item caches the results for a run, with the stamps of its files.
type item struct {
	id       string
	stamps   [4]Stamp // of the files in stamped, in their order
	entry    Entry    // without its answer and ranking, which full reads again
	problem  string   // why it cannot be read
	coming   bool     // it has no head yet
	progress progress
	line     []byte // all of it, as in the cache; nil if the cache has it
	place    place
}

// Stamp detects changes of a file without reading it.
type Stamp struct {
	Size  int64 `json:"size"`
	Mtime int64 `json:"mtime"` // ns
}

// StampOf returns a file's stamp.
func StampOf(info fs.FileInfo) Stamp { return Stamp{info.Size(), info.ModTime().UnixNano()} }

// Open returns a shelf of a folder, which need not exist yet.
func Open(dir string, o Options) (*Shelf, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open runs: %w", err)
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return nil, fmt.Errorf("open runs: %s is not a folder; name the folder that contains "+
			"runs, such as results/", dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open runs: %w", err)
	}
	return &Shelf{dir: dir, options: o}, nil
}

// Dir returns the absolute path of the folder.
func (s *Shelf) Dir() string { return s.dir }

// identifier matches the names of runs: no path, no hidden file and no characters with a meaning in
// shells, pages or addresses.
var identifier = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$`)

// Identifier reports whether a name can be that of a run.
func Identifier(id string) bool { return identifier.MatchString(id) }

// ErrNone reports that a run does not exist.
var ErrNone = errors.New("the run does not exist")

// ErrDamaged reports that a run exists, but cannot be read.
var ErrDamaged = errors.New("the run cannot be read")

// damaged is the reason why a run cannot be read.
type damaged struct{ error }

// Is implements the interface of errors.Is.
func (damaged) Is(err error) bool { return err == ErrDamaged }

// Path returns a run's folder. The path consists of the shelf's folder and the identifier, and
// neither the folder nor the run's head is a link.
func (s *Shelf) Path(id string) (string, error) {
	return s.find(id, record.RunFile)
}

// find returns a run's folder that has at least one of some files.
func (s *Shelf) find(id string, files ...string) (string, error) {
	dir := filepath.Join(s.dir, id)
	contains := func(name string) bool { return isRegular(filepath.Join(dir, name)) }
	if !Identifier(id) || !isFolder(dir) || !slices.ContainsFunc(files, contains) {
		return "", fmt.Errorf("find run %.128q: %w below %s", id, ErrNone, filepath.Base(s.dir))
	}
	return dir, nil
}

func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func isRegular(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// Read reads a run. Its head has the name of the folder, which somebody may have renamed or copied.
func (s *Shelf) Read(id string) (*Run, error) {
	dir, err := s.Path(id)
	if err != nil {
		return nil, err
	}
	if err := plain(dir); err != nil {
		return nil, damaged{err}
	}
	r, err := Read(dir)
	if err != nil {
		return nil, damaged{err}
	}
	r.Head.ID = id
	return r, nil
}

// plain refuses a run whose records are not regular files.
func plain(dir string) error {
	for _, name := range []string{record.RunFile, record.TrialsFile} {
		if !isRegular(filepath.Join(dir, name)) {
			return fmt.Errorf("read run %s: its file %s is missing, or is not a regular file",
				filepath.Base(dir), name)
		}
	}
	return nil
}

// Entry returns the index entry of one run.
func (s *Shelf) Entry(id string) (Entry, error) {
	dir, err := s.Path(id)
	if e, ok := s.coming(id); err != nil && ok {
		return e, nil
	}
	if err != nil {
		return Entry{}, err
	}
	run := s.look(id, stampsOf(dir))
	if run.problem != "" {
		return Entry{}, damaged{errors.New(run.problem)}
	}
	return s.full(run), nil
}

// stamped lists the files that an entry is made of, in the order of an item's stamps.
var stamped = [4]string{record.RunFile, record.TrialsFile, record.LabelsFile, record.ScheduleFile}

// state returns the state of a run: by the process that measures it if that may be alive, else by
// its missing trials. A run with a time budget plans no trials, but it says whether it has ended.
func (s *Shelf) state(e Entry, p progress) string {
	switch {
	case s.atWork(p):
		return Running
	case e.Trials.Missing > 0 || e.Trials.Planned == 0 || e.Unfinished:
		return Stopped
	}
	return Done
}

// atWork reports whether the process that writes a run's progress is alive.
func (s *Shelf) atWork(p progress) bool {
	lab := p.lab()
	return !p.ended && lab.PID > 0 && lab.Born != "" && s.options.Born != nil &&
		s.options.Born(lab.PID) == lab.Born
}

// Lab returns the process that measures a run; nil if the run is not under way.
func (s *Shelf) Lab(id string) (*Lab, error) {
	dir, err := s.Folder(id)
	if err != nil {
		return nil, err
	}
	p := readProgress(dir)
	if !s.atWork(p) {
		return nil, nil
	}
	lab := p.lab()
	return &lab, nil
}

// Folder returns a run's folder, which may not have its head yet: services are built before it is
// written.
func (s *Shelf) Folder(id string) (string, error) {
	return s.find(id, record.RunFile, record.ProgressFile)
}

// coming returns the entry of a run whose services are being built; ok reports whether it is one.
func (s *Shelf) coming(id string) (e Entry, ok bool) {
	dir, err := s.Folder(id)
	if err != nil {
		return e, false
	}
	p := readProgress(dir)
	if !s.atWork(p) {
		return e, false
	}
	r := Run{Dir: dir, Head: record.Run{Suite: p.begun.Suite, Planned: p.begun.Planned},
		Missing: p.begun.Planned}
	e = r.Entry()
	e.Time, e.State = p.begun.Time.UTC().Truncate(time.Second), Running
	return e, true
}

// Stamps returns the stamps of the files that a run's report is made of, to detect changes.
func (s *Shelf) Stamps(id string) ([4]Stamp, error) {
	dir, err := s.Path(id)
	if err != nil {
		return [4]Stamp{}, err
	}
	return stampsOf(dir), nil
}

func stampsOf(dir string) (now [4]Stamp) {
	for i, name := range stamped {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			now[i] = StampOf(info)
		}
	}
	return now
}

// OpenIn opens a file of a run's folder for reading. The file must be below the folder and must not
// be a link, because services write into some of these folders.
func OpenIn(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing is written through it
	named, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(named, opened) {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: name, Err: errNotRegular},
			f.Close())
	}
	return f, nil
}

// Lab is the process that measures a run under way.
type Lab struct {
	PID  int    `json:"pid"`
	Born string `json:"processStart"` // identifies it if a later process has the same number
}

// progress is the state of a run according to its progress file.
type progress struct {
	stamp Stamp
	begun *record.Progress // nil if it has ended, as nearly all have
	ended bool
}

// lab returns the process that wrote it last.
func (p progress) lab() Lab {
	if p.begun == nil {
		return Lab{}
	}
	return Lab{p.begun.PID, p.begun.ProcessStart}
}

// maxTail is the largest size of the last event of a run, in bytes.
const maxTail = 8 << 10

// readProgress reads the state of a run from its progress file. It reads only the end of the file
// if this shows that the run has ended, as nearly all have, and else all of it, to find the process
// that measures the run.
func readProgress(dir string) (p progress) {
	f, err := OpenIn(dir, record.ProgressFile)
	if err != nil {
		return p
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return p
	}
	p.stamp = StampOf(info)
	tail := make([]byte, min(info.Size(), maxTail))
	if n, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err == nil || err == io.EOF {
		pos := bytes.LastIndexByte(bytes.TrimSuffix(tail[:n], []byte("\n")), '\n')
		p.read(tail[pos+1 : n])
	}
	if !p.ended {
		_, _ = record.ReadLines(f.Name(), f, func(line []byte) error {
			if bytes.Contains(line, []byte(record.Begins)) ||
				bytes.Contains(line, []byte(record.Ends)) {
				p.read(line)
			}
			return nil // an incomplete line, or one without an event, is ignored
		})
	}
	return p
}

// read processes an event. A resumed run begins again in the same file.
func (p *progress) read(line []byte) {
	var e record.Progress
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch e.Kind {
	case record.Begins:
		p.begun, p.ended = &e, false
	case record.Ends:
		p.begun, p.ended = nil, true
	}
}

var errNotRegular = errors.New("the record is not a regular file")
