// Command ready makes ready what `make bench` needs: it compiles prony, and at the same time builds
// the services of a suite. It links a third of prony's packages, so the builds begin a minute
// earlier on a machine that has nothing compiled. prony then finds them complete; a build that
// failed here is repeated by prony, which reports it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"github.com/goccy/go-yaml"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/service"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: ready SUITE.yaml, in the root of a checkout")
		os.Exit(2)
	}
	if err := makeReady(ctx, os.Args[1], compile, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "ready:", err)
		os.Exit(1)
	}
}

// makeReady calls compile while it builds the services of a suite's targets. Errors of builds are
// left to prony.
func makeReady(ctx context.Context, file string, compile func(context.Context, io.Writer) error,
	progress io.Writer) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the suite: %w", err)
	}
	var suite struct {
		Targets []string `yaml:"targets"`
	}
	if err := yaml.Unmarshal(data, &suite); err != nil {
		return fmt.Errorf("read the suite: %w", err)
	}
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	services, err := service.Catalog(root)
	if len(services) == 0 {
		return err
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() { build(ctx, root, needed(services, suite.Targets), progress) })
	return compile(ctx, progress)
}

// needed returns the services that targets name, in their order, without further builds, such as
// native ones. A suite begins with what takes longest to build: the canonical one with Rust, where
// all dependencies are compiled, and the last steps use one core only.
func needed(services []*service.Service, targets []string) (out []*service.Service) {
	for _, name := range targets {
		for _, s := range services {
			if s.Name == name && s.Other == "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// build builds services, one more at a time than this machine has processors, because some builds
// wait for downloads.
func build(ctx context.Context, root string, services []*service.Service, progress io.Writer) {
	var mu sync.Mutex
	b := &service.Builder{Root: root, Tools: service.FindTools(ctx), Progress: func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(progress, line)
	}, Again: true}
	free := make(chan struct{}, runtime.NumCPU()+1)
	var wait sync.WaitGroup
	for _, s := range services {
		if len(b.Tools.Missing(s)) > 0 {
			continue // prony names what is missing
		}
		free <- struct{}{}
		wait.Go(func() {
			_, _ = b.Build(ctx, s) //nolint:errcheck // prony reports it
			<-free
		})
	}
	wait.Wait()
}

// compile compiles bin/prony.
func compile(ctx context.Context, progress io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", buildflags.Build("-o", "bin/prony", "./cmd/prony")...)
	cmd.Env = append(os.Environ(), buildflags.Lavish)
	cmd.Stdout, cmd.Stderr = progress, progress
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmdlog.Command(cmd)
	if err := cmd.Run(); err != nil {
		return errors.Join(fmt.Errorf("compile prony: %w", err), context.Cause(ctx))
	}
	return nil
}
