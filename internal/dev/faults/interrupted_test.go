package faults

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// A run of ten trials that is interrupted at any moment and resumed has ten good records, whichever
// signal ended it.
func TestInterruptedRun(t *testing.T) {
	testsets.Once(t, "runs that are interrupted and resumed", programFiles)
	times := 1
	if testsets.More(t, programFiles) {
		times = 20
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	moments := rand.New(rand.NewPCG(seed, 0))
	for range times {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
			interrupted(t, sig, time.Duration(moments.Int64N(int64(15*time.Second))))
		}
	}
}

// interrupted begins a run, ends it with a signal at a time after its first records can come, and
// resumes it.
func interrupted(t *testing.T, sig syscall.Signal, at time.Duration) {
	t.Helper()
	s := newScene(t)
	s.furnish("go-two")
	p := s.begin("", s.arguments("--root ROOT run --targets go-two --blocks 10 --measure 500ms "+
		"--warmup 300ms --interleave blocks --out OUT")...)
	p.bound = 3 * within
	p.run(t)
	for end := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(s.path("OUT/" + record.RunFile)); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the run never began")
		}
	}
	time.Sleep(at)
	_ = syscall.Kill(p.cmd.Process.Pid, sig) // it may have ended
	first := p.wait(t)
	_, before, _, err := record.Read(s.path("OUT"))
	if err != nil {
		t.Fatal(err)
	}
	again := s.begin("", s.arguments("--root ROOT run --resume OUT")...)
	again.bound = 3 * within
	again.run(t)
	second := again.wait(t)
	_, records, bad, err := record.Read(s.path("OUT"))
	good := 0
	for _, r := range records {
		if r.Outcome == record.Measured {
			good++
		}
	}
	t.Logf("%v after %v: %d records, then %d", sig, at, len(before), len(records))
	most := 0
	if sig == syscall.SIGKILL {
		most = 1 // it can end within a line
	}
	if err != nil || len(bad) > most || len(records) != 10 || good != 10 {
		t.Errorf("%v after %v: %d of %d records are good, bad lines %v, error %v\n%s\n%s", sig, at,
			good, len(records), bad, err, first.stderr, second.stderr)
	}
}
