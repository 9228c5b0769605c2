package kernel

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pprof "github.com/google/pprof/profile"
	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/observe/profile"
	"prony.example/internal/observe/profile/profiletest"
)

// build compiles one of the test programs.
func build(t *testing.T, language string) string {
	t.Helper()
	testsets.Once(t, "a profiler of the kernel", testsets.Needs{Facts: []string{
		testsets.Version("cc", "--version"), testsets.Version("perf", "--version")}})
	testsets.Measured(t)
	program := filepath.Join(t.TempDir(), "split")
	args := map[string][]string{
		"Go": {"go", "build", "-o", program, "./testdata/split"},
		// As services are shipped: without a symbol table.
		"Go, stripped": {"go", "build", "-ldflags", "-s -w", "-o", program, "./testdata/split"},
		"C": {"cc", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", program,
			"testdata/split.c"},
	}[language]
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skipf("no compiler of %s: %v", language, err)
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v: %s", err, out)
	}
	return program
}

func run(t *testing.T, program string, args ...string) (profile.Subject, io.Reader) {
	t.Helper()
	cmd := exec.Command(program, args...)
	out := profiletest.Run(t, cmd)
	return profile.Subject{PID: cmd.Process.Pid, Runtime: "native", Dir: t.TempDir()}, out
}

func fits(t *testing.T, c profile.Collector, s profile.Subject) {
	t.Helper()
	if err := c.Fits(s); err != nil {
		t.Skipf("%s: %v", c.Name(), err)
	}
}

// TestFindsWhatSpends checks that one function has three quarters of the CPU time, by the thread's
// clock.
func TestFindsWhatSpends(t *testing.T) {
	for _, c := range Collectors() {
		for _, language := range []string{"Go", "Go, stripped", "C"} {
			t.Run(c.Name()+", "+language, func(t *testing.T) {
				s, _ := run(t, build(t, language), "spin")
				fits(t, c, s)
				p := profiletest.Take(t, c, s, profile.CPU, 2*time.Second)
				three, one := "main.spinThree", "main.spinOne"
				if language == "C" {
					three, one = "spinThree", "spinOne"
				}
				profiletest.Split(t, p, three, one, profile.Samples(p))
				// 2 s are 398 samples; the clock of /proc has steps of 10 ms, and Stop takes more
				// time.
				if n := profile.Samples(p); n < 300 {
					t.Errorf("%d samples of 2 s, want about 398", n)
				}
				if total, _ := profile.Total(p); total != profile.Samples(p)*int64(tick) {
					t.Errorf("%d ns in %d samples of %v", total, profile.Samples(p), tick)
				}
			})
		}
	}
}

// TestFindsWhatWaits compares the profile with the program's own measurement of its waiting in each
// function: at least the time between two of its lines, in the same shares, and at most the time
// from the profile's start to its end.
func TestFindsWhatWaits(t *testing.T) {
	for _, language := range []string{"Go", "C"} {
		t.Run(language, func(t *testing.T) {
			s, said := run(t, build(t, language), "wait")
			fits(t, Tracing{}, s)
			prefix := ""
			if language == "Go" {
				prefix = "main."
			}
			p, waited, all := takeWaits(t, s, said)
			three, n3 := held(p, prefix+"waitThree")
			one, n1 := held(p, prefix+"waitOne")
			t.Logf("%v in %d waits, it says %v; %v in %d, %v; in %v", three, n3, waited[0], one, n1,
				waited[1], all)
			// The program's clock includes waiting for its wakeup and for a virtual machine that is
			// not running, which the scheduler does not count.
			share := func(a, b time.Duration) float64 { return float64(a) / float64(a+b) }
			off := share(three, one) - share(waited[0], waited[1])
			if three < waited[0]*9/10 || one < waited[1]*9/10 || three+one > all ||
				math.Abs(off) > 0.03 {
				t.Errorf("%v and %v, it waited %v in %v\n%s", three, one, waited, all,
					profile.Folded(p))
			}
			profiletest.Has(t, p, prefix+"waitThree", "nanosleep", kernelMark)
		})
	}
}

// takeWaits profiles for 100 lines of the program, and returns the program's measurements between
// the first and the last line.
func takeWaits(t *testing.T, s profile.Subject, said io.Reader) (p *pprof.Profile,
	waited [2]time.Duration, all time.Duration) {
	t.Helper()
	lines := bufio.NewScanner(said)
	next := func() (at int64, sums [2]time.Duration) {
		if !lines.Scan() {
			t.Fatal("it says no more: ", lines.Err())
		}
		if _, err := fmt.Sscan(lines.Text(), &at, &sums[0], &sums[1]); err != nil {
			t.Fatal(err)
		}
		return at, sums
	}
	offset, err := clock.Kernel()
	if err != nil {
		t.Fatal(err)
	}
	from := clock.Mono()
	session, err := Tracing{}.Start(t.Context(), s, profile.OffCPU)
	if err != nil {
		t.Fatal(err)
	}
	started := clock.Mono() + offset
	at, first := next()
	for at < started { // it was written before
		at, first = next()
	}
	last := first
	for range 100 {
		_, last = next()
	}
	p, err = session.Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Error(err)
	}
	waited = [2]time.Duration{last[0] - first[0], last[1] - first[1]}
	return p, waited, time.Duration(clock.Mono() - from)
}

// held returns the time and the number of samples of a function and all below it.
func held(p *pprof.Profile, name string) (ns time.Duration, seen int64) {
	for _, s := range p.Sample {
		for _, l := range s.Location {
			if l.Line[0].Function.Name == name {
				seen += s.Value[0]
				ns += time.Duration(s.Value[1])
				break
			}
		}
	}
	return ns, seen
}

func TestFitsSaysWhyNot(t *testing.T) {
	for _, c := range Collectors() {
		for _, s := range []profile.Subject{{}, {PID: 1 << 30}} {
			if err := c.Fits(s); err == nil {
				t.Errorf("%s fits %+v", c.Name(), s)
			}
		}
		self := profile.Subject{PID: os.Getpid(), Dir: t.TempDir()}
		if _, err := c.Start(t.Context(), self, profile.Alloc); err == nil {
			t.Errorf("%s takes profiles of memory", c.Name())
		}
	}
}

// TestCountsAWaitThatGoesOn checks that an unfinished wait counts up to the end. It stops and
// continues the thread, because only waits with an observed begin count.
func TestCountsAWaitThatGoesOn(t *testing.T) {
	s, _ := run(t, "sleep", "60")
	fits(t, Tracing{}, s)
	from := clock.Mono()
	session, err := Tracing{}.Start(t.Context(), s, profile.OffCPU)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []struct {
		signal os.Signal
		state  string
	}{{unix.SIGSTOP, "T (stopped)"}, {unix.SIGCONT, "S (sleeping)"}} {
		p, err := os.FindProcess(s.PID)
		if err == nil {
			err = p.Signal(to.signal)
		}
		if err != nil {
			t.Fatal(err)
		}
		for state := ""; state != to.state; {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID))
			if err != nil {
				t.Fatal(err)
			}
			_, state, _ = strings.Cut(string(status), "State:\t")
			state, _, _ = strings.Cut(state, "\n")
		}
	}
	asleep := clock.Mono()
	<-time.After(300 * time.Millisecond)
	least := time.Duration(clock.Mono() - asleep)
	p, err := session.Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	total, _ := profile.Total(p)
	if all := time.Duration(clock.Mono() - from); time.Duration(total) < least ||
		time.Duration(total) > all {
		t.Errorf("%v off the processor, want %v to %v", time.Duration(total), least, all)
	}
}
