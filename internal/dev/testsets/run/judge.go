package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"prony.example/internal/dev/testsets"
)

const (
	longest = 20 // how many of the slowest tests are listed
	most    = 10 // how many tests may fail and still be repeated
	again   = 2  // how often a failed test is repeated
	share   = 5  // on a fit host, one of this many measured tests may be inconclusive
)

// outcome is the result of a test after all its tries.
type outcome string

const (
	flaky        outcome = "flaky"        // it failed, and passed when it ran alone
	inconclusive outcome = "inconclusive" // measured, and it failed each time on an unfit host
	red          outcome = "failed"
	green        outcome = "passed"
	none         outcome = "skipped"
)

// judge returns the outcome of a test.
func judge(k kind, tries []try) outcome {
	last := tries[len(tries)-1]
	fails := 0
	unfit := true
	for _, t := range tries {
		if t.end == failed {
			fails++
		}
		if t.end == failed || t.end == lost {
			unfit = unfit && t.unfit()
		}
	}
	switch {
	case last.end == skipped && fails == 0:
		return none
	case last.end == passed && fails > 0:
		return flaky
	case last.end == passed:
		return green
	case k == measured && unfit && fails > 0:
		return inconclusive
	}
	return red
}

// last returns the last try of a test.
func (l *ledger) last(item name) try {
	tries := l.tries[item]
	return tries[len(tries)-1]
}

// sorted returns the tests for which is holds.
func (l *ledger) sorted(is func(name) bool) (names []name) {
	for item := range l.tries {
		if is(item) {
			names = append(names, item)
		}
	}
	slices.SortFunc(names, func(a, b name) int {
		return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.test, b.test))
	})
	return names
}

// repeat runs the tests that failed again, each alone, unless there are too many. Tests that were
// lost with their package run once more, together; if they fail then, they failed.
func (l *ledger) repeat(run func(order), set string) {
	gone := map[string][]string{}
	for _, item := range l.sorted(func(item name) bool { return l.last(item).end == lost }) {
		gone[item.path] = append(gone[item.path], item.test)
	}
	open := l.sorted(func(item name) bool { return l.last(item).end == failed })
	bad := len(gone)
	for _, item := range open {
		if l.kind(item) != measured || !l.last(item).unfit() {
			bad++
		}
	}
	if bad > most {
		l.complain(fmt.Errorf("%d tests failed, more than %d: none is repeated", bad, most))
		return
	}
	for _, path := range slices.Sorted(maps.Keys(gone)) {
		fmt.Fprintf(l.out, "again, because the package failed before: %s %s\n", path,
			strings.Join(gone[path], ", "))
		run(order{args: []string{"-p=1", "-count=1", "-run=" + pattern(gone[path])}, set: set,
			module: l.suites[path].module, tests: map[string][]string{path: gone[path]}})
	}
	for range again {
		for _, item := range open {
			if l.last(item).end == passed {
				continue
			}
			fmt.Fprintf(l.out, "again, alone: %s\n", item)
			tests := []string{item.test}
			if item.test == "" {
				tests = l.suites[item.path].all
			}
			run(order{args: []string{"-p=1", "-count=1", "-run=" + pattern(tests)}, set: set,
				module: l.suites[item.path].module, tests: map[string][]string{item.path: tests}})
		}
	}
}

