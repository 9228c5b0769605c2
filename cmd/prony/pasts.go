package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/clock"
	"prony.example/internal/base/files"
	"prony.example/internal/base/units"
	"prony.example/internal/report/history"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// past is a run's part of a history.
type past struct {
	history.Past
	series []history.Series
	packed *history.Unpacker // makes the series; nil: they are there
}

// trendOf makes the history of all runs in and below folders, each once. It reports and leaves out
// unreadable runs, so that one broken run does not hide hundreds.
func (a *app) trendOf(ctx context.Context, folders []string, o history.Options) (history.Trend,
	error) {
	all, err := a.pastsBelow(ctx, folders, o)
	if err != nil {
		return history.Trend{}, err
	}
	var failed error
	t := history.JoinAll(func(yield func([]history.Series) bool) {
		for _, p := range all {
			series := p.series
			if p.packed != nil {
				if series, failed = p.packed.Series(p.Past); failed != nil {
					return
				}
			}
			if len(o.Targets) > 0 {
				series = slices.DeleteFunc(series, func(s history.Series) bool {
					return !slices.Contains(o.Targets, s.Target)
				})
			}
			if !yield(series) {
				return
			}
		}
	}, o)
	return t, failed
}

// pastsBelow returns the runs in and below folders, the oldest first.
func (a *app) pastsBelow(ctx context.Context, folders []string, o history.Options) (all []past,
	err error) {
	alone, shelves, err := runsBelow(folders)
	if err != nil {
		return nil, err
	}
	show := &readLine{w: a.stderr, next: clock.Mono() + int64(readEvery)}
	for _, dirs := range shelves {
		if len(o.Metrics) > 0 { // the index has the usual metrics
			alone = append(alone, dirs...)
			continue
		}
		indexed, others, err := a.indexed(ctx, dirs, show)
		if err != nil {
			return nil, err
		}
		all, alone = append(all, indexed...), append(alone, others...)
	}
	direct, err := a.direct(ctx, alone, o, show)
	if err != nil {
		return nil, err
	}
	if all = append(all, direct...); len(all) == 0 {
		return nil, errors.New("no runs found: there is no folder with a run.json; name a folder " +
			"with runs, such as results/")
	}
	slices.SortStableFunc(all, func(a, b past) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Run, b.Run))
	})
	found := len(all)
	all = slices.CompactFunc(all, past.equal)
	if n := found - len(all); n > 0 {
		fmt.Fprintf(a.stderr, "prony: %s left out: copies of other runs\n",
			units.Plural(n, "run"))
	}
	return all, nil
}

// equal reports whether two runs are copies: they have the same name, beginning and values.
func (p past) equal(q past) bool {
	return p.Run == q.Run && p.Began.Equal(q.Began) && !p.Began.IsZero() &&
		p.SameValues(q.Past) && (p.packed != nil || reflect.DeepEqual(p.series, q.series))
}

// runsBelow returns the runs that folders are, and the ones below them by their parent folder.
func runsBelow(folders []string) (alone []string, shelves [][]string, err error) {
	seen, places := map[string]bool{}, map[string]int{}
	for _, folder := range folders {
		if files.IsLink(folder) { // which WalkDir does not follow
			folder += string(filepath.Separator)
		}
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if !d.IsDir() || !isRun(path) {
				return nil
			}
			dir := filepath.Clean(path)
			parent := filepath.Dir(dir)
			place, known := places[parent]
			switch {
			case seen[dir]:
			case path == folder:
				alone = append(alone, dir)
			case known:
				shelves[place] = append(shelves[place], dir)
			default:
				places[parent], shelves = len(shelves), append(shelves, []string{dir})
			}
			seen[dir] = true
			return fs.SkipDir
		})
		if err != nil {
			return nil, nil, fmt.Errorf("find runs: %w", err)
		}
	}
	return alone, shelves, nil
}

// indexed returns those of the runs of one folder that its index has, and the others.
func (a *app) indexed(ctx context.Context, dirs []string, show *readLine) (out []past,
	others []string, err error) {
	shelf, err := runs.Open(filepath.Dir(dirs[0]), runs.Options{Program: version(), Pasts: true,
		Report: show.report})
	if err != nil {
		return nil, nil, err
	}
	pasts, shapes, err := shelf.Pasts(ctx)
	if err != nil {
		return nil, nil, err
	}
	byID := make(map[string]runs.Past, len(pasts))
	for _, p := range pasts {
		byID[p.ID] = p
	}
	packed := history.NewUnpacker(shapes)
	for _, dir := range dirs {
		p, ok := byID[filepath.Base(dir)]
		if !ok || p.Problem != "" {
			others = append(others, dir) // reading it again gives the reason
			continue
		}
		for _, bad := range p.Bad {
			a.tellBad([]*record.BadRecord{{File: filepath.Join(dir, record.TrialsFile),
				Line: bad.Line, Err: errors.New(bad.Text)}})
		}
		out = append(out, past{Past: p.Past, packed: packed})
	}
	return out, others, nil
}

// direct reads runs, on as many cores as the program may use.
func (a *app) direct(ctx context.Context, dirs []string, o history.Options, show *readLine) (
	[]past, error) {
	out, failed := make([]past, len(dirs)), make([]error, len(dirs))
	var mu sync.Mutex
	read := 0
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i, dir := range dirs {
		all.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			head, records, bad, err := record.Read(dir)
			mu.Lock()
			read++
			n := read
			mu.Unlock()
			show.report(n, len(dirs))
			if failed[i] = err; err != nil {
				return nil
			}
			r := history.Run{Head: head, Records: record.Compared(records), Bad: bad}
			out[i] = past{Past: history.PastOf(r),
				series: history.Of(r, table.Analyze(r.Records, table.Options{}), o)}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	var good []past
	for i, err := range failed {
		if err != nil {
			fmt.Fprintf(a.stderr, "prony: run left out: %v\n", err)
			continue
		}
		for _, bad := range out[i].Bad {
			a.tellBad([]*record.BadRecord{{File: filepath.Join(dirs[i], record.TrialsFile),
				Line: bad.Line, Err: errors.New(bad.Text)}})
		}
		good = append(good, out[i])
	}
	return good, nil
}

// readEvery is the time between two lines of a readLine.
const readEvery = 2 * time.Second

// readLine prints how many runs have been read, if that takes seconds. Several goroutines may use
// it.
type readLine struct {
	mu   sync.Mutex
	w    io.Writer
	next int64 // monotonic time of the next line
}

func (l *readLine) report(read, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := clock.Mono()
	if now < l.next {
		return
	}
	l.next = now + int64(readEvery)
	fmt.Fprintf(l.w, "prony: read %d of %d runs\n", read, total)
}
