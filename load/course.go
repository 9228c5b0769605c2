package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/record"
)

// Interval is one step of the window with its response times, by arrival of the responses.
type Interval struct {
	Offset   time.Duration // from the window's opening
	Length   time.Duration // that of the step, or less if the window ended within it
	Response *hdrhistogram.Histogram
}

// grid divides a window into the intervals in which books count. A load that ends after a number of
// requests has no known length, so its intervals grow: the first fineSteps have the length step;
// after that each coarseSteps intervals are twice as long as the ones before, so that the load's
// age doubles meanwhile. course turns them into intervals of one length.
type grid struct {
	step   int64 // ns
	window int64 // ns
	grows  bool
}

// The numbers of intervals of a growing grid. A day takes 753, and a load has 51 to 100 in the end.
const (
	fineSteps   = 100
	coarseSteps = fineSteps / 2
)

// grid returns the intervals of a load's window.
func (s *Spec) grid() grid {
	if s.Requests > 0 {
		return grid{min(int64(s.Window), int64(finestStep)), int64(s.Window), true}
	}
	return grid{int64(step(s.Window)), int64(s.Window), false}
}

// finestStep is the length of intervals of short windows.
const finestStep = 100 * time.Millisecond

// step returns the length of the intervals of a window of known length. It is fine enough to plot a
// short window, and bounds the memory for histograms of a long one.
func step(window time.Duration) time.Duration {
	switch {
	case window <= 5*time.Second:
		return min(window, finestStep)
	case window <= 30*time.Second:
		return 200 * time.Millisecond
	case window <= 600*time.Second:
		return time.Second
	}
	return (window/600 + time.Second - 1).Truncate(time.Second)
}

// end returns the end of interval i, ns from the window's opening.
func (g grid) end(i int) int64 {
	if !g.grows || i < fineSteps {
		return int64(i+1) * g.step
	}
	i -= fineSteps
	length := g.step << (1 + i/coarseSteps)
	return length * int64(coarseSteps+i%coarseSteps+1)
}

// count returns the number of intervals that cover the window.
func (g grid) count() (n int) {
	for ; n == 0 && g.window > 0 || n > 0 && g.end(n-1) < g.window; n++ {
	}
	return n
}

// course is a window in intervals of one length; the last one may be shorter.
type course struct {
	stepNs, windowNs int64
	intervals        []interval
}

// course returns the intervals of a window that may have ended early. It shares histograms with the
// book.
func (b *book) course(windowNs int64) course {
	c := course{stepNs: b.grid.step, windowNs: windowNs}
	for b.grid.grows && windowNs > fineSteps*c.stepNs {
		c.stepNs *= 2
	}
	n := (windowNs + c.stepNs - 1) / c.stepNs
	c.intervals = make([]interval, n)
	copied := make([]bool, n) // its histogram is a copy
	from := int64(0)
	for i := range b.intervals {
		// An event at the very end of the window belongs to the interval that ends there.
		k := min(from/c.stepNs, n-1)
		iv, more := &c.intervals[k], &b.intervals[i]
		from = b.grid.end(i)
		switch {
		case iv.response == nil:
			*iv = *more
			continue
		case !copied[k] && more.response.TotalCount() > 0:
			iv.response, copied[k] = iv.response.Clone(), true
		}
		iv.add(more)
	}
	c.stepNs = min(c.stepNs, windowNs)
	return c
}

// length returns the length of interval i, ns.
func (c *course) length(i int) int64 { return min(c.stepNs, c.windowNs-int64(i)*c.stepNs) }

// series turns the intervals into columns.
func (c *course) series() record.Series {
	s := record.Series{IntervalNs: c.stepNs}
	for i := range c.intervals {
		iv := &c.intervals[i]
		s.Sent = append(s.Sent, iv.sent)
		s.Done = append(s.Done, iv.done)
		s.Failed = append(s.Failed, iv.failed)
		s.P50Ns = append(s.P50Ns, iv.response.ValueAtQuantile(50))
		s.P99Ns = append(s.P99Ns, iv.response.ValueAtQuantile(99))
		s.MaxNs = append(s.MaxNs, iv.response.Max())
	}
	return s
}

// histograms returns the intervals with their response times.
func (c *course) histograms() []Interval {
	out := make([]Interval, len(c.intervals))
	for i := range out {
		out[i] = Interval{
			Offset: time.Duration(int64(i) * c.stepNs), Length: time.Duration(c.length(i)),
			Response: c.intervals[i].response,
		}
	}
	return out
}

// endings returns how many turns ended in each interval, successfully or not. Turns of flows are
// not requests.
func (c *course) endings(flows bool) []int64 {
	out := make([]int64, len(c.intervals))
	for i := range out {
		iv := &c.intervals[i]
		out[i] = iv.done + iv.failed
		if flows {
			out[i] = iv.ended
		}
	}
	return out
}

// backlogSlope returns the least-squares slope, per second, of the turns that were due but have not
// ended, given how many were due and how many ended in each interval. In a queue with spare
// capacity it is near zero; above capacity it is arrivals minus capacity.
func (c *course) backlogSlope(due, ended []int64) float64 {
	n := float64(len(ended))
	if n < 2 {
		return 0
	}
	var backlog, sx, sy, sxx, sxy float64
	for i := range ended {
		backlog += float64(due[i] - ended[i])
		x := float64(min(int64(i+1)*c.stepNs, c.windowNs)) / 1e9
		sx, sy, sxx, sxy = sx+x, sy+backlog, sxx+x*x, sxy+x*backlog
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
