// Command run runs one of the three sets of tests. It compiles all packages first, so that no
// compiler runs beside a test, runs exact and live tests several at a time, and then measured tests
// one at a time. It repeats failed tests alone, and ends with the slowest tests, the
// skipped ones with reasons, and the counts.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "tests:", err)
		os.Exit(1)
	}
}

// patience is how long go test may take to end after an interrupt.
const patience = 10 * time.Second

// run runs a set of tests in the packages of the arguments, or in all packages.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(stderr)
	all := flags.Bool("all", false, "run the first and the second set of tests")
	later := flags.Bool("long", false, "run the third set of tests, and note the results")
	only := flags.Bool("compile", false, "compile what the tests need, and run none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	set := ""
	if *all {
		set = testsets.All
	} else if *later {
		set = testsets.Later
	}
	complete := flags.NArg() == 0
	from := modules
	if complete && set == "" { // home needs three times as many modules, which are not here yet
		from = modules[:1]
	}
	suites, err := scan(ctx, from, flags.Args())
	if err != nil {
		return err
	}
	if err := compile(ctx, suites, stdout, stderr); err != nil || *only {
		return err
	}
	l := newLedger(stdout, suites)
	steps := plan(suites, set)
	if len(steps) == 0 {
		return errors.New("these packages have no tests of this set")
	}
	for _, step := range steps {
		began := clock.Mono()
		var wait sync.WaitGroup
		free := make(chan bool, abreast)
		for _, o := range step {
			free <- true
			wait.Go(func() {
				o.run(ctx, l, stderr)
				<-free
			})
		}
		wait.Wait()
		l.step(step, time.Duration(clock.Mono()-began))
	}
	if ctx.Err() == nil {
		l.repeat(func(o order) { o.run(ctx, l, stderr) }, set)
	}
	if ctx.Err() == nil && set == testsets.Later && complete {
		l.complain(note(longFile, l))
	}
	return errors.Join(context.Cause(ctx), l.close(set))
}

// compile compiles the packages with their tests and all imports, without linking. Errors of
// packages are left to go test, which reports them.
func compile(ctx context.Context, suites []suite, stdout, stderr io.Writer) error {
	begin := clock.Mono()
	for module, in := range byModule(suites) {
		args := []string{"list", "-e", "-export", "-deps", "-test", "-f", ""}
		args = append(args, buildflags.Flags...)
		for _, s := range in {
			args = append(args, s.path)
		}
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Stderr = module, stderr
		cmd.Env = append(os.Environ(), buildflags.Lavish)
		if err := cmd.Run(); ctx.Err() != nil || errors.Is(err, exec.ErrNotFound) {
			return fmt.Errorf("compile the tests: %w", err)
		}
	}
	if elapsed := time.Duration(clock.Mono() - begin); elapsed > time.Second {
		fmt.Fprintf(stdout, "compiled in %.0f s\n", elapsed.Seconds())
	}
	return nil
}

// byModule yields the packages of each module that has any, in the order of modules.
func byModule(suites []suite) iter.Seq2[string, []suite] {
	return func(yield func(string, []suite) bool) {
		for _, module := range modules {
			in := slices.DeleteFunc(slices.Clone(suites), func(s suite) bool {
				return s.module != module
			})
			if len(in) > 0 && !yield(module, in) {
				return
			}
		}
	}
}

// order is one run of go test.
type order struct {
	args        []string
	set, module string
	tests       map[string][]string // by package: the tests that it runs
}

// abreast is how many orders run at the same time: more than processors, because most live tests
// wait.
var abreast = runtime.GOMAXPROCS(0) + 2

// plan returns the steps of a set: first exact and live tests, whose orders run abreast, then each
// order of measured tests with nothing beside.
func plan(suites []suite, set string) (steps [][]order) {
	var wide []order
	for module, in := range byModule(suites) {
		w, alone := planModule(in, set)
		for _, o := range alone {
			o.module = module
			steps = append(steps, []order{o})
		}
		for _, o := range w {
			o.module = module
			wide = append(wide, o)
		}
	}
	// Orders of many packages begin first, because they take longest.
	slices.SortStableFunc(wide, func(a, b order) int { return len(b.tests) - len(a.tests) })
	if len(wide) > 0 {
		steps = slices.Insert(steps, 0, wide)
	}
	return steps
}

// planModule sorts the tests of a module into exact and live ones, and measured ones.
func planModule(suites []suite, set string) (wide, alone []order) {
	if set == testsets.Later {
		remaining := func(s suite) []string { return without(s.long, s.measuring) }
		measuring := func(s suite) []string { return intersection(s.long, s.measuring) }
		return orders(named(suites, remaining, set, "-p=1", "-count=1")),
			portions(suites, measuring, set, "-count=1")
	}
	none := func(suite) []string { return nil }
	measuring := none // of the first set
	var count []string
	if set == testsets.All { // these tests remember their dependencies better than go test
		measuring = func(s suite) []string { return without(s.measuring, s.later) }
		count = []string{"-count=1"}
	}
	// Packages without a choice of tests have the same arguments in every run, so that go test
	// keeps their results.
	simple := func(s suite) bool { return len(s.measuring)+len(s.second)+len(s.long) == 0 }
	separate := func(s suite) bool { return parts(s, set) > 1 }
	mixed := slices.DeleteFunc(slices.Clone(suites), simple)
	alone = portions(mixed, measuring, set, count...)
	for _, s := range mixed {
		if separate(s) {
			wide = append(wide, divide(s, set, count...)...)
		}
	}
	suites = slices.DeleteFunc(suites, func(s suite) bool { return !simple(s) })
	mixed = slices.DeleteFunc(mixed, separate)
	width := fmt.Sprintf("-p=%d", runtime.GOMAXPROCS(0))
	return append(orders(except(mixed, measuring, set, append(count, width)...),
		except(suites, none, set, width)), wide...), alone
}

