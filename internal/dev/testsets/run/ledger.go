package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"prony.example/internal/dev/testsets"
)

// event is a line of go test -json (go doc test2json; of a build, go help buildjson).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

// name identifies a top-level test, or with an empty test a whole package.
type name struct{ path, test string }

func (n name) String() string { return strings.TrimSpace(n.path + " " + n.test) }

// end is how one run of a test ended.
type end string

const (
	passed  end = "pass"
	failed  end = "fail"
	skipped end = "skip"
	lost    end = "lost" // it never ran, because its package failed before
)

// try is one run of a test.
type try struct {
	end     end
	seconds float64
	cached  bool
	hosts   []testsets.Host // of the test and its subtests that measured
}

// unfit reports whether the test failed on an unfit host.
func (t try) unfit() bool {
	known := false
	for _, h := range t.hosts {
		if h.Failed && !h.Unfit() {
			return false
		}
		known = known || h.Failed
	}
	return t.end == failed && known
}

// ledger records what go test reports, of all runs that go on at the same time.
type ledger struct {
	sync.Mutex
	out       io.Writer
	suites    map[string]suite
	tries     map[name][]try
	ran       []string            // not run again, with reasons
	skippedBy map[string][]string // skipped tests by reason
	elsewhere map[string]int      // skipped tests, by the command that runs them
	errs      []error             // errors that no test stands for
}

func newLedger(out io.Writer, suites []suite) *ledger {
	l := &ledger{out: out, suites: map[string]suite{}, tries: map[name][]try{},
		skippedBy: map[string][]string{}, elsewhere: map[string]int{}}
	for _, s := range suites {
		l.suites[s.path] = s
	}
	return l
}

// complain records an error that no test stands for.
func (l *ledger) complain(err error) {
	if err != nil {
		l.Lock()
		l.errs = append(l.errs, err)
		l.Unlock()
	}
}

// kind returns the kind of a test. A package that fails as a whole counts as live.
func (l *ledger) kind(n name) kind {
	if n.test == "" {
		return live
	}
	return l.suites[n.path].kindOf(n.test)
}

// stream is the unfinished part of the events of one go test.
type stream struct {
	*ledger
	order order
	texts map[string][]string // by package and test
	open  map[name]bool       // tests that began
	ended map[name]bool
	hosts map[name][]testsets.Host
	tests map[string][]name // by package: tests that ended
	done  map[string]bool   // packages that ended
	bad   bool              // whether a test or package failed
}

// read records what go test reports about an order, and returns whether anything failed. It prints
// lines that are no events. Packages of which it reads no end failed.
func (l *ledger) read(o order, in io.Reader) (bad bool) {
	s := &stream{ledger: l, order: o, texts: map[string][]string{}, open: map[name]bool{},
		ended: map[name]bool{}, hosts: map[name][]testsets.Host{}, tests: map[string][]name{},
		done: map[string]bool{}}
	defer func() {
		l.Lock()
		defer l.Unlock()
		for path, tests := range o.tests {
			if !s.done[path] && len(tests) > 0 {
				s.fail(path)
			}
		}
		bad = s.bad
	}()
	for r := bufio.NewReader(in); ; {
		line, err := r.ReadString('\n')
		var e event
		l.Lock()
		if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
			s.hear(e)
		} else if line != "" {
			fmt.Fprint(l.out, line)
		}
		l.Unlock()
		if errors.Is(err, io.EOF) {
			return false
		} else if err != nil {
			l.complain(fmt.Errorf("read what go test reports: %w", err))
			return false
		}
	}
}

