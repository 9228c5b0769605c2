package site

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"prony.example/internal/base/files"
	"prony.example/internal/report"
	"prony.example/internal/report/compare"
	"prony.example/internal/report/runs"
)

// Baseline is the label of a run that later runs of its suite and machine are compared with.
const Baseline = "baseline"

// Kinds of comparisons: which run B is compared with.
const (
	withPrevious = "previous" // the previous run of its suite and machine
	withBaseline = "baseline" // the newest earlier run with the label
)

// pair is a comparison of a site, of run B with run A, as data/pairs.js lists it. Its page is
// runs/B/compare-A.html.
type pair struct {
	A    string `json:"a"`
	B    string `json:"b"`
	Kind string `json:"kind"`
	// Refused is the reason for a missing page, for example different methods.
	Refused string `json:"refused,omitempty"`
}

// pairPrefix begins the names of a comparison's files in the folder of run B.
const pairPrefix = "compare-"

// pairsOf selects the comparisons of a site, at most two for each run; entries and pairs begin with
// the newest. All pairs would be half a million for a thousand runs.
func pairsOf(entries []runs.Entry) (pairs []pair) {
	type group struct{ suite, machine string }
	previous, baseline := map[group]string{}, map[group]string{}
	for _, e := range slices.Backward(entries) {
		if e.Blocks == 0 { // it has no record yet
			continue
		}
		g := group{e.Suite, e.Machine.Key}
		before, base := previous[g], baseline[g]
		if base != "" && base != before {
			pairs = append(pairs, pair{A: base, B: e.ID, Kind: withBaseline})
		}
		if before != "" {
			pairs = append(pairs, pair{A: before, B: e.ID, Kind: withPrevious})
		}
		previous[g] = e.ID
		if _, is := e.Labels[Baseline]; is {
			baseline[g] = e.ID
		}
	}
	slices.Reverse(pairs)
	return pairs
}

// writePairs writes the comparisons in parallel and removes those that the site no longer has.
func writePairs(ctx context.Context, s *runs.Shelf, entries []runs.Entry, to string) error {
	pairs := pairsOf(entries)
	failed := make([]error, len(pairs))
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i := range pairs {
		all.Go(func() error {
			if ctx.Err() == nil {
				failed[i] = writePair(s, &pairs[i], filepath.Join(to, runsDir))
			}
			return nil
		})
	}
	_ = all.Wait() // one that fails does not stop the others
	if err := errors.Join(append(failed, ctx.Err())...); err != nil {
		return err
	}
	if err := sweepPairs(entries, pairs, to); err != nil {
		return err
	}
	if pairs == nil {
		pairs = []pair{}
	}
	return give(to, dataDir+"/pairs", pairs)
}

// pairMark is stored next to each completely written comparison and identifies its inputs.
type pairMark struct {
	A       string `json:"a"` // hashes of the marks of both runs
	B       string `json:"b"`
	Refused string `json:"refused,omitempty"`
}

// writePair writes a comparison, unless its inputs are unchanged.
func writePair(s *runs.Shelf, p *pair, dir string) error {
	name := filepath.Join(dir, p.B, pairPrefix+p.A)
	var now, before pairMark
	for _, side := range []struct {
		id string
		to *string
	}{{p.A, &now.A}, {p.B, &now.B}} {
		text, err := files.Read(filepath.Join(dir, side.id, markFile), files.Page)
		if err != nil {
			return fmt.Errorf("write site: %w", err)
		}
		sum := sha256.Sum256(text)
		*side.to = hex.EncodeToString(sum[:16])
	}
	text, err := files.Read(name+".json", files.Page)
	if err == nil && json.Unmarshal(text, &before) == nil &&
		before.A == now.A && before.B == now.B {
		p.Refused = before.Refused
		return nil
	}
	for _, ending := range []string{".json", ".html"} {
		if err := os.Remove(name + ending); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("write site: %w", err)
		}
	}
	if c, err := comparison(s, *p); err != nil {
		p.Refused, now.Refused = err.Error(), err.Error()
	} else {
		var page bytes.Buffer // as prony compare --format html writes it
		if err := report.Compare(&page, c, report.HTMLOptions{}); err != nil {
			return fmt.Errorf("write the comparison of run %s with %s: %w", p.B, p.A, err)
		}
		if err := put(name+".html", page.Bytes()); err != nil {
			return err
		}
	}
	if text, err = json.Marshal(now); err != nil {
		return fmt.Errorf("write site: %w", err)
	}
	return put(name+".json", text)
}

func comparison(s *runs.Shelf, p pair) (compare.Comparison, error) {
	a, errA := side(s, p.A)
	b, errB := side(s, p.B)
	if err := cmp.Or(errA, errB); err != nil {
		return compare.Comparison{}, err
	}
	return compare.Compare(a, b, compare.Options{})
}

func side(s *runs.Shelf, id string) (compare.Side, error) {
	r, err := s.Read(id)
	if err != nil {
		return compare.Side{}, err
	}
	side := r.Side("")
	side.Dir = id
	return side, nil
}

// sweepPairs removes comparisons that are not among the pairs.
func sweepPairs(entries []runs.Entry, pairs []pair, to string) error {
	want := map[string]bool{}
	for _, p := range pairs {
		want[filepath.Join(p.B, pairPrefix+p.A)] = true
	}
	for _, e := range entries {
		there, err := os.ReadDir(filepath.Join(to, runsDir, e.ID))
		if err != nil {
			return fmt.Errorf("write site: %w", err)
		}
		for _, f := range there {
			name := filepath.Join(e.ID, strings.TrimSuffix(f.Name(), filepath.Ext(f.Name())))
			if !strings.HasPrefix(f.Name(), pairPrefix) || want[name] {
				continue
			}
			if err := os.Remove(filepath.Join(to, runsDir, e.ID, f.Name())); err != nil {
				return fmt.Errorf("remove a comparison from the site: %w", err)
			}
		}
	}
	return nil
}
