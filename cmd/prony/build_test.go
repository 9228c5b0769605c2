package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"prony/internal/cli"
	"prony/internal/service"
)

func TestBuildJobs(t *testing.T) {
	const gib = 1 << 30
	check := func(cores int, bytes int64, want int) {
		t.Helper()
		if got := buildJobs(cores, bytes); got != want {
			t.Errorf("%d cores and %d bytes: %d builds at once, want %d", cores, bytes, got, want)
		}
	}
	check(8, 64*gib, 8) // the cores are fewer
	check(8, 7*gib, 3)  // 2 GiB each
	check(8, gib, 1)
	check(8, 0, 1) // unknown
}

// slow is a world whose builds take time, and of which one fails.
type slow struct {
	mock
	running, most atomic.Int32
}

func (s *slow) build(_ context.Context, _ *service.Builder,
	x *service.Service) (*service.Built, error) {
	s.most.Store(max(s.most.Load(), s.running.Add(1)))
	time.Sleep(time.Second)
	s.running.Add(-1)
	if x.Name == "b" {
		return nil, errors.New("build b: no")
	}
	return &service.Built{Hash: x.Name}, nil
}

// So many at once, each outcome at its service's place, and one failure stops nobody.
func TestBuildsSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slow{}
		a := &app{world: w}
		var services []*service.Service
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			services = append(services, &service.Service{Name: name})
		}
		began := time.Now()
		out := a.buildAll(t.Context(), a.world.build, nil, services, 2)
		if took := time.Since(began); took != 3*time.Second || w.most.Load() != 2 {
			t.Errorf("5 builds of 1 s took %v, %d at once; want 3 s, 2", took, w.most.Load())
		}
		for i, o := range out {
			if name := services[i].Name; name == "b" {
				if o.err == nil {
					t.Error("b was built")
				}
			} else if o.err != nil || o.built.Hash != name {
				t.Errorf("%s: %+v", name, o)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, o := range a.buildAll(ended, a.world.build, nil, services[:1], 1) {
			if o.err == nil || !strings.Contains(o.err.Error(), "interrupted") {
				t.Errorf("error %v", o.err)
			}
		}
	})
}

// What is kept aside is not measured unless it is named, and the table says so.
func TestKeptAside(t *testing.T) {
	const name = "go-fiber/otel"
	out, _, exit := say(t, mock{}, "run", "--root", checkout(t), "--targets",
		"go-fiber,go-nethttp", "--blocks", "1")
	if exit != cli.Fine || !strings.Contains(out, "kept aside: it is instrumented") ||
		!strings.Contains(out, "(--targets "+name+" measures it)") {
		t.Errorf("exit %d\n%s", exit, out)
	}
	if n := strings.Count(out, name+"  "); n != 1 { // its row; the way to measure it ends otherwise
		t.Errorf("%s has %d rows:\n%s", name, n, out)
	}
	out, _, exit = say(t, mock{}, "run", "--root", checkout(t), "--targets", name, "--blocks", "1")
	if exit != cli.Fine || strings.Contains(out, "kept aside") {
		t.Errorf("named, exit %d\n%s", exit, out)
	}
}

// A system is six programs that start in turn.
func TestStartupGuess(t *testing.T) {
	s := &service.Service{Run: service.Run{Command: []string{"x"}}}
	one := startupGuess(s, service.Target{})
	s.Run.Processes = make([]service.Process, 6)
	if six := startupGuess(s, service.Target{}); one != time.Second || six != 48*time.Second {
		t.Errorf("one %v, six %v", one, six)
	}
}

// whole is a world whose builds have all that is printed of them.
type whole struct{ mock }

func (whole) build(context.Context, *service.Builder, *service.Service) (*service.Built, error) {
	return &service.Built{SHA256: strings.Repeat("0", 64)}, nil
}

// What is named is built; its further builds are only where their tools are.
func TestNamedBuilds(t *testing.T) {
	root := checkout(t)
	services, err := service.Catalog(root)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	exit := cli.Code(run(t.Context(), whole{}, []string{"build", "--root", root, "java-helidon"},
		&stdout, &stderr))
	if exit != cli.Fine {
		t.Fatalf("exit %d\n%s", exit, &stderr)
	}
	tools := service.FindTools(t.Context())
	for _, s := range services {
		if s.Name != "java-helidon" {
			continue
		}
		want := s.Label() + " "
		if s.Other != "" && len(tools.Missing(s)) > 0 {
			want = "skipped " + s.Label() + ": "
		}
		if !strings.Contains("\n"+stdout.String(), "\n"+want) {
			t.Errorf("no line begins with %q:\n%s", want, &stdout)
		}
	}
}
