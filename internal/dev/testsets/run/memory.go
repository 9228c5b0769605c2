package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/files"
	"prony.example/internal/dev/testsets"
)

// A test that is flaky in often of the last window runs of a set counts as broken.
const (
	often  = 3
	window = 10
)

// flakes is a line of flaky.ndjson, in testsets.Folder: the flaky tests of one run.
type flakes struct {
	At    time.Time     `json:"at"`
	Set   string        `json:"set"`
	Tests []flakyResult `json:"flaky"`
}

// flakyResult is a test that passed when repeated, and the host's figures of its tries.
type flakyResult struct {
	Test  string          `json:"test"`
	Kind  kind            `json:"kind"`
	Hosts []testsets.Host `json:"hosts,omitempty"`
}

// remember adds this run to those of the set, and returns the tests that count as broken. A run in
// which go test reused all results does not count.
func (l *ledger) remember(now []name, set string) (broken []string, err error) {
	if len(l.sorted(func(item name) bool {
		return !l.tries[item][0].cached && l.last(item).end != skipped
	})) == 0 {
		return nil, nil
	}
	dir, err := testsets.Folder()
	if err != nil {
		return nil, err
	}
	run := flakes{At: clock.Wall(), Set: set, Tests: []flakyResult{}}
	for _, item := range now {
		r := flakyResult{Test: item.String(), Kind: l.kind(item)}
		for _, t := range l.tries[item] {
			r.Hosts = append(r.Hosts, t.hosts...)
		}
		run.Tests = append(run.Tests, r)
	}
	path := filepath.Join(dir, "flaky.ndjson")
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	line, err := json.Marshal(run)
	if err != nil {
		return nil, err
	}
	text = append(append(text, line...), '\n')
	return brokenIn(text, set), files.Put(path, text)
}

// brokenIn returns the tests that were flaky too often in the last runs of a set. A line that it
// cannot read is skipped.
func brokenIn(text []byte, set string) (broken []string) {
	var runs []flakes
	for line := range bytes.Lines(text) {
		var f flakes
		if json.Unmarshal(line, &f) == nil && f.Set == set {
			runs = append(runs, f)
		}
	}
	times := map[string]int{}
	for _, run := range runs[max(0, len(runs)-window):] {
		for _, r := range run.Tests {
			if times[r.Test]++; times[r.Test] == often {
				broken = append(broken, r.Test)
			}
		}
	}
	slices.Sort(broken)
	return broken
}

// longFile contains how each test of the third set last ended, one per line, sorted by name.
const longFile = "internal/dev/testsets/long.ndjson"

// result is a line of longFile.
type result struct {
	Test    string  `json:"test"`
	Result  outcome `json:"result"`
	Date    string  `json:"date"` // of the run, in UTC
	Seconds float64 `json:"seconds"`
}

// note writes how the tests of the third set ended into a file. Tests that were skipped, because
// they passed before or lack a tool, keep their line.
func note(file string, l *ledger) error {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the results of the third set: %w", err)
	}
	all := map[string]result{}
	for line := range bytes.Lines(text) {
		var r result
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("read the results of the third set: %w", err)
		}
		all[r.Test] = r
	}
	for item, tries := range l.tries {
		if o := judge(l.kind(item), tries); o != none {
			all[item.String()] = result{item.String(), o, clock.Wall().Format(time.DateOnly),
				l.last(item).seconds}
		}
	}
	var out bytes.Buffer
	for _, r := range slices.SortedFunc(maps.Values(all), func(a, b result) int {
		return cmp.Compare(a.Test, b.Test)
	}) {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s\n", line)
	}
	if err := files.Put(file, out.Bytes()); err != nil {
		return fmt.Errorf("write the results of the third set: %w", err)
	}
	return nil
}
