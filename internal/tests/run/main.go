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
	"slices"
	"strings"
	"syscall"
	"time"

	"prony/internal/tests"
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
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	order := append([]string{"test", "-json", "-vet=all", "-timeout=20m"}, packages...)
	if os.Getenv(tests.Fresh) != "" {
		order = slices.Insert(order, 2, "-count=1")
	}
	if *all {
		found, err := others(ctx, packages)
		if err != nil {
			return err
		}
		if len(found.names) == 0 {
			return fmt.Errorf("run the other tests: make test leaves out nothing of %q",
				packages)
		}
		// What has passed is known by the sums, which know more than go test's own.
		order = append([]string{"test", "-json", "-vet=off", "-count=1", "-timeout=60m",
			"-run=^(" + strings.Join(found.names, "|") + ")$"}, found.packages...)
	}
	cmd := exec.CommandContext(ctx, "go", order...)
	if *all {
		cmd.Env = append(os.Environ(), tests.Set+"="+tests.All)
	}
	cmd.Stderr = stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	told := newTold(stdout)
	err = errors.Join(told.read(out), cmd.Wait())
	told.close()
	if err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	return nil
}
