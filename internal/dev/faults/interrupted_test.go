package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// A run of ten trials that is interrupted at any moment and resumed has ten good records, whichever
// signal ended it: ten trials one after another, or five starts of two targets in slices. The first
// run of each signal has four trials; those of Ctrl-C and of a kill are not in the long set.
func TestInterruptedRun(t *testing.T) {
	testsets.Once(t, "runs that are interrupted and resumed", programFiles)
	const times = 20 // of each signal in the long set; each is remembered for itself
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for i := range times + 1 {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
			moments := rand.New(rand.NewPCG(seed, uint64(i)<<8|uint64(sig)))
			trials, long := 10, 15*time.Second
			if i == 0 {
				trials, long = 4, 8*time.Second
			}
			at := time.Duration(moments.Int64N(int64(long)))
			args := fmt.Sprintf("--targets go-two --blocks %d --interleave blocks", trials)
			if i%2 == 1 {
				args = fmt.Sprintf("--targets go-two,go-three --blocks %d --slices 1s", trials/2)
			}
			t.Run(fmt.Sprintf("%s/%d", sig, i), func(t *testing.T) {
				if i > 0 || sig == syscall.SIGTERM {
					testsets.Long(t, "runs that are interrupted at other moments", programFiles)
				}
				interrupted(t, args, trials, sig, at)
			})
		}
	}
}

// interrupted begins a run of so many trials, ends it with a signal at a time after its first
// records can come, and resumes it.
func interrupted(t *testing.T, args string, trials int, sig syscall.Signal, at time.Duration) {
	t.Helper()
	s := newScene(t)
	s.furnish("go-two")
	p := s.begin("", s.arguments("--root ROOT run "+args+brief+"--out OUT")...)
	p.bound = 3 * within
	p.run(t)
	s.begun("OUT")
	time.Sleep(at)
	_ = syscall.Kill(p.cmd.Process.Pid, sig) // it may have ended
	first := p.wait(t)
	_, before, _, err := record.Read(s.path("OUT"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v after %v: %d records", sig, at, len(before))
	s.resumed("OUT", trials, sig == syscall.SIGKILL, first)
}

// begun waits until a run has its head.
func (s *scene) begun(dir string) {
	s.t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(s.path(dir + "/" + record.RunFile)); err == nil {
			return
		}
		if time.Now().After(end) {
			s.t.Fatal("the run never began")
		}
	}
}

// resumed resumes a run, unless it had ended, and requires this many good records and no
// interrupted one; failed ones are those of starts that others replace. torn: the last record of
// the first part may be incomplete.
func (s *scene) resumed(dir string, want int, torn bool, first ended) ended {
	s.t.Helper()
	p := s.begin("", s.arguments("--root ROOT run --resume "+dir)...)
	p.bound = 3 * within
	p.run(s.t)
	second := p.wait(s.t)
	_, records, bad, err := record.Read(s.path(dir))
	good, cut := 0, 0
	for _, r := range records {
		if r.Outcome == record.Measured {
			good++
		} else if r.Failure.Interrupted {
			cut++
		}
	}
	most := 0
	if torn {
		most = 1
	}
	if err != nil || len(bad) > most || good != want || cut > 0 {
		s.t.Errorf("%d of %d records are good, want %d; %d are interrupted, bad lines %v, error "+
			"%v\n%s\n%s", good, len(records), want, cut, bad, err, first.stderr, second.stderr)
	}
	return second
}
