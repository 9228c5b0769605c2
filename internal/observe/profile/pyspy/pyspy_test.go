package pyspy

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/observe/profile"
	"prony.example/internal/observe/profile/profiletest"
)

// split starts the test program, which ends with its input.
func split(t *testing.T) profile.Subject {
	t.Helper()
	testsets.Once(t, "a profiler of Python", testsets.Needs{Facts: []string{
		testsets.Version("python3", "--version")}})
	testsets.Measured(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs Python: ", err)
	}
	cmd := exec.Command(python, "testdata/split.py")
	profiletest.Start(t, cmd)
	return profile.Subject{PID: cmd.Process.Pid, Runtime: "cpython",
		Dir: t.TempDir(), Tools: profile.Tools{PySpy: profiletest.PySpy(t)}}
}

func TestTruth(t *testing.T) {
	s := split(t)
	s.Cores = []int{0}
	cpu := profiletest.Take(t, PySpy{}, s, profile.CPU, 2*time.Second)
	profiletest.Split(t, cpu, "three (split.py)", "one (split.py)", profile.Samples(cpu))
	profiletest.Has(t, cpu, "run (split.py)", "three (split.py)", "spin (split.py)")
	off := profiletest.Take(t, PySpy{}, s, profile.OffCPU, 2*time.Second)
	// Samples of the main thread's read are as frequent as both naps together, so half of the
	// samples count.
	profiletest.Split(t, off, "nap_three (split.py)", "nap_one (split.py)",
		profile.Samples(off)/2)
	profiletest.Has(t, off, "<module> (split.py)")
	if left, err := os.ReadDir(s.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, error %v", left, err)
	}
}

func TestRefusals(t *testing.T) {
	s := split(t)
	check := func(s profile.Subject, kind, want string) {
		t.Helper()
		if _, err := (PySpy{}).Start(t.Context(), s, kind); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", kind, err, want)
		}
		if left, err := os.ReadDir(s.Dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v, error %v", kind, left, err)
		}
	}
	check(s, profile.Alloc, `does not support "alloc" profiles`)
	other := s
	other.PID = os.Getpid()
	check(other, profile.CPU, "not python")
	other = s
	other.Tools.PySpy = "/bin/false" // it ends at once without output
	check(other, profile.CPU, "py-spy wrote no profile")
	other.Tools.PySpy = "no/such"
	check(other, profile.CPU, "no such file")
}

// TestStopIsBounded checks that Stop ends the program even if its time has expired.
func TestStopIsBounded(t *testing.T) {
	session, err := PySpy{}.Start(t.Context(), split(t), profile.CPU)
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := session.Stop(over); err == nil {
		t.Error("no error")
	}
}
