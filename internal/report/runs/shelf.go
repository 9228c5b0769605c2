// Package runs lists the runs below a folder: their subjects, how their trials ended and how their
// targets rank. It reads the records of a run once and caches the results until the records change,
// so that it lists a thousand runs quickly.
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

// Shelf gives access to the runs below a folder. Several goroutines may use it.
type Shelf struct {
	dir     string
	options Options

	reading sync.Mutex // only one goroutine reads the folder; the others wait for its results
	mu      sync.Mutex
	known   map[string]item
	changed bool // since the cache was written
}

// Options depend on the program that uses a Shelf.
type Options struct {
	// Program is the version of the program that makes entries. Entries of another version may
	// differ and are made again. Empty: no cache on disk.
	Program string
	// Born returns the start of a process as in progress.ndjson, or "" without such a process. Nil:
	// the start is unknown, and no run counts as under way.
	Born func(pid int) string
}

// item caches the results for a run, with the stamps of its files.
type item struct {
	Stamps   [3]Stamp `json:"stamps"` // of the files in stamped, in their order
	Entry    Entry    `json:"entry"`
	Problem  string   `json:"problem,omitempty"` // why it cannot be read
	progress progress
}

// Stamp detects changes of a file without reading it.
type Stamp struct {
	Size  int64 `json:"size"`
	Mtime int64 `json:"mtime"` // ns
}

// StampOf returns a file's stamp.
func StampOf(info fs.FileInfo) Stamp { return Stamp{info.Size(), info.ModTime().UnixNano()} }

// Index lists the runs of a shelf.
type Index struct {
	Entries []Entry   `json:"runs"` // the newest first
	Left    []LeftOut `json:"left"` // folders that look like runs but cannot be read
}

// LeftOut is a folder that looks like a run, and the reason why it cannot be read.
type LeftOut struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// cacheFile is the cache of entries, below record.Kept of the folder.
const cacheFile = "shelf.json"

// cacheVersion is the version of the file's format.
const cacheVersion = 4

type cached struct {
	Version int             `json:"version"`
	Program string          `json:"program"`
	Items   map[string]item `json:"items"`
}

// maxCache bounds the cache, in bytes: a hundred thousand runs need less.
const maxCache = 256 << 20

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
	s := &Shelf{dir: dir, options: o, known: map[string]item{}}
	var c cached
	b, err := files.Read(filepath.Join(dir, record.Kept, cacheFile), maxCache)
	if err == nil && json.Unmarshal(b, &c) == nil && c.Version == cacheVersion &&
		c.Program == o.Program && c.Items != nil {
		s.known = c.Items // a damaged cache is made again
	}
	return s, nil
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
	entry := s.look(id, dir)
	if entry.Problem != "" {
		return Entry{}, errors.New(entry.Problem)
	}
	return entry.Entry, nil
}

// List returns the complete index. It lists unreadable runs separately, so that one broken run does
// not hide the others.
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
	if len(x.Entries) > 0 { // an empty index leaves no file
		s.keep()
	}
	return x, nil
}

// lookAll reads runs in parallel, on as many cores as the program may use.
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

// stamped lists the files that an entry is made of, in the order of an item's stamps.
var stamped = [3]string{record.RunFile, record.TrialsFile, record.LabelsFile}

// look returns the item of a run, and reads the run again if its files have changed.
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

// state returns the state of a run: by the process that measures it if that may be alive, else by
// its missing trials. A run with a time budget plans no trials, so it is done when it has any.
func (s *Shelf) state(entry item) string {
	switch {
	case s.atWork(entry.progress):
		return Running
	case entry.Entry.Trials.Missing > 0 || entry.Entry.Trials.Planned == 0:
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

// forget removes deleted runs from the cache.
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

// keep writes the cache. If that fails, the runs are read again the next time, which only costs
// time.
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

// Filter selects entries; empty fields match all.
type Filter struct {
	Suite   string
	Target  string // among the run's rows: the name, or its beginning before a slash or a space
	Verdict string // a run with a trial of this grade: valid, suspect, invalid, failed or missing
	Label   string // NAME, or NAME=VALUE
	From    time.Time
	To      time.Time // of its start, inclusive
}

// Verdicts lists the values of Filter.Verdict.
var Verdicts = []string{"valid", "suspect", "invalid", "failed", "missing"}

// Wants reports whether an entry matches.
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

// Stamps returns the stamps of the files that a run's report is made of, to detect changes.
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
	begun record.Progress
	ended bool
}

// lab returns the process that wrote it last.
func (p progress) lab() Lab { return Lab{p.begun.PID, p.begun.ProcessStart} }

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
		p.begun, p.ended = e, false
	case record.Ends:
		p.ended = true
	}
}

var errNotRegular = errors.New("the record is not a regular file")
