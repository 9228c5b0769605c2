package load_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/rtsched"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// Other work on its core does not delay a load with priority, but does delay one without.
func TestAhead(t *testing.T) {
	testsets.Measured(t)
	core := cores(t, 1)
	may, begun := make(chan bool), make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with its goroutine
		_, ok := rtsched.Ahead(rtsched.Load)
		may <- ok
	}()
	if !<-may {
		t.Skip("this user may not put threads first (CAP_SYS_NICE)")
	}
	var over atomic.Bool
	defer over.Store(true)
	go func() {
		runtime.LockOSThread()
		var one unix.CPUSet
		one.Set(core[0])
		begun <- unix.SchedSetaffinity(0, &one)
		for !over.Load() {
			clock.Mono()
		}
	}()
	if err := <-begun; err != nil {
		t.Fatal(err)
	}
	waited := func(ahead bool) (share float64, priority string) {
		r := offerReal(t, truth.Fixed(time.Millisecond), load.Spec{
			Model: record.Open, Schedule: at(pace.Poisson, 5000), Connections: 16, Cores: core,
			Window: 300 * time.Millisecond, Ahead: ahead, Pacing: load.Precise,
		})
		g := r.Generator
		return float64(g.RunDelayNs) / float64(r.WindowNs), g.Priority
	}
	first, priority := waited(true)
	turns, _ := waited(false)
	if priority != "fifo 1" || first > turns/4 {
		t.Errorf("%s, it waited for its core for %.3f of the window; taking turns %.3f", priority,
			first, turns)
	}
}
