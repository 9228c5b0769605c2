package trial

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/observe/stallfree"
	"prony.example/internal/observe/stalls"
	"prony.example/load/arrivalcheck"
	"prony.example/record"
	"prony.example/stats"
)

// watched has some stalls, and may fail at its end.
type watched struct {
	all []stalls.Stall
	err error
}

func (w watched) Begin() error         { return nil }
func (w watched) End() error           { return w.err }
func (w watched) Read() []stalls.Stall { return w.all }
func (w watched) Way() stalls.Way      { return stalls.Way{Name: stalls.PerfEvent} }
func (w watched) Lost() int            { return 0 }
func (w watched) Close() error         { return nil }

// offeredAt is a window of 5 s with an arrival each millisecond, answered after 0.1 ms; the first
// 60 waited for the core.
func offeredAt(fromNs int64) *offered {
	o := &offered{fromNs: fromNs, lengthNs: 5e9}
	o.load.Model = record.Open
	o.load.Service.CPUShare = 0.5
	for i := range int64(5000) {
		response := int64(1e5)
		if i < 60 {
			response = 6e7 - i*1e6 + 1e6
		}
		o.sample = arrivalcheck.Times{Due: append(o.sample.Due, i*1e6),
			Left: append(o.sample.Left, i*1e6), Response: append(o.sample.Response, response)}
	}
	return o
}

func logOf(w stallfree.Watch) *windowStalls {
	l := &Lab{}
	l.Slicing.Stalls = func([]int, time.Duration, func(core, pid int) bool) (stallfree.Watch,
		error) {
		return w, nil
	}
	watcher := l.watchStalls(record.Open, func() []launch.Process { return nil })
	return &windowStalls{watcher.Log(), 6000, 1, []float64{0.95}}
}

// A stall that ends before the window opens leaves its backlog in the window.
func TestStallBeforeTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := clock.Mono()
		from := began + 1e9 // after the lead-in
		log := logOf(watched{all: []stalls.Stall{{BeginNs: from - 101e6, EndNs: from - 1e6,
			LeastNs: 99e6, Cause: stalls.Hypervisor}}})
		log.Begin()
		time.Sleep(7 * time.Second)
		o := offeredAt(from)
		log.keep(o)
		if len(o.load.StallFree) == 0 || o.load.Stalls.Count != 1 {
			t.Fatalf("%+v, %+v", o.load.Stalls, o.load.StallFree)
		}
		found := false
		for _, x := range o.load.StallFree {
			found = found || x.Quantile == 0.95
			if x.Quantile >= 0.99 && (x.KeptShare >= 1 || x.Ns > 2e5) {
				t.Errorf("the backlog of a stall before the window counts: %+v", x)
			}
		}
		if !found {
			t.Errorf("p95 is missing: %+v", o.load.StallFree)
		}
	})
}

// If the service's processor time is unknown, its backlog may be that of a busy service: at 95 % of
// its core it works off a stall of 100 ms in 2 s, and arrivals of 2 of the 5 s are left out.
func TestUnknownUtilization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := map[float64]float64{}
		for _, used := range []float64{0.95, 0, -1} {
			from := clock.Mono() + 1e9
			log := logOf(watched{all: []stalls.Stall{{BeginNs: from - 101e6, EndNs: from - 1e6,
				LeastNs: 99e6, Cause: stalls.Hypervisor}}})
			log.Begin()
			time.Sleep(7 * time.Second)
			o := offeredAt(from)
			o.load.Service.CPUShare = used
			log.keep(o)
			kept[used] = o.load.StallFree[0].KeptShare
		}
		if kept[0] != kept[0.95] || kept[-1] != kept[0.95] || kept[0] > 0.65 {
			t.Errorf("shares of arrivals by utilization: %v", kept)
		}
	})
}

// Utilization in slices is unknown if processor time is, or if processes began and ended within
// slices, whose time is missing: 0.2 s of 1 s of two cores is a tenth.
func TestUtilizationInSlices(t *testing.T) {
	for _, row := range []struct {
		cpuNs    int64
		complete bool
		want     float64
	}{{2e8, true, 0.1}, {2e8, false, -1}, {-1, true, -1}} {
		f := &side{clock: halfClock{row.complete}, openSum: record.Sliced{CPUNs: row.cpuNs,
			TimeNs: 1e9}}
		if got := f.utilization(2); got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
}

// halfClock is a CPUClock of processes that is complete or not.
type halfClock struct{ complete bool }

func (halfClock) Refresh()         {}
func (halfClock) Read() int64      { return 0 }
func (halfClock) Grouped() bool    { return false }
func (c halfClock) Complete() bool { return c.complete }
func (halfClock) Close()           {}

// Throughput without stalls is unknown in a trial whose open load shows that stalls depend on the
// service, in its window or in slices.
func TestDependenceIsShared(t *testing.T) {
	depends := []record.StallFree{{Quantile: 0.5}, {Quantile: 0.99, Unknown: stats.StallsDepend}}
	check := func(name string, open record.Load, want string) {
		t.Helper()
		loads := []record.Load{{WithoutStalls: &record.WithoutStalls{PerS: 1}}, open}
		if shareDependence(loads); loads[0].WithoutStalls.Unknown != want {
			t.Errorf("%s: %q, want %q", name, loads[0].WithoutStalls.Unknown, want)
		}
	}
	check("no open load", record.Load{}, "")
	few := []record.StallFree{{Unknown: stats.TooFewArrivals}}
	check("too few", record.Load{StallFree: few}, "")
	check("window", record.Load{StallFree: depends}, stats.StallsDepend)
	check("slices", record.Load{Slices: &record.Sliced{StallFree: depends}}, stats.StallsDepend)
}

// A failed watch leaves out nothing, and has the reason.
func TestStallWatchFails(t *testing.T) {
	log := logOf(watched{err: errors.New("no\nwatch")})
	log.Begin()
	o := offeredAt(clock.Mono())
	log.keep(o)
	if o.load.Stalls == nil || !strings.Contains(o.load.Stalls.Missing, "no; watch") ||
		o.load.StallFree != nil {
		t.Errorf("%+v, %+v", o.load.Stalls, o.load.StallFree)
	}
}
