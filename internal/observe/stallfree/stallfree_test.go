package stallfree

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"prony.example/internal/observe/stalls"
	"prony.example/load"
	"prony.example/load/arrivalcheck"
	"prony.example/load/pace"
)

// fake is a watch that remembers what it was asked for, and may fail to begin.
type fake struct {
	cores  []int
	ours   func(core, pid int) bool
	all    []stalls.Stall
	begin  error
	closed int
	lost   int
}

func (f *fake) Begin() error         { return f.begin }
func (f *fake) End() error           { return nil }
func (f *fake) Read() []stalls.Stall { return f.all }
func (f *fake) Way() stalls.Way      { return stalls.Way{Name: "fake"} }
func (f *fake) Lost() int            { return f.lost }
func (f *fake) Close() error         { f.closed++; return nil }

func (f *fake) open(cores []int, _ time.Duration, ours func(core, pid int) bool) (Watch, error) {
	f.cores, f.ours = cores, ours
	return f, nil
}

// Processes of the targets are no stalls anywhere, this program is none on the load's cores, and
// nothing is one on cores that can be left.
func TestWhatIsOurs(t *testing.T) {
	f := &fake{}
	pids := []int{100}
	w := New(Setup{Open: f.open, Service: []int{1, 2}, Load: []int{0, 1}, Free: []int{2},
		PIDs: func() []int { return pids }})
	if !slices.Equal(f.cores, []int{0, 1, 2}) || !w.Works() {
		t.Errorf("cores %v, works %v", f.cores, w.Works())
	}
	log := w.Log()
	log.Begin()
	pids = []int{100, 200} // one more begins
	log.End()
	check := func(core, pid int, want bool) {
		t.Helper()
		if got := f.ours(core, pid); got != want {
			t.Errorf("process %d on core %d: %v, want %v", pid, core, got, want)
		}
	}
	self := os.Getpid()
	check(0, self, true)
	check(1, self, true)
	check(2, self, true)
	check(3, self, false)
	for _, core := range []int{0, 1, 2} {
		check(core, 100, true)
		check(core, 200, true)
		check(core, 300, core == 2)
	}
	w.Close()
	w.Close()
	if f.closed != 1 || w.Works() {
		t.Errorf("closed %d times, works %v", f.closed, w.Works())
	}
}

// A watch that cannot be opened, or that fails, says why, and nobody's wish says nothing.
func TestMissing(t *testing.T) {
	missing := func(w *Watcher) string {
		t.Helper()
		log := w.Log()
		log.Begin()
		log.End()
		if log.Recorded() {
			t.Error("stalls are recorded")
		}
		if s := log.Summary(); s != nil {
			return s.Missing
		}
		return ""
	}
	refused := func([]int, time.Duration, func(int, int) bool) (Watch, error) {
		return nil, errors.New("a\nb")
	}
	if got := missing(New(Setup{Open: refused})); got != "a; b" {
		t.Errorf("refused: %q", got)
	}
	f := &fake{begin: errors.New("c")}
	w := New(Setup{Open: f.open, PIDs: func() []int { return nil }})
	if got := missing(w); got != "c" || f.closed != 1 {
		t.Errorf("fails: %q, closed %d times", got, f.closed)
	}
	if got := missing(Without("")); got != "" {
		t.Errorf("nobody wants a record: %q", got)
	}
}

// A watch counts lost ticks since it was opened, a log only those of its load.
func TestLostTicksOfALog(t *testing.T) {
	f := &fake{}
	w := New(Setup{Open: f.open, PIDs: func() []int { return nil }})
	check := func(want int, pieces ...int) {
		t.Helper()
		log := w.Log()
		for _, lost := range pieces {
			f.lost++ // of another load
			log.Begin()
			f.lost += lost
			log.End()
		}
		if got := log.Summary().LostTicks; got != want {
			t.Errorf("%d lost ticks in pieces with %v", got, pieces)
		}
	}
	check(5, 5)
	check(0, 0)
	check(9, 2, 7)
}

