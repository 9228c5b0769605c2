package progress

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/load"
)

// atMs returns a snapshot at some milliseconds of the load, with n requests sent and done.
func atMs(ms, n int64, window bool, answerNs ...int64) load.Progress {
	return load.Progress{
		Elapsed: time.Duration(ms) * time.Millisecond, Window: window,
		Totals:   load.Totals{Due: n + 3, Sent: n + 1, Done: n, BytesIn: 10 * n},
		Response: hist(1, answerNs...), Lag: hist(400, 5e3),
	}
}

func TestPoints(t *testing.T) {
	c := openLoad
	c.Window = 100 * time.Second // points of one second
	s := newState(c)
	check := func(n load.Progress, points int, want point) {
		t.Helper()
		s.add(n)
		got := s.now
		got.lagCount, got.lagP50Ns, got.lagP99Ns, got.lagMaxNs = 0, 0, 0, 0
		if s.points != points || got != want {
			t.Errorf("at %v: point %d %+v, want point %d %+v", n.Elapsed, s.points, got, points,
				want)
		}
	}
	first := point{moment: time.Second, length: time.Second, due: 403, sent: 401, done: 400,
		bytesIn: 4000, count: 4, quantileNs: [3]int64{0, 0, 0}, maxNs: 5}
	check(atMs(250, 100, false, 2), 0, point{})
	check(atMs(500, 200, false, 3), 0, point{})
	check(atMs(750, 300, true, 4), 0, point{})
	check(atMs(1000, 400, true, 5), 1, first)
	check(atMs(1250, 500, true), 1, first)
	// Slightly late or early snapshots are near enough; the length is the actual one.
	second := point{moment: 1990 * time.Millisecond, length: 990 * time.Millisecond, due: 396,
		sent: 396, done: 396, bytesIn: 3960}
	check(atMs(1990, 796, true), 2, second)
	if perS := s.now.perS(s.now.done); math.Abs(perS-400) > 1e-9 { // 396 in 0.99 s
		t.Errorf("%g answers a second, want 400", perS)
	}
	if s.now.lagP99Ns < 5e3 || s.now.lagCount != 800 { // two snapshots of 400
		t.Errorf("lag p99 %d ns of %d, want 5,000 of 800", s.now.lagP99Ns, s.now.lagCount)
	}
	if s.backlog() != 3 { // 799 due, 796 done
		t.Errorf("backlog %d, want 3", s.backlog())
	}
}

// TestFewAnswersHaveNoPercentile checks that percentiles without an interval are not shown: p99
// needs 381 responses.
func TestFewAnswersHaveNoPercentile(t *testing.T) {
	check := func(n int64, want ...bool) {
		t.Helper()
		_, q, maxNs := summarise(hist(n, 1000))
		for i := range q {
			if (q[i] > 0) != want[i] {
				t.Errorf("p%.0f of %d answers is %d ns", percentiles[i], n, q[i])
			}
		}
		if maxNs != 1000 {
			t.Errorf("the largest of %d is %d, want 1,000", n, maxNs)
		}
	}
	check(381, true, true, true)
	check(380, true, true, false)
	check(35, true, true, false) // n(1-q) >= 3.84 q: 34.6 for p90
	check(34, true, false, false)
	check(8, true, false, false) // 8/2 - 1.96 √2 is the first above 1
	check(7, false, false, false)
}

// TestWindow checks that only responses of the window count: neither those of the lead-in nor those
// of the snapshot in which it opened, which may be of either.
func TestWindow(t *testing.T) {
	s := newState(openLoad)
	s.add(atMs(250, 100, false, 1e6))
	s.add(atMs(500, 200, true, 2e6))
	s.add(atMs(750, 400, true, 3e6, 3e6))
	s.add(atMs(1000, 600, false, 4e6)) // a response in the drain may be to a request of the window
	if n := s.window().count; n != 3 || s.all.TotalCount() != 3 {
		t.Errorf("%d and %d answers in the window, want 3", n, s.all.TotalCount())
	}
	if s.ever.count != 5 {
		t.Errorf("%d answers ever, want 5", s.ever.count)
	}
	// From 250 ms, the last snapshot outside of the window, to 750: 300 done.
	if math.Abs(s.meanDone-600) > 1e-9 {
		t.Errorf("%g/s in the window, want 600", s.meanDone)
	}
}

func TestErrorsCountFromTheWindow(t *testing.T) {
	s := newState(openLoad)
	check := func(ms int64, window bool, errors int64, want int64) {
		t.Helper()
		n := atMs(ms, ms, window)
		n.Errors[5] = errors
		s.add(n)
		if byClass, total := s.failed(); total != want || byClass[5] != want {
			t.Errorf("at %d ms: %d failed, %v, want %d", ms, total, byClass, want)
		}
	}
	check(250, false, 4, 4)
	check(500, true, 5, 1) // the fifth may be of the window
	check(750, true, 7, 3)
	check(1000, false, 7, 3)
}

