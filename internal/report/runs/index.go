package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"prony.example/internal/base/files"
	"prony.example/internal/report/history"
	"prony.example/record"
)

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

// pass compares all runs with the folder, and reads those that have changed.
type pass struct {
	done   chan struct{}
	long   chan struct{} // closed if many runs have to be read
	total  atomic.Int64  // runs
	unread atomic.Int64  // of these, the number to be read
	// coming are the runs without a head, whose services are being built.
	coming []Entry
	unfit  []LeftOut // folders of runs that cannot be shown
	err    error
}

// maxWait is the number of runs that a Page waits for.
const maxWait = 300

// begin begins a pass and returns it, together with the one that is under way. A pass under way may
// already have looked at a run that changed just now, so another one follows it.
func (s *Shelf) begin() (awaited, running *pass) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &pass{done: make(chan struct{}), long: make(chan struct{})}
	switch {
	case s.now == nil:
		s.now = p
		go s.work(p)
		return p, p
	case s.next == nil:
		s.next = p
	}
	return s.next, s.now
}

// work does passes until none is requested.
func (s *Shelf) work(p *pass) {
	for p != nil {
		p.err = s.check(p)
		s.mu.Lock()
		s.now, s.next = s.next, nil
		close(p.done)
		p = s.now
		s.mu.Unlock()
	}
}

// check does a pass.
func (s *Shelf) check(p *pass) error {
	s.load()
	names, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list runs: %w", err)
	}
	var ids []string
	for _, n := range names {
		switch head := filepath.Join(s.dir, n.Name(), record.RunFile); {
		case !n.IsDir():
		case !Identifier(n.Name()):
			if n.Name()[0] != '.' && isRegular(head) {
				p.unfit = append(p.unfit, LeftOut{n.Name(), fmt.Sprintf("run %q: the name of its "+
					"folder is not suitable for an address: rename it; use up to 128 letters, "+
					"digits, dots, dashes, + and _", n.Name())})
			}
		case files.IsLink(head):
			p.unfit = append(p.unfit, LeftOut{n.Name(), fmt.Sprintf("run %s: its %s is a link",
				n.Name(), record.RunFile)})
		default:
			ids = append(ids, n.Name())
		}
	}
	states := s.compare(ids)
	var existing, changed []string
	for i, id := range ids {
		switch states[i] {
		case foreign:
			if e, ok := s.coming(id); ok {
				p.coming = append(p.coming, e)
			}
			continue
		case different:
			changed = append(changed, id)
		}
		existing = append(existing, id)
	}
	s.forget(existing)
	p.total.Store(int64(len(existing)))
	p.unread.Store(int64(len(changed)))
	if len(changed) > maxWait {
		close(p.long)
	}
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for _, id := range slices.Backward(changed) { // names are times: the newest first
		all.Go(func() error {
			s.look(id, stampsOf(filepath.Join(s.dir, id)))
			if unread := p.unread.Add(-1); s.options.Report != nil {
				s.options.Report(len(existing)-int(unread), len(existing))
			}
			return nil
		})
	}
	_ = all.Wait() // none fails: an item has its problem
	s.settle()
	return nil
}

// What a pass finds at a folder.
const (
	foreign   = iota // it is not a run
	equal            // it has not changed
	different        // it is to be looked at
)

