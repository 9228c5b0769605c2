package testsets

import (
	"math"
	"path/filepath"
	"testing"
	"time"
)

// proc makes a folder like a mount of proc, with the counters of one moment.
func proc(t *testing.T, stat, pressure, schedstat string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "stat"), stat)
	write(t, filepath.Join(dir, "pressure/cpu"), pressure)
	write(t, filepath.Join(dir, "self/task/7/schedstat"), schedstat)
	write(t, filepath.Join(dir, "self/task/8/schedstat"), schedstat)
	write(t, filepath.Join(dir, "loadavg"), "0.50 0.40 0.30 3/250 4711\n")
	return dir
}

func TestFigures(t *testing.T) {
	a := read(proc(t, "cpu  100 100 100 1000 5 6 7 10 0 0\ncpu0 9 9 9 9 9 9 9 9 9 9\n",
		"some avg10=1.00 avg60=1.00 avg300=1.00 total=1000000\nfull avg10=0.00 total=0\n",
		"1000000000 0 5\n"))
	b := read(proc(t, "cpu  180 110 110 1270 5 6 7 40 0 0\n",
		"some avg10=1.00 avg60=1.00 avg300=1.00 total=1500000\n", "2500000000 500000000 9\n"))
	// Two seconds of two processors: 100 ticks busy, 270 idle, 30 stolen; the process used 0.4 s.
	b.wall, a.ownShare, b.ownShare = a.wall.Add(2*time.Second), 10, 10.4
	got := between(a, b)
	want := Host{Seconds: 2, Load: 2, Others: 0.3, Steal: 0.075, Delay: 0.25, Pressure: 0.25}
	for name, pair := range map[string][2]float64{"seconds": {got.Seconds, want.Seconds},
		"load": {got.Load, want.Load}, "others": {got.Others, want.Others},
		"steal": {got.Steal, want.Steal},
		"delay": {got.Delay, want.Delay}, "pressure": {got.Pressure, want.Pressure}} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
	if h := between(b, a); h.Steal != 0 || h.Others != 0 || h.Delay != 0 || h.Pressure != 0 {
		t.Errorf("counters that go back: %+v", h)
	}
	none := read(t.TempDir())
	if h := between(none, none); h != (Host{}) {
		t.Errorf("a host without counters: %+v", h)
	}
	if r := read("/proc"); r.all == 0 || r.ran == 0 || r.ownShare == 0 {
		t.Errorf("this host: %+v", r)
	}
}

func TestUnfit(t *testing.T) {
	for _, row := range []struct {
		host Host
		want bool
	}{
		{Host{Seconds: 2, Delay: 0.9, Pressure: 0.9}, false}, // of its own threads
		{Host{Seconds: 2, Steal: 0.019}, false},
		{Host{Seconds: 2, Steal: 0.02}, true},
		{Host{Seconds: 0.4, Load: 0.49}, false},
		{Host{Seconds: 0.4, Load: 0.5}, true},
		{Host{Seconds: 2, Load: 0.9}, false}, // of processes that it has ended
		{Host{Seconds: 2, Others: 0.24}, false},
		{Host{Seconds: 2, Others: 0.25}, true},
		{Host{Seconds: 2, Others: 0.1, Delay: 0.19}, false},
		{Host{Seconds: 2, Others: 0.1, Delay: 0.2}, true},
		{Host{Seconds: 2, Others: 0.09, Delay: 0.5}, false},
		{Host{Seconds: 0.4, Others: 0.9, Delay: 0.5}, false}, // a few ticks
	} {
		if got := row.host.Unfit(); got != row.want {
			t.Errorf("%+v: %v, want %v", row.host, got, row.want)
		}
	}
}