// close prints the summary of all tests, and returns an error if the run failed.
func (l *ledger) close(set string) error {
	byOutcome := map[outcome][]name{}
	byKind := map[kind]int{}
	for _, item := range l.sorted(func(name) bool { return true }) {
		o := judge(l.kind(item), l.tries[item])
		byOutcome[o] = append(byOutcome[o], item)
		if o != none && item.test != "" {
			byKind[l.kind(item)]++
		}
	}
	l.lists()
	host := func(item name) string {
		return fmt.Sprintf("%s (%s)%s", item, l.kind(item), l.figures(item))
	}
	printList(l.out, "failed", byOutcome[red], host)
	printList(l.out, "inconclusive: failed on an unfit host", byOutcome[inconclusive], host)
	printList(l.out, "flaky: failed, then passed alone", byOutcome[flaky], host)
	broken, err := l.remember(byOutcome[flaky], set)
	printList(l.out, fmt.Sprintf("broken: flaky in %d of the last %d runs", often, window), broken,
		func(test string) string { return test })
	if err != nil {
		fmt.Fprintf(l.out, "flaky tests are not remembered: %v\n", err)
	}
	if len(broken) > 0 && os.Getenv(testsets.Strict) == "1" {
		l.complain(fmt.Errorf("%d tests are broken: repair or remove them", len(broken)))
	}
	l.complain(l.loophole(byKind[measured], len(byOutcome[inconclusive])))
	if n := len(byOutcome[red]); n > 0 {
		l.complain(fmt.Errorf("%d tests failed", n))
	}
	for _, k := range []kind{exact, live, measured} {
		fmt.Fprintf(l.out, "%-12s %d\n", k, byKind[k])
	}
	for _, o := range []outcome{flaky, inconclusive} {
		fmt.Fprintf(l.out, "%-12s %d\n", o, len(byOutcome[o]))
	}
	fmt.Fprintf(l.out, "%d passed, %d failed, %d skipped\n",
		len(byOutcome[green])+len(byOutcome[flaky]), max(len(byOutcome[red]), min(len(l.errs), 1)),
		len(byOutcome[none])+len(byOutcome[inconclusive]))
	return errors.Join(l.errs...)
}

// loophole returns an error if too many measured tests were inconclusive on a host that was fit
// over the whole measured phase.
func (l *ledger) loophole(all, open int) error {
	load, steal, seconds := 0.0, 0.0, 0.0
	for item, tries := range l.tries {
		for _, t := range tries {
			if t.cached || l.kind(item) != measured {
				continue
			}
			for _, h := range t.hosts {
				load, steal = load+h.Load*h.Seconds, steal+h.Steal*h.Seconds
				seconds += h.Seconds
			}
		}
	}
	if seconds > 0 {
		load, steal = load/seconds, steal/seconds
		fmt.Fprintf(l.out, "host while measuring: load of others %.1f, steal %.1f %%\n", load,
			100*steal)
	}
	if load < testsets.MaxLoad && steal < testsets.MaxSteal && open*share > all {
		return fmt.Errorf("%d of %d measured tests are inconclusive, although the host was fit "+
			"(load of others %.1f, steal %.1f %%)", open, all, load, 100*steal)
	}
	return nil
}

// figures returns the host's figures of each try of a test.
func (l *ledger) figures(item name) (text string) {
	for _, t := range l.tries[item] {
		text += fmt.Sprintf("\n    %s in %.1f s", t.end, t.seconds)
		for _, h := range t.hosts {
			text += "; " + h.String()
		}
	}
	return text
}

// lists prints the slowest tests, and those that were skipped.
func (l *ledger) lists() {
	slow := l.sorted(func(item name) bool { return !l.tries[item][0].cached })
	slices.SortStableFunc(slow, func(a, b name) int {
		return cmp.Compare(l.tries[b][0].seconds, l.tries[a][0].seconds)
	})
	printList(l.out, "took longest", slow[:min(longest, len(slow))], func(item name) string {
		return fmt.Sprintf("%7.1f s  %s", l.tries[item][0].seconds, item)
	})
	printList(l.out, "skipped here, by reasons", slices.Sorted(maps.Keys(l.skippedBy)),
		func(why string) string {
			more := ""
			if n := len(l.skippedBy[why]) - 1; n > 0 {
				more = fmt.Sprintf(" and %d more", n)
			}
			return fmt.Sprintf("%s%s: %s", l.skippedBy[why][0], more, why)
		})
	printList(l.out, "not run again", l.ran, func(line string) string { return line })
	for _, command := range slices.Sorted(maps.Keys(l.elsewhere)) {
		fmt.Fprintf(l.out, "%s runs %d more\n", command, l.elsewhere[command])
	}
}

// printList prints a heading with a number, and a line for each element.
func printList[T any](out io.Writer, subject string, items []T, report func(T) string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(out, "%s: %d\n", subject, len(items))
	for _, x := range items {
		fmt.Fprintf(out, "  %s\n", report(x))
	}
}
