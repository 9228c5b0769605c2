// Package runs is the runs below a folder as an index: which there are, what each is about, how
// its trials ended and how its targets rank. It reads the records of a run once and keeps what it
// says of them until they change, so that a thousand runs are listed in a moment.
//
//	s, err := runs.Open("results", runs.Options{})
//	index, err := s.List(ctx)
//
// A run is called by its identifier, the name of its folder, and by nothing else: no path comes in
// from outside, links are not followed, and what is no run of prony's is left alone.
//
// Non-goals: it has no statistics of its own, compares nothing and knows no server.
package runs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"prony.example/internal/base/files"
	"prony.example/record"
)

// Shelf is the runs below a folder. Several goroutines may use it.
type Shelf struct {
	dir     string
	options Options

	reading sync.Mutex // one reads the folder, the others have what it finds
	mu      sync.Mutex
	known   map[string]item
	changed bool // since the cache was written
}

// Options say what a shelf cannot know.
type Options struct {
	// Program is the version of the program that makes entries: what another one has made of the
	// same records may differ, and is made again. Empty: nothing is kept on disk.
	Program string
	// Born tells when a process was begun, as progress.ndjson has it; empty: there is none. Nil:
	// nobody can tell here, and no run is taken to be under way.
	Born func(pid int) string
}

// item is what is kept of a run, and of which bytes it was made.
type item struct {
	Stamps   [3]Stamp `json:"stamps"` // of files, as stamped has them
	Entry    Entry    `json:"entry"`
	Problem  string   `json:"problem,omitempty"` // it cannot be read
	progress progress
}

// Stamp tells a file's bytes from earlier ones without reading them.
type Stamp struct {
	Size  int64 `json:"size"`
	Mtime int64 `json:"mtime"` // ns
}

// StampOf is a file's.
func StampOf(info fs.FileInfo) Stamp { return Stamp{info.Size(), info.ModTime().UnixNano()} }

// Index is what is on the shelf.
type Index struct {
	Entries []Entry   `json:"runs"` // the newest first
	Left    []LeftOut `json:"left"` // what looks like a run and cannot be read
}

// LeftOut is a folder that looks like a run, and why it cannot be read.
type LeftOut struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// cacheFile is where entries are kept, below record.Kept of the folder.
const cacheFile = "shelf.json"

// cacheVersion changes with the form of the file.
const cacheVersion = 4

type cached struct {
	Version int             `json:"version"`
	Program string          `json:"program"`
	Items   map[string]item `json:"items"`
}

// maxCache bounds the cache, in bytes: a hundred thousand runs have less.
const maxCache = 256 << 20

// Open is a shelf of a folder, which need not be there yet.
func Open(dir string, o Options) (*Shelf, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open runs: %w", err)
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return nil, fmt.Errorf("open runs: %s is not a folder; "+
			"name the one that holds runs, such as "+
			"results/", dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open runs: %w", err)
	}
	s := &Shelf{dir: dir, options: o, known: map[string]item{}}
	var c cached
	b, err := files.Read(filepath.Join(dir, record.Kept, cacheFile), maxCache)
	if err == nil && json.Unmarshal(b, &c) == nil && c.Version == cacheVersion &&
		c.Program == o.Program && c.Items != nil {
		s.known = c.Items // one that is damaged is made again
	}
	return s, nil
}

// Dir is the folder, absolute.
func (s *Shelf) Dir() string { return s.dir }

