// Command run runs one of the two sets of tests and says what go test does not: which tests took
// longest, which were left out and why, and which were taken from memory. It prints go test's usual
// lines as they come, with what failed, and fails as go test does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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

// patience is how long go test may take to end when it is told to.
const patience = 10 * time.Second

// run runs the small set in the packages given, or, with -all, the tests that it leaves out.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("tests", flag.ContinueOnError)
	flags.SetOutput(stderr)
	all := flags.Bool("all", false, "run what make test leaves out")
	if err := flags.Parse(args); err != nil {
		return err
	}
	packages := flags.Args()
	named := len(packages) > 0
	if !named {
		packages = []string{"./..."}
	}
	suites, err := scan(ctx, packages)
	if err != nil {
		return err
	}
	if named { // what is asked for is run, whatever it links
		for i := range suites {
			suites[i].heavy = false
		}
	}
	var steps [][]order
	if *all {
		steps, err = rest(suites)
	} else {
		steps = small(suites)
	}
	if err != nil {
		return err
	}
	told := newTold(stdout)
	for _, step := range steps {
		// What fails does not keep the others from being tried.
		errs := make([]error, len(step))
		var wait sync.WaitGroup
		for i, o := range step {
			wait.Go(func() { errs[i] = o.run(ctx, told, stderr) })
		}
		wait.Wait()
		err = errors.Join(err, errors.Join(errs...))
	}
	if *all && err != nil && ctx.Err() == nil {
		if again, ok := told.again(); ok {
			err = again.run(ctx, told, stderr)
		}
	}
	told.close()
	return err
}

// order is what go test is run with.
type order struct {
	args []string
	env  []string // beside the environment
}

// small is the small set: first what does not measure, one package more at a time than there are
// cores, since tests wait for servers and browsers half of theirs; then what does, while nothing
// else is built or run. Vet is for the other set: it looks into all that is linked, which takes as
// long as half of the tests.
func small(suites []suite) [][]order {
	suites = slices.DeleteFunc(slices.Clone(suites), func(s suite) bool { return s.heavy })
	base := append(slices.Clone(buildflags.Flags), "-vet=off", "-timeout=20m")
	if os.Getenv(testsets.Fresh) != "" {
		base = append(base, "-count=1")
	}
	var all []string
	for _, s := range suites {
		all = append(all, s.path)
	}
	lavish := []string{buildflags.Lavish} // the tests, too
	wide := fmt.Sprintf("-p=%d", runtime.GOMAXPROCS(0)+1)
	in, names := named(suites, func(s suite) []string { return s.measuring })
	if len(names) == 0 {
		return [][]order{{{args: slices.Concat(base, []string{wide}, all), env: lavish}}}
	}
	return [][]order{
		{{args: slices.Concat(base, []string{wide, "-skip=" + pattern(names)}, all), env: lavish}},
		{{args: slices.Concat(base, []string{"-p=1", "-run=" + pattern(names)}, in), env: lavish}},
	}
}

// rest is what the small set leaves out, at once: what runs apart, the others, and the packages
// that it leaves out whole. What of the first two has passed is known by its sums, which know more
// than go test does.
func rest(suites []suite) ([][]order, error) {
	var step []order
	base, env := other()
	var whole []string
	suites = slices.DeleteFunc(slices.Clone(suites), func(s suite) bool {
		if s.heavy {
			whole = append(whole, s.path)
		}
		return s.heavy
	})
	for _, of := range []func(suite) []string{
		func(s suite) []string { return s.apart },
		func(s suite) []string {
			return slices.DeleteFunc(slices.Clone(s.left), func(test string) bool {
				return slices.Contains(s.apart, test)
			})
		},
	} {
		if in, names := named(suites, of); len(names) > 0 {
			step = append(step, order{args: slices.Concat(base,
				[]string{"-count=1", "-run=" + pattern(names)}, in), env: env})
		}
	}
	if len(whole) > 0 {
		step = append(step, order{args: append(base, whole...), env: env})
	}
	if len(step) == 0 {
		return nil, errors.New("run the other tests: make test leaves out none of these packages'")
	}
	return [][]order{step}, nil
}

// other is how tests of the other set are run: what compiles is lavish; the tests, which measure,
// are as everybody's programs.
func other() (args, env []string) {
	variable, _, _ := strings.Cut(buildflags.Lavish, "=")
	return slices.Concat(buildflags.Flags, []string{"-vet=off", "-exec=env -u " + variable,
		"-timeout=60m"}), []string{testsets.Set + "=" + testsets.All, buildflags.Lavish}
}

// few is how many tests may fail by what ran beside them.
const few = 5

// again is what has failed once more, alone: a service that is measured stands still for a second
// where compilers of three other packages have its core. So a few tests that failed in the midst of
// others are red if they fail by themselves, and are named in any case. Nothing is run again where
// tests were lost with a package.
func (t *told) again() (order, bool) {
	if t.broken || len(t.failed) == 0 || len(t.failed) > few {
		return order{}, false
	}
	var in, names []string
	for _, f := range t.failed {
		in, names = append(in, f.path), append(names, f.test)
	}
	slices.Sort(in)
	slices.Sort(names)
	fmt.Fprintf(t.out, "once more, alone: %s\n", strings.Join(names, ", "))
	t.alone = true
	args, env := other()
	return order{args: slices.Concat(args, []string{"-p=1", "-count=1",
		"-run=" + pattern(slices.Compact(names))}, slices.Compact(in)), env: env}, true
}

// run runs go test and tells what it says.
func (o order) run(ctx context.Context, told *told, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, o.args...)...)
	cmd.Env = append(os.Environ(), o.env...)
	cmd.Stderr = stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	if err := errors.Join(told.read(out), cmd.Wait()); err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	return nil
}
