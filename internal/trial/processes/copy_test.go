package processes_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch/freeze"
	"prony.example/internal/service"
	"prony.example/internal/trial/processes"
	"prony.example/record"
)

// All processes of a system work in a copy of its own, which is noted while it exists; without a
// build they work in their folder, and the system has the reason.
func TestCopyOfAStart(t *testing.T) {
	order := three(t, func(s *service.Service) {
		s.Build = service.Build{Steps: [][]string{{"true"}}, Artifact: "."}
	})
	order.Service.Dir = order.Built.Dir
	b := service.Builder{Root: t.TempDir(), Tools: service.FindTools(t.Context())}
	built, err := b.Build(t.Context(), order.Service)
	if err != nil {
		t.Fatal(err)
	}
	given := order.Built
	order.Copies = t.TempDir()
	noted := map[string]bool{}
	order.Note = func(dir string) (func() error, error) {
		noted[dir] = true
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it was noted too late: %v", err)
		}
		return func() error { delete(noted, dir); return nil }, nil
	}
	check := func(built *service.Built, reason string) {
		t.Helper()
		order.Built = built
		sys := serving(t, order, false)
		if (sys.NoCopy == nil) != (reason == "") ||
			sys.NoCopy != nil && sys.NoCopy.Reason != reason {
			t.Errorf("no copy: %v, want %q", sys.NoCopy, reason)
		}
		if (sys.Dir == built.Dir) != (reason != "") || len(noted) > 0 != (reason == "") {
			t.Errorf("it works in %s of %s, noted %v", sys.Dir, built.Dir, noted)
		}
		for _, pid := range sys.PIDs() {
			if dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); dir != sys.Dir {
				t.Errorf("process %d works in %s, %v, want %s", pid, dir, err, sys.Dir)
			}
		}
		if err := errors.Join(sys.Stop(processes.OneGrace), sys.Stop(0)); err != nil {
			t.Fatal(err)
		}
		if left, err := filepath.Glob(filepath.Join(order.Copies, "*")); len(left)+len(noted) > 0 {
			t.Errorf("%v is left, noted %v, %v", left, noted, err)
		}
	}
	check(built, "")
	check(given, record.NoCopyGiven)
	order.Service.Run.Processes[0].Command = []string{"./missing"} // so that nothing is started
	order.Built = built
	if sys, err := start(t, order, false); sys != nil || err == nil {
		t.Errorf("%v, %v, want an error alone", sys, err)
	}
	if left, err := filepath.Glob(filepath.Join(order.Copies, "*")); len(left)+len(noted) > 0 {
		t.Errorf("%v is left of a start that failed, noted %v, %v", left, noted, err)
	}
}

// A system is frozen as a whole, by its group or its processes.
func TestFreezeOfASystem(t *testing.T) {
	testsets.Live(t)
	for way, noGroup := range map[string]bool{
		record.FreezeCgroup: false, record.FreezeSignals: true} {
		sys := serving(t, three(t, func(*service.Service) {}), noGroup)
		f, err := freeze.New(sys, "")
		if err != nil {
			t.Fatal(err)
		}
		if f.Way() != way && !slices.Contains([]string{record.FreezeSignals}, f.Way()) {
			t.Errorf("it is frozen by %s, want %s", f.Way(), way)
		}
		for range 3 {
			if err := f.Freeze(); err != nil {
				t.Fatal(err)
			}
			// On a busy machine, Freeze returns before threads get the turn in which they stop.
			testsets.Eventually(t, way+": the stop of all threads", func() bool {
				before := marked(t, sys)
				time.Sleep(20 * time.Millisecond)
				after := marked(t, sys)
				return len(before.Threads) >= 3 && before.CPUNs == after.CPUNs
			})
			if err := f.Thaw(); err != nil {
				t.Fatal(err)
			}
			if _, _, err := service.WaitReady(t.Context(), nil, sys.Addr().String(), "/ready",
				sys.Began(), sys.Exited()); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