// identifier is what a run may be called: no path, no hidden file and nothing that a shell, a page
// or an address would take for more than a name.
var identifier = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$`)

// Identifier says whether a name can be that of a run.
func Identifier(id string) bool { return identifier.MatchString(id) }

// ErrNone says that there is no such run.
var ErrNone = errors.New("there is no such run")

// Path is a run's folder. It is made of the identifier alone, and neither it nor the run's head is
// a link.
func (s *Shelf) Path(id string) (string, error) {
	return s.find(id, record.RunFile)
}

// find is a folder with one of some files.
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

// Read reads a run.
func (s *Shelf) Read(id string) (*Run, error) {
	dir, err := s.Path(id)
	if err != nil {
		return nil, err
	}
	if err := plain(dir); err != nil {
		return nil, err
	}
	return Read(dir)
}

// plain refuses a run whose records are no file of its own.
func plain(dir string) error {
	for _, name := range []string{record.RunFile, record.TrialsFile} {
		if !isRegular(filepath.Join(dir, name)) {
			return fmt.Errorf("read run %s: its %s is missing, or no regular file",
				filepath.Base(dir), name)
		}
	}
	return nil
}

// Entry is what the index says of one run.
func (s *Shelf) Entry(id string) (Entry, error) {
	dir, err := s.Path(id)
	if e, ok := s.coming(id); err != nil && ok {
		return e, nil
	}
	if err != nil {
		return Entry{}, err
	}
	entry := s.look(id, dir)
	if entry.Problem != "" {
		return Entry{}, errors.New(entry.Problem)
	}
	return entry.Entry, nil
}

// List is the whole index. What cannot be read is told and left out: one broken run among hundreds
// is no reason to see none.
func (s *Shelf) List(ctx context.Context) (Index, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	names, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Index{}, fmt.Errorf("list runs: %w", err)
	}
	x := Index{Entries: []Entry{}, Left: []LeftOut{}}
	var ids []string
	for _, n := range names {
		if _, err := s.Path(n.Name()); err == nil {
			ids = append(ids, n.Name())
		} else if e, ok := s.coming(n.Name()); ok {
			x.Entries = append(x.Entries, e)
		}
	}
	items := s.lookAll(ctx, ids)
	if err := ctx.Err(); err != nil {
		return Index{}, err
	}
	s.forget(ids)
	for i, entry := range items {
		if entry.Problem != "" {
			x.Left = append(x.Left, LeftOut{ids[i], entry.Problem})
		} else {
			x.Entries = append(x.Entries, entry.Entry)
		}
	}
	slices.SortFunc(x.Entries, newest)
	if len(x.Entries) > 0 { // nothing leaves nothing
		s.keep()
	}
	return x, nil
}

// lookAll looks at runs side by side, on as many cores as the program may use.
func (s *Shelf) lookAll(ctx context.Context, ids []string) []item {
	items := make([]item, len(ids))
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i, id := range ids {
		if ctx.Err() != nil {
			break
		}
		all.Go(func() error {
			items[i] = s.look(id, filepath.Join(s.dir, id))
			return nil
		})
	}
	_ = all.Wait() // none fails: an item has its problem
	return items
}

// stamped are the files that an entry is made of, in the order of an item's stamps.
var stamped = [3]string{record.RunFile, record.TrialsFile, record.LabelsFile}

// look gives what is known of a run, and reads it where that is of other bytes.
func (s *Shelf) look(id, dir string) item {
	now := stampsOf(dir)
	s.mu.Lock()
	entry, known := s.known[id]
	s.mu.Unlock()
	if !known || entry.Stamps != now {
		entry = item{Stamps: now, progress: entry.progress}
		entry.Entry, entry.Problem = entryOf(dir)
	}
	if info, err := os.Lstat(filepath.Join(dir, record.ProgressFile)); err != nil {
		entry.progress = progress{}
	} else if StampOf(info) != entry.progress.stamp {
		entry.progress = readProgress(dir)
	}
	entry.Entry.State = s.state(entry)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = s.changed || !known || s.known[id].Stamps != now
	s.known[id] = entry
	return entry
}

func entryOf(dir string) (Entry, string) {
	if err := plain(dir); err != nil {
		return Entry{}, err.Error()
	}
	r, err := Read(dir)
	if err != nil {
		return Entry{}, strings.ReplaceAll(err.Error(), dir, filepath.Base(dir))
	}
	return r.Entry(), ""
}

// state goes by the lab's process where one may be at work, and else by what is missing. A run for
// a time plans no trials, so that it is done when it has any.
func (s *Shelf) state(entry item) string {
	switch {
	case s.atWork(entry.progress):
		return Running
	case entry.Entry.Trials.Missing > 0 || entry.Entry.Trials.Planned == 0:
		return Stopped
	}
	return Done
}

// atWork says whether the lab that keeps a run's progress lives.
func (s *Shelf) atWork(p progress) bool {
	lab := p.lab()
	return !p.ended && lab.PID > 0 && lab.Born != "" && s.options.Born != nil &&
		s.options.Born(lab.PID) == lab.Born
}

// Lab is the process that a run is under way in; nil: it is not.
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

// Folder is that of a run, which may not have its head yet: services are built before it is
// written.
func (s *Shelf) Folder(id string) (string, error) {
	return s.find(id, record.RunFile, record.ProgressFile)
}

// coming is what is known of a run whose services are being built; ok: it is one.
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

// forget drops what is known of runs that are gone.
func (s *Shelf) forget(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.known {
		if _, exists := slices.BinarySearch(ids, id); !exists {
			delete(s.known, id)
			s.changed = true
		}
	}
}

// keep writes the cache. A folder that cannot be written to is read again the next time: that costs
// time and nothing else.
func (s *Shelf) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.changed || s.options.Program == "" {
		return
	}
	b, err := json.Marshal(cached{cacheVersion, s.options.Program, s.known})
	if err != nil {
		return
	}
	dir := filepath.Join(s.dir, record.Kept)
	if err := record.Keep(dir); err != nil || !isFolder(dir) {
		return
	}
	if files.Put(filepath.Join(dir, cacheFile), b) == nil {
		s.changed = false
	}
}

// Filter says which entries are wanted; what is empty asks for nothing.
type Filter struct {
	Suite   string
	Target  string // among the run's rows: the name, or its beginning before a slash or a space
	Verdict string // a run in which a trial ended so: valid, suspect, invalid, failed or missing
	Label   string // NAME, or NAME=VALUE
	From    time.Time
	To      time.Time // of its start, inclusive
}

// Verdicts are the words of Filter.Verdict.
var Verdicts = []string{"valid", "suspect", "invalid", "failed", "missing"}

// Wants says whether an entry is asked for.
func (f Filter) Wants(e Entry) bool {
	name, value, valued := strings.Cut(f.Label, "=")
	verb, labelled := e.Labels[name]
	t := e.Trials
	counts := []int{t.Valid, t.Suspect, t.Invalid, t.Failed, t.Missing}
	index := slices.Index(Verdicts, strings.ToLower(f.Verdict))
	return cmp.Or(f.Suite, e.Suite) == e.Suite &&
		(f.Target == "" || slices.ContainsFunc(e.Targets, func(row string) bool {
			tail, ok := strings.CutPrefix(row, f.Target)
			return ok && (tail == "" || strings.ContainsAny(tail[:1], "/ @"))
		})) &&
		(f.Verdict == "" || index >= 0 && counts[index] > 0) &&
		(f.Label == "" || labelled && (!valued || verb == value)) &&
		(f.From.IsZero() || !e.Time.Before(f.From)) &&
		(f.To.IsZero() || !e.Time.After(f.To))
}

// Stamps tell what a run's report is made of from what it was made of before.
func (s *Shelf) Stamps(id string) ([3]Stamp, error) {
	dir, err := s.Path(id)
	if err != nil {
		return [3]Stamp{}, err
	}
	return stampsOf(dir), nil
}

func stampsOf(dir string) (now [3]Stamp) {
	for i, name := range stamped {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			now[i] = StampOf(info)
		}
	}
	return now
}

// OpenIn opens a file of a run's folder for reading. It is below the folder, on whatever way there
// is to it, and is itself no link: services write into some of these folders.
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

// Lab is the process that a run under way is of.
type Lab struct {
	PID  int    `json:"pid"`
	Born string `json:"processStart"` // which tells it from a later process of the same number
}

// progress is what a run's progress says of its state.
type progress struct {
	stamp Stamp
	begun record.Progress
	ended bool
}

// lab is the process that wrote it last.
func (p progress) lab() Lab { return Lab{p.begun.PID, p.begun.ProcessStart} }

// maxTail is where the last event of a run is looked for: it is no longer than that, in bytes.
const maxTail = 8 << 10

// readProgress reads of a run's progress what tells its state. The end of the file says whether the
// run has ended, as nearly all have; only of others all of it is read, for who runs them.
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
			return nil // a line that is torn, or no event, tells nothing
		})
	}
	return p
}

// read takes in an event. A run that was gone on with begins again in the same file.
func (p *progress) read(line []byte) {
	var e record.Progress
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch e.Kind {
	case record.Begins:
		p.begun, p.ended = e, false
	case record.Ends:
		p.ended = true
	}
}

var errNotRegular = errors.New("it is not a regular file")
