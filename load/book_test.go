package load

import (
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func noUsage() threadUsage { return threadUsage{} }

// window returns a book of a window [1000, 2000) with intervals of 100 (ns).
func window() *book {
	b := newBook(grid{100, 1000, false}, noUsage)
	b.schedule(1000, 2000)
	return b
}

// The integral of the requests under way over the window, from a list of (moment, number since the
// previous moment).
func TestArea(t *testing.T) {
	type level struct {
		at int64
		n  int
	}
	check := func(want int64, levels ...level) {
		t.Helper()
		b := window()
		for _, l := range levels {
			b.level(l.at, l.n)
		}
		if b.area != want {
			t.Errorf("%v: area %d, want %d", levels, b.area, want)
		}
	}
	check(0)
	check(0, level{500, 3}, level{900, 4})     // before
	check(0, level{1000, 7})                   // up to the opening
	check(600, level{900, 9}, level{1200, 3})  // 3 · 200
	check(3000, level{900, 9}, level{5000, 3}) // 3 over the whole window
	check(300, level{1900, 0}, level{2100, 3}) // 3 · 100
	check(0, level{2000, 0}, level{3000, 5})   // after
	check(2*100+1*50+3*850, level{1100, 2}, level{1150, 1}, level{2000, 3})
	check(2*100, level{1100, 2}, level{1100, 8}, level{1100, 9}) // no time passes
	check(1000, level{1000, 9}, level{2000, 1}, level{2000, 9})
}

func TestRequestsBelongToTheWindowByTheirDue(t *testing.T) {
	check := func(due, sent, done int64, want counts) {
		t.Helper()
		b := window()
		c := &conn{due: due, sent: sent, first: done, out: make([]byte, 10)}
		b.sent(c, sent)
		b.done(c, done)
		b.settle()
		got := counts{scheduled: b.dueInWin, sent: b.sentInWin, done: b.doneInWin,
			answered: b.answered}
		if got != want {
			t.Errorf("due %d, sent %d, done %d: %+v, want %+v", due, sent, done, got, want)
		}
		if n := b.response.TotalCount(); n != want.answered {
			t.Errorf("due %d: %d response times", due, n)
		}
		if b.total != 1 {
			t.Errorf("the progress line counts %d", b.total)
		}
	}
	check(999, 999, 1500, counts{done: 1})
	check(999, 1500, 1999, counts{done: 1})
	check(1000, 1000, 1500, counts{scheduled: 1, sent: 1, done: 1, answered: 1})
	check(1999, 1999, 1999, counts{scheduled: 1, sent: 1, done: 1, answered: 1})
	check(1999, 1999, 2000, counts{scheduled: 1, sent: 1, answered: 1}) // answered after the end
	check(1999, 2000, 2500, counts{scheduled: 1, answered: 1})          // and sent after it
	check(2000, 2000, 2500, counts{})
	check(500, 600, 2500, counts{})
}

// Lag is sent − due, own lag the part of it after the connection was free.
func TestLagAndOwnLag(t *testing.T) {
	check := func(due, free, sent, lag, own, waited int64) {
		t.Helper()
		b := window()
		b.sent(&conn{due: due, since: free}, sent)
		b.settle()
		if b.lag.Max() != lag || b.ownLag.Max() != own || b.waited != waited {
			t.Errorf("due %d, free since %d, sent %d: lag %d, own %d, waited %d; want %d, %d, %d",
				due, free, sent, b.lag.Max(), b.ownLag.Max(), b.waited, lag, own, waited)
		}
	}
	check(1100, 1050, 1100, 1, 1, 0)    // on time; 0 counts as 1
	check(1100, 1050, 1130, 30, 30, 0)  // the generator slept
	check(1100, 1100, 1130, 30, 30, 0)  // free at the very moment
	check(1100, 1120, 1130, 30, 10, 1)  // busy until 1120
	check(1100, 1130, 1130, 30, 1, 1)   // the generator lost no time
	check(1900, 2300, 2310, 410, 10, 1) // beyond the window's end
}

// Histograms clamp values beyond their range, and keep three digits of the others.
func TestRecordKeepsEverything(t *testing.T) {
	check := func(ns, want int64) {
		t.Helper()
		h := newHist()
		recordNs(h, ns)
		if got := h.Max(); h.TotalCount() != 1 || got < want || float64(got) > 1.001*float64(want) {
			t.Errorf("%d is kept as %d (%d entries), want %d", ns, got, h.TotalCount(), want)
		}
	}
	check(-5, 1)
	check(0, 1)
	check(1, 1)
	check(2047, 2047)
	check(1_000_000, 1_000_000)
	check(histMax-1, histMax-1)
	check(histMax, histMax)
	check(1<<62, histMax)
}

// A response belongs to the interval in which it came; the last interval can be short.
func TestIntervals(t *testing.T) {
	b := newBook(grid{100, 1050, false}, noUsage) // [1000, 2050): ten of 100 and one of 50
	b.schedule(1000, 2050)
	for _, at := range []int64{999, 1000, 1099, 1100, 1999, 2000, 2049, 2050} {
		b.done(&conn{due: at - 7, sent: at - 7, first: at}, at)
	}
	want := map[int]int64{0: 2, 1: 1, 9: 1, 10: 2}
	var n int64
	for i := range b.intervals {
		iv := &b.intervals[i]
		if iv.done != want[i] || iv.response.TotalCount() != want[i] {
			t.Errorf("interval %d: %d done, %d response times, want %d", i, iv.done,
				iv.response.TotalCount(), want[i])
		}
		n += iv.done
	}
	if n != b.doneInWin || n != 6 {
		t.Errorf("intervals hold %d answers, the window %d, want 6", n, b.doneInWin)
	}
	c := b.course(1050)
	if got := len(c.series().Done); got != 11 {
		t.Errorf("%d columns, want 11", got)
	}
	for i, iv := range c.histograms() {
		if want := min(100, 1050-100*i); int(iv.Length) != want || int(iv.Offset) != 100*i {
			t.Errorf("interval %d: offset %d, length %d, want %d", i, iv.Offset, iv.Length, want)
		}
	}
}

// Merged books equal one book of all events.
func TestBooksAdd(t *testing.T) {
	fill := func(b *book, from, to int64) {
		for k := from; k < to; k++ {
			at := 900 + 12*k
			b.connected(5 + k)
			b.level(at, int(k%7))
			b.sent(&conn{due: at, since: at - 3 + k%5, out: make([]byte, 11)}, at+2)
			c := &conn{due: at, sent: at + 2, first: at + 4, route: &route{status: 200}}
			b.bytesIn(at+9, 13)
			switch k % 5 {
			case 0:
				b.failed(c, at+9, class(k%int64(classes)), because("x"))
			case 1:
				b.refused(at, because("y"))
				b.reconnected(at)
			default:
				b.done(c, at+9)
			}
		}
	}
	whole, first, second := window(), window(), window()
	fill(whole, 0, 120)
	fill(first, 0, 50)
	second.levelAt = 900 + 12*49
	fill(second, 50, 120)
	first.add(second)
	if first.errors() != whole.errors() || first.errors().Total() == 0 {
		t.Errorf("errors %+v, want %+v", first.errors(), whole.errors())
	}
	type plain struct{ a, b, c, d, e, f, g, h, i int64 }
	of := func(b *book) plain {
		return plain{b.sentInWin, b.dueInWin, b.doneInWin, b.answered, b.inBytes, b.outBytes,
			b.renewed, b.waited, b.area}
	}
	if of(first) != of(whole) {
		t.Errorf("counters %+v, want %+v", of(first), of(whole))
	}
	hists := func(b *book) []*hdrhistogram.Histogram {
		return []*hdrhistogram.Histogram{b.response, b.service, b.first, b.lag, b.ownLag, b.errored,
			b.connectT, b.punctual}
	}
	for i, h := range hists(first) {
		if o := hists(whole)[i]; !h.Equals(o) || h.TotalCount() == 0 {
			t.Errorf("histogram %d differs: %d and %d entries", i, h.TotalCount(), o.TotalCount())
		}
	}
	for i := range whole.intervals {
		x, y := &first.intervals[i], &whole.intervals[i]
		if x.sent != y.sent || x.done != y.done || x.failed != y.failed ||
			!x.response.Equals(y.response) {
			t.Errorf("interval %d differs", i)
		}
	}
}

// The thread's CPU time counts from the window's opening to its end or an earlier stop; a window
// that a stall skipped has none.
func TestUsageIsOfTheWindow(t *testing.T) {
	check := func(want int64, cross []int64, stop int64) {
		t.Helper()
		now := int64(0)
		b := newBook(grid{100, 1000, false}, func() threadUsage { return threadUsage{cpuNs: now} })
		b.schedule(1000, 2000)
		for _, now = range cross {
			if now >= b.boundary {
				b.cross(now)
			}
		}
		now = stop
		b.end(now, 0)
		if got := b.cpuClose.minus(b.cpuOpen).cpuNs; got != want {
			t.Errorf("turns at %d, stopped at %d: used %d, want %d", cross, stop, got, want)
		}
	}
	check(1003, []int64{900, 1001, 1500, 2004, 2100}, 2200) // 2004 - 1001
	check(499, []int64{900, 1001}, 1500)                    // stopped inside
	check(0, []int64{900}, 950)                             // stopped before
	check(0, []int64{900, 2500}, 2500)                      // one turn over the whole window
}

// Samples exclude the wait for a connection, because the service causes it.
func TestSamplesLeaveOutWaiting(t *testing.T) {
	check := func(due, free, sent, left int64) {
		t.Helper()
		b := window()
		b.extend(&plan{}, 2, false)
		c := &conn{due: due, since: free, sent: sent, first: sent}
		b.sent(c, sent)
		b.done(c, sent+5)
		s := b.sample
		if len(s.Due) != 1 || s.Due[0] != due || s.Left[0] != left || s.Response[0] != sent+5-due {
			t.Errorf("due %d, free %d, sent %d: %+v, want left at %d", due, free, sent, s, left)
		}
	}
	check(1100, 900, 1103, 1103)  // free before: all of the lag is the generator's
	check(1100, 1150, 1153, 1103) // it waited for 50, and was 3 late after that
}

// The least-squares slope of turns that are due and not ended, at the intervals' ends.
func TestBacklogSlope(t *testing.T) {
	check := func(windowNs int64, scheduled, done, failed []int64, want float64) {
		t.Helper()
		c := course{stepNs: 100 * ms, windowNs: windowNs}
		for i := range done {
			c.intervals = append(c.intervals, interval{done: done[i], failed: failed[i]})
		}
		exactly(t, "slope", c.backlogSlope(scheduled, c.endings(false)), want)
	}
	none := []int64{0, 0, 0, 0}
	check(400*ms, []int64{5, 5, 5, 5}, []int64{5, 5, 5, 5}, none, 0)
	check(400*ms, []int64{5, 5, 5, 5}, none, none, 50) // 5 more in each 0.1 s
	check(400*ms, []int64{5, 5, 5, 5}, none, []int64{4, 4, 4, 4}, 10)
	// 5, 4, 4, 4 at 0.1, …, 0.4: (-0.15·5 - 0.05·4 + 0.05·4 + 0.15·4)/0.05.
	check(400*ms, []int64{5, 5, 5, 5}, []int64{0, 6, 5, 5}, none, -3)
	check(400*ms, []int64{5}, []int64{0}, []int64{0}, 0) // one point has no slope
	// The last interval ends with the window, at 0.35: 50, 100, 150 and 175 lie on one line.
	check(350*ms, []int64{50, 50, 50, 25}, none, none, 500)
}

// Requests of 100 ns each on two connections without pauses are always two under way, even if a
// response is reported after the next request of the other connection has left, because an engine
// queues events.
func TestLevelOutOfOrder(t *testing.T) {
	b := &book{openAt: 1000, closeAt: 2000}
	n := 0
	flow := func(at int64, d int) { b.level(at, n); n += d }
	flow(900, +1)
	flow(900, +1)
	for at := int64(1000); at < 2000; at += 100 {
		flow(at, -1)
		flow(at+60, +1) // sent 60 after the answer came
		flow(at, -1)    // which is only reported now
		flow(at+60, +1)
	}
	b.level(2500, n)
	if got, want := float64(b.area)/1000, 2*0.4; got != want {
		t.Errorf("%.2f under way, want %.2f", got, want)
	}
}

// An interrupted poll counts as the longest one: the rest of the time is not part of the thread's
// CPU time, from which polls are subtracted.
func TestInterruptedPoll(t *testing.T) {
	b := newBook(grid{1e9, 1e9, false}, func() threadUsage { return threadUsage{} })
	b.openAt, b.closeAt = 0, 1e9
	b.spun(1000, 4000)
	b.spun(1e6, 1e6+8e6)
	b.spun(2e9, 2e9+1000) // after the window
	if b.spinNs != 3000+longestPollNs {
		t.Errorf("polls took %d ns", b.spinNs)
	}
}
