package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"prony.example/internal/dev/testsets"
)

// longest is how many tests are named as those that took longest.
const longest = 10

// event is a line of go test -json (go doc test2json; of a build, go help buildjson).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

// took is one test that ran.
type took struct {
	name    string
	seconds float64
}

// told is what go test has told so far, all of those that run at once.
type told struct {
	sync.Mutex
	out    io.Writer
	took   []took
	memory []string            // taken from it
	left   map[string][]string // left out, by the reason
	others int                 // of make test-all
	failed []failed
	broken bool // a package failed otherwise than by tests that ended
	alone  bool // what runs now has failed beside others
	passed []string
}

// failed is a test that did, and its package.
type failed struct{ path, test string }

func newTold(out io.Writer) *told { return &told{out: out, left: map[string][]string{}} }

// telling is what is still open of one go test.
type telling struct {
	*told
	said map[string][]string // by package and test, until it ends
	ran  map[string][]took   // by package, until that ends
	bad  map[string]bool     // packages of which a test failed
}

// read takes in all that go test tells. What is no event is printed as it is.
func (t *told) read(in io.Reader) error {
	of := telling{t, map[string][]string{}, map[string][]took{}, map[string]bool{}}
	for r := bufio.NewReader(in); ; {
		line, err := r.ReadString('\n')
		var e event
		t.Lock()
		if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
			of.hear(e)
		} else if line != "" {
			fmt.Fprint(t.out, line)
		}
		t.Unlock()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read what go test tells: %w", err)
		}
	}
}

func (t telling) hear(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Fprint(t.out, e.Output)
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") {
			t.said[key] = append(t.said[key], e.Output)
		}
	case "pass", "fail", "skip":
		said := t.said[key]
		delete(t.said, key)
		if e.Test == "" {
			t.ended(e, said)
			return
		}
		if e.Action == "fail" {
			fmt.Fprint(t.out, strings.Join(said, ""))
		}
		if e.Action == "skip" {
			t.leave(key, strings.Join(said, ""))
		}
		if !strings.Contains(e.Test, "/") {
			t.ran[e.Package] = append(t.ran[e.Package], took{key, e.Elapsed})
			t.judge(e)
		}
	}
}

// judge takes down how a test ended that is none of another.
func (t telling) judge(e event) {
	switch {
	case e.Action == "fail":
		t.bad[e.Package] = true
		t.failed = append(t.failed, failed{e.Package, e.Test})
	case e.Action == "pass" && t.alone:
		t.passed = append(t.passed, e.Package+" "+e.Test)
	}
}

// ended prints the last lines of a package, and, where it failed, of tests that never ended. The
// tests of a result that go test kept took no time now.
func (t telling) ended(e event, said []string) {
	cached := false
	t.broken = t.broken || e.Action == "fail" && !t.bad[e.Package]
	for key, lines := range t.said {
		if strings.HasPrefix(key, e.Package+" ") {
			t.broken = true // it never ended
			if e.Action == "fail" {
				fmt.Fprint(t.out, strings.Join(lines, ""))
			}
			delete(t.said, key)
		}
	}
	for _, line := range said {
		cached = cached || strings.HasSuffix(line, "\t(cached)\n")
		t.broken = t.broken || strings.HasPrefix(line, "exit status ") ||
			strings.HasPrefix(line, "signal: ") // a panic, after which others were not run
		if line != "PASS\n" {
			fmt.Fprint(t.out, line)
		}
	}
	if !cached {
		t.took = append(t.took, t.ran[e.Package]...)
	}
	delete(t.ran, e.Package)
}

// leave takes down why a test was left out: the last line that it said before that it was.
func (t *told) leave(name, said string) {
	why := ""
	for line := range strings.Lines(said) {
		if !strings.Contains(line, "--- SKIP: ") {
			why = strings.TrimSpace(line)
		}
	}
	if _, reason, ok := strings.Cut(why, ".go:"); ok {
		_, why, _ = strings.Cut(reason, ": ")
	}
	switch {
	case strings.Contains(said, testsets.Elsewhere):
		t.others++
	case strings.Contains(said, testsets.Before), strings.Contains(said, testsets.Untouched):
		t.memory = append(t.memory, name+": "+why)
	default:
		t.left[why] = append(t.left[why], name)
	}
}

// close prints what is to be said of all.
func (t *told) close() {
	slices.SortStableFunc(t.took, func(a, b took) int { return cmp.Compare(b.seconds, a.seconds) })
	printList(t.out, "took longest", t.took[:min(longest, len(t.took))], func(x took) string {
		return fmt.Sprintf("%7.1f s  %s", x.seconds, x.name)
	})
	printList(t.out, "left out here, by reasons", slices.Sorted(maps.Keys(t.left)),
		func(why string) string {
			more := ""
			if n := len(t.left[why]) - 1; n > 0 {
				more = fmt.Sprintf(" and %d more", n)
			}
			return fmt.Sprintf("%s%s: %s", t.left[why][0], more, why)
		})
	printList(t.out, "failed beside others, passed alone", t.passed,
		func(name string) string { return name })
	printList(t.out, "not run again", t.memory, func(line string) string { return line })
	if t.others > 0 {
		fmt.Fprintf(t.out, "%d tests, and what is below them, are make test-all's\n", t.others)
	}
}

// printList prints a heading with a number, and a line for each.
func printList[T any](out io.Writer, what string, of []T, say func(T) string) {
	if len(of) == 0 {
		return
	}
	fmt.Fprintf(out, "%s: %d\n", what, len(of))
	for _, x := range of {
		fmt.Fprintf(out, "  %s\n", say(x))
	}
}
