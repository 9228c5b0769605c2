//go:build linux && !portable

package stallfree

import (
	"context"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/observe/cpuclock"
	"prony.example/load"
	"prony.example/record"
)

func TestAffinity(t *testing.T) {
	own := affinity(0)
	if len(own) == 0 || !slices.Equal(own, affinity(os.Getpid(), os.Getpid())) {
		t.Errorf("cores %v, and %v by number", own, affinity(os.Getpid(), os.Getpid()))
	}
	if cores := affinity(1 << 22); len(cores) > 0 {
		t.Errorf("a process that is not there has cores %v", cores)
	}
}

// Nothing is watched for a service elsewhere, or for a closed load.
func TestWatchesNothing(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	w := WatchNearby(record.Open, "tcp", port, nil)
	if w != nil {
		t.Errorf("a port at which nothing listens is watched: %+v", w)
	}
	offered := func(w *Nearby, model string) *load.Result {
		t.Helper()
		res, err := w.Offer(context.Background(), load.Spec{Model: model}, nil,
			func(context.Context, load.Spec) (*load.Result, error) { return &load.Result{}, nil })
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if l := offered(w, record.Open).Load; l.Stalls != nil {
		t.Errorf("stalls of a service elsewhere: %+v", l.Stalls)
	}
	w.Close()
}

// An open load to a service of this machine has its percentiles without stalls, or says why not.
func TestOffer(t *testing.T) {
	testsets.Live(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w := WatchNearby(record.Open, "tcp", l.Addr().(*net.TCPAddr).Port, nil)
	if w == nil {
		t.Fatal("the processes of a service of this machine are not known")
	}
	defer w.Close()
	if !w.stalls.Works() {
		t.Skip("stalls cannot be recorded here")
	}
	opened := func(s load.Spec) *load.Result {
		t.Helper()
		res, err := w.Offer(context.Background(), s, []float64{0.95},
			func(_ context.Context, s load.Spec) (*load.Result, error) {
				s.Observer.Window(true)
				time.Sleep(50 * time.Millisecond)
				s.Observer.Window(false)
				return &load.Result{}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	called := 0
	s := load.Spec{Model: record.Open, Window: time.Second,
		Observer: load.WindowFunc(func(bool) { called++ })}
	s.Requests = 1000
	switch res := opened(s); {
	case res.Load.Stalls == nil || res.Load.Stalls.Missing != "" || res.Load.Stalls.TimeNs < 50e6:
		t.Errorf("stalls %+v", res.Load.Stalls)
	case called != 2:
		t.Errorf("the load's own watch of its window was called %d times", called)
	}
}

// The processor time of a window is that between its beginning and its end.
func TestWatchUse(t *testing.T) {
	w := &Nearby{pids: func() []int { return []int{os.Getpid()} }}
	all := cpuclock.New(w.pids)
	if all.Read() <= 0 {
		t.Skip("this kernel does not report processor time")
	}
	var s load.Spec
	used := w.watchUse(&s)
	for _, open := range []bool{true, false} {
		load.Observers{s.Observer}.Window(open)
	}
	if *used < 0 || *used >= all.Read() {
		t.Errorf("%d ns of the process's %d", *used, all.Read())
	}
}
