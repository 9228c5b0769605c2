package generator

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"prony.example/internal/observe/host"
)

func sh(t *testing.T, ctx context.Context, script string, cores ...int) *output {
	t.Helper()
	out, err := run(ctx, command{argv: []string{"/bin/sh", "-c", script}}, t.TempDir(), cores)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRunCollectsWhatItSaysAndTook(t *testing.T) {
	out := sh(t, context.Background(), "echo a; echo b >&2; i=0; "+
		"while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 7")
	if string(out.text) != "a\n" || string(out.errs) != "b\n" || out.exit != 7 {
		t.Errorf("it said %q and %q and ended with %d", out.text, out.errs, out.exit)
	}
	if out.cpuNs <= 0 || out.cpuNs > out.elapsedNs*2 || out.rssBytes < 1<<16 {
		t.Errorf("it took %d ns of %d, and %d bytes", out.cpuNs, out.elapsedNs, out.rssBytes)
	}
}

// TestRunCountsChildren checks that the CPU time of waited-for children is included: JMeter is
// started by a script.
func TestRunCountsChildren(t *testing.T) {
	const loop = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
	alone := sh(t, context.Background(), loop)
	child := sh(t, context.Background(), "/bin/sh -c '"+loop+"'; true")
	// A tenth of it is far more than the time without the child, which is nearly 0.
	if child.cpuNs*10 < alone.cpuNs {
		t.Errorf("%d ns alone, %d ns in a child", alone.cpuNs, child.cpuNs)
	}
}

func TestRunPins(t *testing.T) {
	cores, err := host.Cores()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cores {
		out := sh(t, context.Background(), "grep Cpus_allowed_list /proc/self/status", c)
		if f := strings.Fields(string(out.text)); len(f) != 2 || f[1] != fmt.Sprint(c) {
			t.Errorf("core %d: it may use %q", c, out.text)
		}
	}
	// Only that thread was pinned: this process still has all its cores.
	if after, err := host.Cores(); err != nil || len(after) != len(cores) {
		t.Errorf("cores are %v afterwards, were %v", after, cores)
	}
	if _, err := run(context.Background(), command{argv: []string{"/bin/true"}}, t.TempDir(),
		[]int{1000}); err == nil || !strings.Contains(err.Error(),
		"pin the load generator to cores [1000]") {
		t.Errorf("error %v for a core that is not there", err)
	}
}

// TestRunLeavesNothing checks that two long-lived processes, one of them in the background, end
// with the context, and that background processes end with the command.
func TestRunLeavesNothing(t *testing.T) {
	sleep := fmt.Sprintf("sleep 9%d", os.Getpid()) // unique to this test
	left := func() []string { return mentioning(t, strings.ReplaceAll(sleep, " ", "\x00")) }
	check := func(script string, cancelled bool) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			for cancelled && len(left()) == 0 && ctx.Err() == nil {
				time.Sleep(10 * time.Millisecond)
			}
			if cancelled {
				cancel()
			}
		}()
		sh(t, ctx, script)
		for tries := 0; len(left()) > 0; tries++ {
			if tries > 6000 { // a minute
				t.Fatalf("%s left %q", script, left())
			}
			time.Sleep(10 * time.Millisecond) // the kernel ends them after our kill returns
		}
	}
	check(sleep+" & "+sleep, true)
	check(sleep+" & exit 0", false)
}

func TestTail(t *testing.T) {
	check := func(text, errs, want string) {
		t.Helper()
		o := &output{text: []byte(text), errs: []byte(errs)}
		if got := o.tail(); got != want {
			t.Errorf("tail of %q and %q is %q, want %q", text, errs, got, want)
		}
	}
	check("", "", "nothing")
	check("a\n\n b\t", "c", "a b c")
	check("", strings.Repeat("x", 401), "…"+strings.Repeat("x", 400))
}
