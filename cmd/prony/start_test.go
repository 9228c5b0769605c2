package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch/process"
	"prony.example/internal/service"
	"prony.example/internal/trial/lab"
)

// stuck is the machine with an engine whose containers are processes, and which does not end them.
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

// Ctrl-C is the normal end and no error; a service that could not be stopped is an error.
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

// refused waits until nothing listens at a URL.
func refused(t *testing.T, url string) {
	t.Helper()
	for over := time.Now().Add(testsets.Patience); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			return
		}
		_ = conn.Close() // only opened
		if time.Now().After(over) {
			t.Fatalf("%s listens still", url)
		}
	}
}

// The command prints the target's address and the result of its contracts, keeps it until Ctrl-C,
// which is a normal end, and leaves nothing.
func TestStart(t *testing.T) {
	testsets.Live(t)
	root := t.TempDir()
	furnish(t, root)
	out, err := os.Create(filepath.Join(root, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(os.Args[0], "--root", root, "start", "go-nethttp", "--cpus", "1")
	cmd.Env = append(os.Environ(), "PRONY_TEST_MAIN=1")
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	said := ""
	for over := time.After(3 * time.Minute); !strings.Contains(said, "Ctrl-C"); {
		select {
		case err := <-ended:
			t.Fatalf("it ends with %v, and says %q", err, said)
		case <-over:
			_ = cmd.Process.Signal(syscall.SIGTERM) // the service continues
			t.Fatalf("it says %q", said)
		case <-time.After(50 * time.Millisecond):
		}
		b, err := os.ReadFile(out.Name())
		if said = string(b); err != nil {
			t.Fatal(err)
		}
	}
	has(t, "start", said, "go-nethttp listens at http://127.0.0.1:", "limits", "hello: ",
		"all responses follow the contract")
	_, url, _ := strings.Cut(said, "listens at ")
	url, _, _ = strings.Cut(url, ",")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
	refused(t, url)
	for line, want := range map[string]string{"start none": "does not exist",
		"start go-nethttp --cpus 0":      "--cpus must be greater than 0",
		"start":                          "expected prony start",
		"start go-nethttp --memory 1KiB": "at least 1MiB"} {
		_, stderr, exit := say(t, mock{}, append(strings.Fields(line), "--root", root)...)
		if exit != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d %s", line, exit, stderr)
		}
	}
}
