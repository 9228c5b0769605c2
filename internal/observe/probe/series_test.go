package probe

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// filled returns a log for room rows after n samples at 100 ms, where sample i has cpu i*10 ms.
func filled(room, n int) *log {
	l := newLog(room)
	for i := range int64(n) {
		l.add(row{tNs: i * 100e6, cpuNs: i * 10e6, rssBytes: i % 3, threads: 5 - i%3})
	}
	return &l
}

func TestLogHalves(t *testing.T) {
	check := func(samples, every int, wantTMs, wantRSS []int64) {
		t.Helper()
		rows, gotEvery := filled(4, samples).copy()
		if gotEvery != every {
			t.Errorf("%d samples: %d a row, want %d", samples, gotEvery, every)
		}
		s := newSeries(rows, gotEvery, 100*time.Millisecond, "proc", false)
		for i := range s.TNs {
			s.TNs[i] /= 1e6
			if s.CPUCores[i] != 0.1 { // 10 ms each 100 ms, however many are merged
				t.Errorf("%d samples, row %d: %v cores, want 0.1", samples, i, s.CPUCores[i])
			}
		}
		if !reflect.DeepEqual(s.TNs, wantTMs) || !reflect.DeepEqual(s.RSSBytes, wantRSS) {
			t.Errorf("%d samples: t %v rss %v, want %v %v",
				samples, s.TNs, s.RSSBytes, wantTMs, wantRSS)
		}
	}
	none := []int64{}
	check(0, 1, none, none)
	check(1, 1, none, none) // the origin
	check(2, 1, []int64{100}, []int64{1})
	check(5, 1, []int64{100, 200, 300, 400}, []int64{1, 2, 0, 1})
	// The sixth sample does not fit: rows (1,2)(3,4), and half a row with it.
	check(6, 2, []int64{200, 400, 500}, []int64{2, 1, 2})
	check(7, 2, []int64{200, 400, 600}, []int64{2, 1, 2})
	check(9, 2, []int64{200, 400, 600, 800}, []int64{2, 1, 2, 2})
	// (9,10) does not fit: rows (1..4)(5..8), and half a row with (9,10).
	check(11, 4, []int64{400, 800, 1000}, []int64{2, 2, 1})
	check(13, 4, []int64{400, 800, 1200}, []int64{2, 2, 2})
	check(17, 4, []int64{400, 800, 1200, 1600}, []int64{2, 2, 2, 2})
	check(20, 4, []int64{400, 800, 1200, 1600, 1900}, []int64{2, 2, 2, 2, 2})
	check(21, 8, []int64{800, 1600, 2000}, []int64{2, 2, 2})
}

func TestSeriesIsBounded(t *testing.T) {
	l := filled(logRows, 100*logRows)
	if cap(l.rows) != logRows || l.samples != 100*logRows || l.every != 128 {
		t.Errorf("room %d, %d samples, %d a row", cap(l.rows), l.samples, l.every)
	}
}

func TestSeriesSpreadsHost(t *testing.T) {
	check := func(name string, fresh []int64, wantBusy, wantSteal []float64) {
		t.Helper()
		var rows []row
		var host row
		for i := range int64(6) {
			r := row{tNs: i + 1, host: host.host, hostFresh: host.hostFresh}
			// In each period 20 ticks pass, 10 of them busy and 1 stolen; in the third 20 are busy.
			if fresh[i] > 0 {
				r.hostFresh = i + 1
				r.host = HostTicks{Busy: 10*i + 10*min(max(i-2, 0), 1), Steal: i, Total: 20 * i}
			}
			rows, host = append(rows, r), r
		}
		s := newSeries(rows, 1, time.Second, "proc", true)
		if !reflect.DeepEqual(s.BusyShare, wantBusy) ||
			!reflect.DeepEqual(s.StealShare, wantSteal) {
			t.Errorf("%s: %v %v, want %v %v",
				name, s.BusyShare, s.StealShare, wantBusy, wantSteal)
		}
		if len(s.ChargedBytes) != len(s.TNs) {
			t.Errorf("%s: columns of %d and %d", name, len(s.ChargedBytes), len(s.TNs))
		}
	}
	steal := []float64{0.05, 0.05, 0.05, 0.05, 0.05} // 1 of 20
	check("each", []int64{1, 1, 1, 1, 1, 1}, []float64{0.5, 0.5, 1, 0.5, 0.5}, steal)
	// Read at 0, 3: 40 busy of 60 ticks over three rows; later rows keep that share.
	check("each third", []int64{1, 0, 0, 1, 0, 0},
		[]float64{0.6667, 0.6667, 0.6667, 0.6667, 0.6667}, steal)
	// Read at 0, 3, 5: after that 20 busy of 40 ticks over two rows.
	check("unevenly", []int64{1, 0, 0, 1, 0, 1}, []float64{0.6667, 0.6667, 0.6667, 0.5, 0.5}, steal)
	none := []float64{unknown, unknown, unknown, unknown, unknown}
	check("never", []int64{0, 0, 0, 0, 0, 0}, none, none)
}

func TestSeriesJSON(t *testing.T) {
	rows := []row{{}, {
		tNs: 100e6, cpuNs: 33333333, labNs: 50e6, rssBytes: 4096, threads: 3, chargedBytes: 8192,
		host: HostTicks{Busy: 5, Steal: 1, Total: 20}, hostFresh: 100e6,
	}}
	got, err := json.Marshal(newSeries(rows, 1, 100*time.Millisecond, "cgroup v1", true))
	const want = `{"periodNs":100000000,"every":1,"source":"cgroup v1","tNs":[100000000],` +
		`"cpuCores":[0.3333],"labCores":[0.5],"rssBytes":[4096],"threads":[3],` +
		`"chargedBytes":[8192],"busyShare":[0.25],"stealShare":[0.05]}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
}

func TestStride(t *testing.T) {
	check := func(cost, period int64, want int) {
		t.Helper()
		if got := strideOf(cost, period); got != want {
			t.Errorf("strideOf(%d, %d) = %d, want %d", cost, period, got, want)
		}
	}
	// 0.1 % of 100 ms is 100 µs.
	check(8e3, 100e6, 1)
	check(99e3, 100e6, 1)
	check(250e3, 100e6, 3)
	check(2e6, 100e6, 21)
	check(1e9, 100e6, hostEveryMax)
	check(-1, 100, 1)
}