// compare compares the stamps of folders with the known ones, on as many cores as the program may
// use.
func (s *Shelf) compare(ids []string) []byte {
	out := make([]byte, len(ids))
	size := max(1, (len(ids)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	var all errgroup.Group
	for from := 0; from < len(ids); from += size {
		all.Go(func() error {
			for i := from; i < min(from+size, len(ids)); i++ {
				out[i] = s.compareOne(ids[i])
			}
			return nil
		})
	}
	_ = all.Wait() // none fails
	return out
}

func (s *Shelf) compareOne(id string) byte {
	dir := filepath.Join(s.dir, id)
	if !isRegular(filepath.Join(dir, record.RunFile)) {
		return foreign
	}
	s.mu.Lock()
	run := s.known[id]
	s.mu.Unlock()
	if run == nil || run.stamps != stampsOf(dir) {
		return different
	}
	stamp := Stamp{}
	if info, err := os.Lstat(filepath.Join(dir, record.ProgressFile)); err == nil {
		stamp = StampOf(info)
	}
	if run.progress.stamp != stamp || run.entry.State != s.state(run.entry, run.progress) {
		return different
	}
	return equal
}

// look returns the item of a run, and reads the run again if its files have changed.
func (s *Shelf) look(id string, now [4]Stamp) *item {
	s.load()
	dir := filepath.Join(s.dir, id)
	s.mu.Lock()
	old := s.known[id]
	s.mu.Unlock()
	run := &item{id: id, stamps: now}
	var shapes history.Shapes
	changed := old == nil || old.stamps != now
	if !changed {
		again := *old
		run = &again
	}
	if info, err := os.Lstat(filepath.Join(dir, record.ProgressFile)); err != nil {
		run.progress = progress{}
	} else if stamp := StampOf(info); stamp != run.progress.stamp {
		run.progress = readProgress(dir)
		run.progress.stamp = stamp // also of one that cannot be read
		changed = changed || run.markEnded()
	}
	if old == nil || old.stamps != now {
		shapes = run.read(dir)
	}
	run.entry.State = s.state(run.entry, run.progress)
	s.mu.Lock()
	s.known[id], s.order = run, nil
	s.mu.Unlock()
	if changed {
		s.keep(run, shapes)
	}
	return run
}

// markEnded notes in an item's line that its run has ended, so that the next program need not read
// the progress file; it reports whether there is anything to write.
func (run *item) markEnded() bool {
	l, ok := lineOf(run)
	if !ok || !run.progress.ended {
		return false
	}
	l.Ended = run.progress.stamp
	line, err := sealed(l)
	if err == nil {
		run.line, run.place = line, place{}
	}
	return err == nil
}

// read reads a run, with its part of the history.
func (run *item) read(dir string) history.Shapes {
	e, past, shapes, err := entryOf(dir)
	l := cacheLine{ID: run.id, Stamps: &run.stamps}
	if run.progress.ended {
		l.Ended = run.progress.stamp
	}
	if err == nil {
		run.entry = e.brief()
		l.Entry, err = json.Marshal(e)
	}
	if err == nil {
		l.Past, err = json.Marshal(past)
	}
	if err != nil {
		l = cacheLine{ID: run.id, Stamps: &run.stamps,
			Problem: strings.ReplaceAll(err.Error(), dir, filepath.Base(dir))}
		run.problem = l.Problem
	}
	if run.line, err = sealed(l); err != nil {
		run.problem = err.Error()
	}
	return shapes
}

// full returns the complete entry of an item.
func (s *Shelf) full(run *item) Entry {
	l, ok := lineOf(run)
	e := Entry{}
	if !ok || json.Unmarshal(l.Entry, &e) != nil {
		var err error
		if e, _, _, err = entryOf(filepath.Join(s.dir, run.id)); err != nil {
			return run.entry // it was just removed
		}
	}
	e.State = run.entry.State
	return e
}

// forget removes deleted runs.
func (s *Shelf) forget(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.known {
		if _, exists := slices.BinarySearch(ids, id); !exists {
			delete(s.known, id)
			s.order = nil
		}
	}
}

// sorted returns the known runs, the newest first.
func (s *Shelf) sorted() []*item {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.order == nil {
		s.order = make([]*item, 0, len(s.known))
		for _, run := range s.known {
			s.order = append(s.order, run)
		}
		slices.SortFunc(s.order, func(a, b *item) int {
			if n := newest(a.entry, b.entry); n != 0 {
				return n
			}
			return strings.Compare(a.id, b.id)
		})
	}
	return s.order
}

// List returns the complete index, and waits until all runs are read. It lists unreadable runs
// separately, so that one broken run does not hide the others.
func (s *Shelf) List(ctx context.Context) (Index, error) {
	p, err := s.complete(ctx)
	if err != nil {
		return Index{}, err
	}
	x := Index{Entries: slices.Clone(p.coming), Left: append([]LeftOut{}, p.unfit...)}
	if x.Entries == nil {
		x.Entries = []Entry{}
	}
	for _, run := range s.sorted() {
		if run.problem != "" {
			x.Left = append(x.Left, LeftOut{run.id, run.problem})
		} else {
			x.Entries = append(x.Entries, s.full(run))
		}
	}
	slices.SortFunc(x.Entries, newest)
	return x, nil
}

// complete waits for a pass that begins now.
func (s *Shelf) complete(ctx context.Context) (*pass, error) {
	p, _ := s.begin()
	select {
	case <-p.done:
		return p, p.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Page is a part of the index.
type Page struct {
	Entries    []Entry
	More       bool      // whether entries follow
	Total      int       // entries that match
	All        int       // entries
	Unreadable []LeftOut // as Index.Left
	// Unread is the number of runs that are missing, because they have yet to be read; Runs is the
	// number of all runs.
	Unread, Runs int
}

// listed is what is known of the runs of a shelf.
type listed struct {
	items        []*item // the newest first
	unfit        []LeftOut
	unread, runs int // as in Page
}

// listed waits until all runs are read, except if these are hundreds.
func (s *Shelf) listed(ctx context.Context) (out listed, err error) {
	p, running := s.begin()
	select {
	case <-p.done:
	case <-p.long:
	case <-running.long:
	case <-ctx.Done():
		return out, ctx.Err()
	}
	var coming []Entry
	select {
	case <-p.done:
		if p.err != nil {
			return out, p.err
		}
		coming, out.unfit = p.coming, p.unfit
		out.runs = int(p.total.Load())
	default:
		if running.total.Load() == 0 {
			running = p
		}
		out.unread, out.runs = max(1, int(running.unread.Load())), int(running.total.Load())
	}
	out.items = s.sorted()
	if len(coming) > 0 {
		out.items = slices.Clone(out.items)
		for _, e := range coming {
			out.items = append(out.items, &item{id: e.ID, entry: e, coming: true})
		}
		slices.SortFunc(out.items, func(a, b *item) int { return newest(a.entry, b.entry) })
	}
	return out, nil
}

// Page returns up to limit entries that match and follow the one at a place (see Entry.Place; ""
// begins with the newest). If hundreds of runs have to be read, it returns what is known so far.
func (s *Shelf) Page(ctx context.Context, f Filter, after string, limit int) (Page, error) {
	out := Page{Entries: []Entry{}, Unreadable: []LeftOut{}}
	list, err := s.listed(ctx)
	if err != nil {
		return out, err
	}
	out.Unread, out.Runs = list.unread, list.runs
	out.Unreadable = append(out.Unreadable, list.unfit...)
	for _, run := range list.items {
		if run.problem != "" {
			out.Unreadable = append(out.Unreadable, LeftOut{run.id, run.problem})
			continue
		}
		out.All++
		if !f.Wants(run.entry) {
			continue
		}
		out.Total++
		switch {
		case after != "" && run.entry.Place() >= after:
		case len(out.Entries) == limit:
			out.More = true
		case run.coming:
			out.Entries = append(out.Entries, run.entry)
		default:
			out.Entries = append(out.Entries, s.full(run))
		}
	}
	return out, nil
}

// Brief returns the entries of all runs, the newest first, without their answers and rankings.
func (s *Shelf) Brief(ctx context.Context) ([]Entry, error) {
	p, err := s.complete(ctx)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(p.coming)
	for _, run := range s.sorted() {
		if run.problem == "" {
			out = append(out, run.entry)
		}
	}
	slices.SortFunc(out, newest)
	return out, nil
}

// Past is a run's part of a history.
type Past struct {
	ID      string
	Problem string // why the run cannot be read; then the rest is empty
	history.Past
}

// Pasts returns the part of each run in a history of the usual metrics, and the shapes of these
// parts. It waits until all runs are read.
func (s *Shelf) Pasts(ctx context.Context) ([]Past, history.Shapes, error) {
	if _, err := s.complete(ctx); err != nil {
		return nil, nil, err
	}
	var out []Past
	shapes := s.shapes()
	for _, run := range s.sorted() {
		past := Past{ID: run.id, Problem: run.problem}
		l, ok := lineOf(run)
		if run.problem == "" && (!ok || json.Unmarshal(l.Past, &past.Past) != nil ||
			!shapes.Have(past.Past)) {
			var err error
			var missing history.Shapes
			_, past.Past, missing, err = entryOf(filepath.Join(s.dir, run.id))
			if err != nil {
				past.Problem = err.Error()
			}
			for _, name := range missing.Names() {
				shapes.Add(name, missing.Text(name))
			}
		}
		out = append(out, past)
	}
	return out, shapes, nil
}

// shapes returns a copy of the known shapes.
func (s *Shelf) shapes() history.Shapes {
	s.saving.Lock()
	defer s.saving.Unlock()
	return s.cache.shapes.Clone()
}
