// Command first is the first minute of make bench: it builds prony and, while the compiler works,
// the services of the canonical suite, and then lets prony run it. It links little, so that it is
// there within seconds of an empty build cache, and what it compiles prony needs too. What is going
// to happen, make has said before it was compiled.
//
//	go run ./internal/dev/firstrun [FLAG OF PRONY RUN...]
//
// It ends well when there is a table. That some of its numbers are INVALID, which a neighbour's
// load does, is in the table; a script that must know asks prony run, whose status 4 says so.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/goccy/go-yaml"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/service"
)

const (
	program   = "bin/prony"
	canonical = "suites/canonical.yaml"
	// invalid is prony run's status where it has a table with numbers that are INVALID.
	invalid = 4
)

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	err := first(ctx, ".", os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// first builds and runs in a checkout.
func first(ctx context.Context, root string, args []string, stdout, stderr io.Writer) error {
	report := cmdlog.Lines(stderr)
	targets, err := wanted(filepath.Join(root, canonical))
	if err != nil {
		return err
	}
	var services sync.WaitGroup
	meanwhile, enough := context.WithCancel(ctx)
	defer enough()
	services.Go(func() { build(meanwhile, root, targets, report) })
	if err := compile(ctx, root, report); err != nil {
		enough()
		services.Wait()
		return err
	}
	services.Wait()
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return run(ctx, root, args, stdout, stderr)
}

// wanted are the services that a suite names. The suite is checked by who runs it.
func wanted(file string) (names []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the suite: %w; is this a checkout of Prony?", err)
	}
	var s struct {
		Targets []string `yaml:"targets"`
	}
	if err := yaml.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("read the suite %s: %w", file, err)
	}
	return s.Targets, nil
}

// atOnce is how many services are built at once: one that waits for the disk, or for a linker on
// one core, leaves room for another, and the compiler of prony takes the rest.
const atOnce = 2

// build makes the services. Which fails or lacks a tool is told by the run, which knows what that
// means for it.
func build(ctx context.Context, root string, targets []string, report func(string)) {
	catalog, err := service.Catalog(root)
	if err != nil && len(catalog) == 0 {
		return
	}
	tools := service.FindTools(ctx)
	b := &service.Builder{Root: root, Tools: tools, Progress: report}
	free := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for _, s := range order(catalog, targets) {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			if ctx.Err() == nil && len(tools.Missing(s)) == 0 {
				_, _ = b.Build(ctx, s)
			}
		})
	}
	all.Wait()
}

// order is the catalog's services that targets name, in the order of the targets, without further
// builds of them.
func order(catalog []*service.Service, targets []string) (out []*service.Service) {
	for _, pattern := range targets {
		for _, s := range catalog {
			named, _ := path.Match(pattern, s.Name)
			if named && s.Other == "" && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// run lets prony go on.
func run(ctx context.Context, root string, args []string, stdout, stderr io.Writer) error {
	words := append([]string{"run"}, args...)
	cmd := exec.CommandContext(ctx, filepath.Join(root, program), words...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmdlog.Command(cmd)
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == invalid {
		return nil
	}
	if err != nil {
		return fmt.Errorf("prony run: %w", err)
	}
	return nil
}

// step is after how many compiled packages a line says so.
const step = 100

// compile builds prony and counts the packages as they come, of which there may be fewer to do.
func compile(ctx context.Context, root string, report func(string)) error {
	all, err := goTool(ctx, root, "list", "-deps", "./cmd/prony").Output()
	if err != nil {
		return fmt.Errorf("build prony: go list: %w; it takes Go 1.26 or newer", err)
	}
	cmd := goTool(ctx, root, buildflags.Build("-v", "-o", program, "./cmd/prony")...)
	cmd.Env = append(cmd.Env, buildflags.Lavish)
	output, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("build prony: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build prony: %w", err)
	}
	wrong := count(output, bytes.Count(all, []byte("\n")), report)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("build prony: %w\n%s", err, wrong)
	}
	return nil
}

// count tells how far go build -v is, and returns what else it said: its errors.
func count(output io.Reader, all int, report func(string)) (tail string) {
	var remainder strings.Builder
	done, fetched := 0, false
	for lines := bufio.NewReaderSize(output, 64<<10); ; {
		piece, _, err := lines.ReadLine() // of a longer line, as a linker's can be
		if err != nil {
			return remainder.String()
		}
		line := string(piece)
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			if !fetched {
				report("build prony: fetch the modules that it is made of")
			}
			fetched = true
		case strings.ContainsAny(line, " #:"):
			remainder.WriteString(line + "\n")
		default:
			if done++; done%step == 0 {
				report(fmt.Sprintf("build prony: %d of at most %d packages", done, all))
			}
		}
	}
}

// goTool is Go's own command.
func goTool(ctx context.Context, root string, args ...string) *exec.Cmd {
	return service.Command(ctx, root, os.Environ(), "go", args...)
}