// Threads of the kernel are no stalls; a kernel that keeps interrupts off is one.
func TestCauses(t *testing.T) {
	f := &fake{all: []stalls.Stall{
		{BeginNs: 10, EndNs: 30, Cause: stalls.Kernel, Name: "ksoftirqd/1"},
		{BeginNs: 20, EndNs: 50, Cause: stalls.Kernel},
		{BeginNs: 40, EndNs: 60, Cause: stalls.Process, Name: "cc1"},
		{BeginNs: 90, EndNs: 95, Cause: stalls.Process, Name: "cc1"}}}
	log := New(Setup{Open: f.open, PIDs: func() []int { return nil }}).Log()
	log.Begin()
	log.End()
	s := log.Summary()
	if s.Count != 3 || s.StalledNs != 45 || len(s.Causes) != 2 ||
		s.Causes[0].Cause != stalls.Kernel || s.Causes[1].Count != 2 || s.Causes[1].Ns != 25 {
		t.Errorf("%+v", s)
	}
	for _, x := range []struct {
		spans []Span
		want  float64
	}{
		{nil, 0}, {[]Span{{0, 100}}, 0.45}, {[]Span{{50, 100}}, 0.3}, {[]Span{{0, 20}}, 0},
		{[]Span{{0, 30}, {55, 65}}, 15.0 / 40},
	} {
		if got := log.Share(x.spans); got != x.want {
			t.Errorf("the share of stalls in %v is %v, want %v", x.spans, got, x.want)
		}
	}
}

func TestExpected(t *testing.T) {
	check := func(name string, s load.Spec, want float64) {
		t.Helper()
		if got := Expected(&s); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	flat := pace.Schedule{Rate: pace.Flat(500)}
	check("a rate", load.Spec{Schedule: flat, Lead: time.Second, Window: 4 * time.Second}, 2000)
	check("a number", load.Spec{Schedule: flat, Window: time.Hour, Requests: 30}, 30)
	check("a trace", load.Spec{Schedule: pace.Schedule{Trace: []int64{1, 2, 3}}}, 3)
	flow := load.Scenario{Flow: true, Requests: make([]load.Request, 3)}
	check("flows", load.Spec{Schedule: flat, Window: 2 * time.Second, Scenario: flow}, 3000)
}

// Arrivals outside of the spans count only in the percentile of all arrivals.
func TestPercentilesWithinSpans(t *testing.T) {
	f := &fake{}
	log := New(Setup{Open: f.open, PIDs: func() []int { return nil }}).Log()
	log.Begin()
	log.End()
	var sample arrivalcheck.Times
	for i := range int64(400) { // slow ones from 200 ms to 300 ms
		response := int64(2e6)
		if i >= 200 && i < 300 {
			response = 9e6
		}
		sample.Due, sample.Left = append(sample.Due, i*1e6), append(sample.Left, i*1e6)
		sample.Response = append(sample.Response, response)
	}
	all := log.Percentiles(sample, 0, []Span{{0, 199e6}, {300e6, 400e6}}, 0.1)
	if len(all) < 2 || all[1].Quantile != 0.9 || all[1].Ns != 2e6 || all[1].RawNs != 9e6 ||
		all[1].PunctualNs != 2e6 || all[1].KeptShare != 1 {
		t.Errorf("%+v", all)
	}
}

// Percentiles for which an interval needs more arrivals are left out. Failed requests do not count.
func TestPercentilesOfFewArrivals(t *testing.T) {
	f := &fake{}
	log := New(Setup{Open: f.open, PIDs: func() []int { return nil }}).Log()
	check := func(responses int, want ...float64) {
		t.Helper()
		var sample arrivalcheck.Times
		for i := range int64(responses) + 1 {
			sample.Due, sample.Left = append(sample.Due, i*1e6), append(sample.Left, i*1e6+1000)
			sample.Response = append(sample.Response, min(i, 1)*2e6)
		}
		var got []float64
		for _, x := range log.Percentiles(sample, 0, []Span{{FromNs: 0, ToNs: 1e9}}, 0.1) {
			got = append(got, x.Quantile)
			if x.Ns != 2e6 || x.PunctualNs != 2e6-1000 || x.Unknown != "" {
				t.Errorf("%d responses: %+v", responses, x)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d responses: quantiles %v, want %v", responses, got, want)
		}
	}
	log.Begin()
	log.End()
	check(380, 0.5, 0.9)
	check(381, 0.5, 0.9, 0.99)
}
