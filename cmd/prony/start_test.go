package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch/process"
	"prony.example/internal/service"
	"prony.example/internal/trial/lab"
)

// stuck is the machine with an engine whose containers are processes, and which does not let go.
type stuck struct {
	apart
	journal *process.Journal
}

func (w *stuck) Enter() (j *process.Journal, reaped []string, err error) {
	w.journal, reaped, err = w.apart.Enter()
	return w.journal, reaped, err
}

func (w *stuck) Image(ctx context.Context, b *service.Builder, s *service.Service) (*service.Built,
	error) {
	return w.Build(ctx, b, s)
}

func (w *stuck) Container(_ context.Context, name string, to *lab.Launchers) error {
	to.By[name] = &process.Launcher{Journal: w.journal}
	to.Ends = append(to.Ends, func() error { return errors.New("the engine does not let go") })
	return nil
}

// Ctrl-C is how it ends, and no error; what could not be stopped is one.
func TestStartSaysWhatStays(t *testing.T) {
	root := t.TempDir()
	furnish(t, root)
	testsets.Reads(t, filepath.Join(root, "services", "go-nethttp"))
	check := func(exit int, says string, w lab.World, args ...string) {
		t.Helper()
		ctx, end := context.WithCancel(t.Context())
		defer end()
		from, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		go func() {
			defer from.Close()
			for lines := bufio.NewScanner(from); lines.Scan(); {
				if strings.Contains(lines.Text(), "Ctrl-C ends it") {
					end()
				}
			}
		}()
		var errs bytes.Buffer
		args = append([]string{"--root", root, "start", "go-nethttp", "--cpus", "1"}, args...)
		if got := cli.Code(run(ctx, w, args, out, &errs)); got != exit ||
			!strings.Contains(errs.String(), says) {
			t.Errorf("%q exits %d, want %d, and says %q, want %q", args, got, exit, &errs, says)
		}
	}
	there := apart{dir: filepath.Join(t.TempDir(), "journal")}
	check(cli.Fine, "", there)
	check(cli.Failed, "the engine does not let go", &stuck{apart: there}, "--launcher", "docker")
}