// parts is the number of processes that run the exact and live tests of a package: several where
// one process would run them one after the other for minutes.
func parts(s suite, set string) int {
	switch strings.TrimPrefix(s.path, buildflags.Module+"/") {
	case "cmd/prony":
		if set == "" {
			return 3
		}
		return 6
	case "internal/dev/faults":
		if set == testsets.All {
			return 6
		}
	}
	return 1
}

// divide orders the exact and live tests of a package in parts, each with the same number of tests
// of the second set.
func divide(s suite, set string, args ...string) []order {
	names := make([][]string, parts(s, set))
	sorted := append(intersection(s.all, s.second), without(s.all, s.second)...)
	if set == testsets.All {
		sorted = without(without(sorted, s.measuring), s.later)
	}
	for i, test := range sorted {
		names[i%len(names)] = append(names[i%len(names)], test)
	}
	var out []order
	for i := range names {
		out = append(out, named([]suite{s}, func(suite) []string { return names[i] }, set,
			append(args, "-p=1")...))
	}
	return orders(out...)
}

// orders returns the orders that have any tests.
func orders(all ...order) []order {
	return slices.DeleteFunc(all, func(o order) bool { return len(o.tests) == 0 })
}

// portion is how many names of measured tests an order has at most. A test that hangs until go
// test's timeout then loses only the later tests of its order.
const portion = 20

// portions orders the tests that value selects, those of a package one after the other.
func portions(suites []suite, value func(suite) []string, set string, args ...string) []order {
	var names []string
	var out []order
	for _, s := range suites {
		names = append(names, without(value(s), names)...)
	}
	for group := range slices.Chunk(names, portion) {
		out = append(out, named(suites, func(s suite) []string {
			return intersection(value(s), group)
		}, set, append(args, "-p=1")...))
	}
	return out
}

// named orders the tests that value selects. go test takes one pattern for all packages, so tests
// of the same names in other packages also run: except leaves those out.
func named(suites []suite, value func(suite) []string, set string, args ...string) order {
	names := union(suites, value)
	o := order{set: set, tests: map[string][]string{}}
	for _, s := range suites {
		if in := intersection(s.all, names); len(in) > 0 {
			o.tests[s.path] = in
		}
	}
	o.args = slices.Concat(args, []string{"-run=" + pattern(names)})
	return o
}

// except orders all tests except those that value selects in any of the packages.
func except(suites []suite, value func(suite) []string, set string, args ...string) order {
	names := union(suites, value)
	o := order{set: set, tests: map[string][]string{}, args: args}
	if len(names) > 0 {
		o.args = slices.Concat(args, []string{"-skip=" + pattern(names)})
	}
	for _, s := range suites {
		o.tests[s.path] = without(s.all, names)
	}
	return o
}

// union returns the names that value selects in any of the packages, sorted.
func union(suites []suite, value func(suite) []string) (names []string) {
	for _, s := range suites {
		names = append(names, value(s)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// without returns the names that are not among others.
func without(names, alternatives []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return slices.Contains(alternatives, n)
	})
}

// intersection returns the names that are among others.
func intersection(names, alternatives []string) []string {
	return without(names, without(names, alternatives))
}

// pattern matches tests by name, for -run and -skip.
func pattern(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

// packages returns the packages of an order, those with many tests first: go test begins them in
// this order, and the longest should not be the last.
func (o order) packages() []string {
	return slices.SortedFunc(maps.Keys(o.tests), func(a, b string) int {
		return cmp.Or(len(o.tests[b])-len(o.tests[a]), strings.Compare(a, b))
	})
}

// run runs go test and records its events.
func (o order) run(ctx context.Context, l *ledger, stderr io.Writer) {
	args := slices.Concat([]string{"test", "-json", "-vet=off", "-timeout=" + limit(o.set)},
		buildflags.Flags, o.args, o.packages())
	if os.Getenv(testsets.Fresh) != "" {
		args = slices.Insert(args, 1, "-count=1")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), testsets.Set+"="+o.set)
	cmd.Dir, cmd.Stderr = o.module, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		l.complain(fmt.Errorf("run go test: %w", err))
		return
	}
	bad := l.read(o, out)
	// A test or package that failed is recorded; any other failure is go test's own.
	if err := cmd.Wait(); err != nil && !bad {
		l.complain(fmt.Errorf("run go test: %w", err))
	}
}

// limit is how long the tests of one package may take.
func limit(set string) string {
	if set == testsets.Later {
		return "2h"
	}
	return "20m"
}