func (s *stream) hear(e event) {
	key := e.Package + " " + e.Test
	top, _, below := strings.Cut(e.Test, "/")
	item := name{e.Package, top}
	switch e.Action {
	case "run":
		s.open[item] = true
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "output":
		if _, text, ok := strings.Cut(e.Output, testsets.Figures); ok {
			var h testsets.Host
			if json.Unmarshal([]byte(text), &h) == nil {
				s.hosts[item] = append(s.hosts[item], h)
			}
		} else if !strings.HasPrefix(e.Output, "=== ") {
			s.texts[key] = append(s.texts[key], e.Output)
		}
	case "pass", "fail", "skip":
		texts := s.texts[key]
		delete(s.texts, key)
		if e.Test == "" {
			s.end(e, texts)
			return
		}
		if e.Action == "fail" {
			fmt.Fprint(s.out, strings.Join(texts, ""))
		}
		if e.Action == "skip" {
			s.skip(key, strings.Join(texts, ""))
		}
		if !below {
			s.record(item, try{end: end(e.Action), seconds: e.Elapsed, hosts: s.hosts[item]})
		}
	}
}

func (s *stream) record(item name, t try) {
	s.ended[item] = true
	s.bad = s.bad || t.end == failed || t.end == lost
	s.tries[item] = append(s.tries[item], t)
	s.tests[item.path] = append(s.tests[item.path], item)
}

// end records a package's end: tests that never ended failed, and tests that never began are lost.
func (s *stream) end(e event, texts []string) {
	cached := slices.ContainsFunc(texts, func(line string) bool {
		return strings.HasSuffix(line, "\t(cached)\n")
	})
	for _, item := range s.tests[e.Package] {
		last := &s.tries[item][len(s.tries[item])-1]
		last.cached = cached
	}
	s.done[e.Package] = true
	if e.Action == "fail" {
		s.fail(e.Package)
	} else if full := (name{e.Package, ""}); len(s.tries[full]) > 0 &&
		len(s.order.tests[e.Package]) == len(s.suites[e.Package].all) { // it ran as a whole
		s.record(full, try{end: passed})
	}
	for _, line := range texts {
		if line != "PASS\n" {
			fmt.Fprint(s.out, line)
		}
	}
}

// fail records the tests that a failed package did not end.
func (s *stream) fail(path string) {
	for key, lines := range s.texts {
		if strings.HasPrefix(key, path+" ") {
			fmt.Fprint(s.out, strings.Join(lines, ""))
			delete(s.texts, key)
		}
	}
	known := slices.ContainsFunc(s.tests[path], func(item name) bool {
		tries := s.tries[item]
		return tries[len(tries)-1].end == failed
	})
	for item := range s.open {
		if item.path == path && !s.ended[item] {
			s.record(item, try{end: failed, hosts: s.hosts[item]})
			known = true
		}
	}
	for _, test := range s.order.tests[path] {
		if item := (name{path, test}); !s.ended[item] {
			s.record(item, try{end: lost})
			known = true
		}
	}
	if !known {
		s.record(name{path, ""}, try{end: failed})
	}
}

// step prints how long the orders of a step took together.
func (l *ledger) step(orders []order, elapsed time.Duration) {
	l.Lock()
	defer l.Unlock()
	kinds, n := map[kind]int{}, 0
	for _, o := range orders {
		for path, tests := range o.tests {
			for _, test := range tests {
				kinds[l.kind(name{path, test})]++
				n++
			}
		}
	}
	fmt.Fprintf(l.out, "%d tests (%d exact, %d live, %d measured) in %.0f s\n", n, kinds[exact],
		kinds[live], kinds[measured], elapsed.Seconds())
}

// skip records why a test was skipped: the last line that it printed before that it was.
func (l *ledger) skip(name, text string) {
	why := ""
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "--- SKIP: ") {
			why = strings.TrimSpace(line)
		}
	}
	if _, reason, ok := strings.Cut(why, ".go:"); ok {
		_, why, _ = strings.Cut(reason, ": ")
	}
	switch {
	case strings.Contains(text, testsets.Elsewhere):
		l.elsewhere["make test-all"]++
	case strings.Contains(text, testsets.Longer):
		l.elsewhere["make test-long"]++
	case strings.Contains(text, testsets.Before):
		l.ran = append(l.ran, name+": "+why)
	default:
		l.skippedBy[why] = append(l.skippedBy[why], name)
	}
}