// TestHistoryIsBounded checks that the history spans the whole load, whatever its length, and that
// merging loses nothing.
func TestHistoryIsBounded(t *testing.T) {
	s := newState(Config{})
	const n = 5*seriesMax + 7
	for i := range int64(n) {
		s.keep(point{moment: time.Duration(i + 1), length: 1, done: i, maxNs: (i * 7919) % n})
	}
	if len(s.series) > seriesMax {
		t.Errorf("%d points, more than %d", len(s.series), seriesMax)
	}
	var length time.Duration
	var done, biggest int64
	for i, p := range s.series {
		length, done, biggest = length+p.length, done+p.done, max(biggest, p.maxNs)
		if i > 0 && p.moment <= s.series[i-1].moment {
			t.Errorf("point %d at %v is not after %v", i, p.moment, s.series[i-1].moment)
		}
		if i < len(s.series)-1 && p.length != 8 { // 5 × 160 points are merged to 8 each
			t.Errorf("point %d is %d long, want 8", i, p.length)
		}
	}
	// 0 + 1 + … + (n-1)
	if length != n || done != n*(n-1)/2 || biggest != n-1 {
		t.Errorf("length %d, done %d, max %d; want %d, %d, %d", length, done, biggest, n,
			n*(n-1)/2, n-1)
	}
}

func TestProgress(t *testing.T) {
	check := func(requests, done int64, elapsed time.Duration, share float64,
		left time.Duration) {
		t.Helper()
		c := openLoad // 10.5 s
		c.Requests = requests
		s := newState(c)
		s.elapsed, s.totals.Done, s.opened = elapsed, done, true
		gotShare, gotLeft := s.progress()
		if math.Abs(gotShare-share) > 1e-9 || gotLeft.Round(time.Millisecond) != left {
			t.Errorf("%d of %d requests after %v: %g, %v; want %g, %v", done, requests, elapsed,
				gotShare, gotLeft, share, left)
		}
	}
	check(0, 0, 0, 0, 10500*time.Millisecond)
	check(0, 0, 2100*time.Millisecond, 0.2, 8400*time.Millisecond)
	check(0, 0, 20*time.Second, 1, 0)
	// 500 of 1,000 in 2.1 s: the other half takes as long.
	check(1000, 500, 2100*time.Millisecond, 0.5, 2100*time.Millisecond)
	check(1e6, 500, 2100*time.Millisecond, 0.2, 8400*time.Millisecond) // the time ends first
	// After a lead-in of half a second, 500 of 1,000 in 1.6 s.
	s := newState(openLoad)
	s.Requests, s.elapsed, s.opened = 1000, 2100*time.Millisecond, true
	s.base = mark{500 * time.Millisecond, load.Totals{Done: 100}}
	s.totals.Done = 600
	if share, left := s.progress(); share != 0.5 || left != 1600*time.Millisecond {
		t.Errorf("after a lead-in: %v, %v", share, left)
	}
}

func TestPhases(t *testing.T) {
	check := func(elapsed time.Duration, inWindow, opened bool, want string) {
		t.Helper()
		s := newState(openLoad)
		s.elapsed, s.inWindow, s.opened = elapsed, inWindow, opened
		if got := s.phase(); got != want {
			t.Errorf("at %v it is %s, want %s", elapsed, got, want)
		}
	}
	check(0, false, false, connecting)
	check(250*time.Millisecond, false, false, leading)
	check(time.Second, true, true, measuring)
	check(11*time.Second, false, true, draining)
	check(11*time.Second, false, false, draining) // the window fell between two snapshots
}

// tallyOf returns a tally of these values.
func tallyOf(ns ...int64) *tally {
	p := hdrhistogram.NewPacked(1, histMax, histDigits)
	p.MergeFrom(hist(1, ns...))
	t := &tally{}
	t.add(p)
	return t
}

// TestBuckets checks that classic buckets include their upper bound, as in Prometheus, and
// exponential ones also.
func TestBuckets(t *testing.T) {
	check := func(ns int64, classic, exponential int) {
		t.Helper()
		tl := tallyOf(ns, ns) // as the histogram has it, to three digits
		if i := slices.Index(tl.classic[:], 2); i != classic {
			t.Errorf("%d ns is in bucket %d, want %d", ns, i, classic)
		}
		if k := slices.Index(tl.eighths[:], 2) + eighthsFrom; k != exponential {
			t.Errorf("%d ns is in exponential bucket %d, want %d", ns, k, exponential)
		}
	}
	check(1, 0, -239)      // log2(1e-9) = -29.897; × 8 = -239.2, up
	check(1e3, 0, -159)    // -19.93 × 8 = -159.5
	check(1e3+1, 1, -159)  //
	check(2e3, 1, -151)    // eight further
	check(1e9, 18, 0)      // six decades of three; 2^0 s
	check(1e9+1e6, 19, 1)  //
	check(2e9, 19, 8)      //
	check(1e12, 27, 80)    // the last bound: 1,000 s; log2(1000) = 9.966, × 8 = 79.7
	check(histMax, 28, 81) // 1,099.5 s: 80.8
	if len(edgesNs) != 28 || !slices.IsSorted(edgesNs[:]) {
		t.Errorf("the bounds are %d", edgesNs)
	}
}
