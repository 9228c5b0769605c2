package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/launch/freeze"
	"prony.example/internal/observe/cpuclock"
	"prony.example/record"
)

// A container that works by a timer uses no processor time while it is stopped in any way, and goes
// on afterwards. The engine's pause needs only access to the engine.
func TestStoppedContainer(t *testing.T) {
	testsets.Live(t)
	l := launcher(t, Options{})
	for _, way := range []string{record.FreezeCgroup, record.FreezeEngine, record.FreezeSignals} {
		t.Run(way, func(t *testing.T) {
			if way != record.FreezeEngine && os.Getuid() != 0 {
				t.Skip("needs root")
			}
			p := start(t, l, launch.Spec{Args: []string{"/act", "act-ticks"}})
			says(t, p, "ready")
			f, err := freeze.New(p, way)
			if err != nil || f.Way() != way {
				t.Fatalf("stopped by %v, error %v", f, err)
			}
			used := func(d time.Duration) time.Duration {
				c := cpuclock.New(p.PIDs)
				before := c.Read()
				time.Sleep(d)
				return time.Duration(c.Read() - before)
			}
			for range 3 {
				if err := f.Freeze(); err != nil {
					t.Fatal(err)
				}
				// The scheduler may add a tick late.
				if ns := used(500 * time.Millisecond); ns > 5*time.Millisecond {
					t.Errorf("a stopped container used %v", ns)
				}
				if err := f.Thaw(); err != nil {
					t.Fatal(err)
				}
				testsets.Eventually(t, "work", func() bool {
					return used(100*time.Millisecond) > 0
				})
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// For root, the best way to stop a container is its control group, of either version.
func TestContainerIsFrozenByItsGroup(t *testing.T) {
	testsets.Live(t)
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	p := start(t, launcher(t, Options{}), launch.Spec{Args: []string{"/act", "act-forever"}})
	f, err := freeze.New(p, "")
	if err != nil || f.Way() != record.FreezeCgroup {
		t.Fatalf("stopped by %v, error %v", f, err)
	}
	if err := errors.Join(f.Freeze(), f.Close()); err != nil {
		t.Error(err)
	}
}

// A container that a killed lab left frozen or paused is removed.
func TestStoppedContainerIsRemoved(t *testing.T) {
	testsets.Live(t)
	for _, way := range []string{record.FreezeCgroup, record.FreezeEngine} {
		if way == record.FreezeCgroup && os.Getuid() != 0 {
			continue
		}
		l := launcher(t, Options{})
		p := start(t, l, launch.Spec{Args: []string{"/act", "act-ticks"}})
		says(t, p, "ready")
		f, err := freeze.New(p, way)
		if err == nil {
			err = f.Freeze()
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), testsets.Patience)
		err = removeContainer(ctx, l.engine, p.name)
		cancel()
		if err != nil {
			t.Errorf("stopped by %s: %v", way, err)
			_ = f.Close() // so that the container can end
		}
	}
}

// The group of a system is the parent of its containers' groups.
func TestFreezerOf(t *testing.T) {
	mounts := cgroup.Mounts("30 20 0:1 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"31 20 0:2 / /cg/freezer rw - cgroup cgroup rw,freezer\n")
	check := func(path string, system *pod, want string) {
		t.Helper()
		g := cgroup.FreezerGroup(mounts, map[string]string{"freezer": path})
		if got := fmt.Sprint(freezerOf(g, system)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	check("/docker/1a", nil, "{/cg/freezer/docker/1a freezer 1}")
	check("/prony-pod-1-2/1a", &pod{name: "prony-pod-1-2"}, "{/cg/freezer/prony-pod-1-2 freezer 1}")
	check("/docker/1a", &pod{name: "prony-pod-1-2"}, "{/cg/freezer/docker/1a freezer 1}")
	none := cgroup.FreezerGroup(mounts[:1], map[string]string{"freezer": "/docker/1a"})
	if none.Dir != "" {
		t.Errorf("without a freezer: %v", none)
	}
}
