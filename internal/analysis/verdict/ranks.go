package verdict

import (
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/record"
)

// load is a load of a record; it reads each histogram once, when a rule first needs it.
type load struct {
	*record.Load
	times, punctual, lags, late func() ranks // lags: only the generator's own
}

// heldUpKnown reports whether the generator recorded for each response how much its own lag can
// have delayed it, including arrivals that had to wait for connections because of it.
func (l *load) heldUpKnown() bool {
	return l.PunctualTime.Count > 0 && l.PunctualTime.Count == l.ResponseTime.Count
}

func loadOf(l *record.Load) *load {
	once := func(d *record.Dist) func() ranks {
		return sync.OnceValue(func() ranks { return ranksOf(d) })
	}
	return &load{l, once(&l.ResponseTime), once(&l.PunctualTime), once(&l.OwnLag), once(&l.Lag)}
}

// ranks gives values by their rank, from the histogram or else from the record's percentiles.
type ranks struct {
	d *record.Dist
	h *hdrhistogram.Histogram
}

func ranksOf(d *record.Dist) ranks {
	r := ranks{d: d}
	if h, err := d.Histogram(); h != nil && err == nil && h.TotalCount() > 0 {
		r.h = h
	}
	return r
}

// at returns the value at a rank, in ns. Without a histogram it interpolates linearly between the
// record's percentiles.
func (r ranks) at(q float64) float64 {
	q = min(max(q, 0), 1)
	if r.h != nil {
		return float64(r.h.ValueAtPercentile(100 * q))
	}
	d := r.d
	qs := []float64{0, 0.5, 0.9, 0.99, 0.999, 1}
	ns := []int64{d.MinNs, d.P50Ns, d.P90Ns, d.P99Ns, d.P999Ns, d.MaxNs}
	i := 1
	for i < len(qs)-1 && qs[i] < q {
		i++
	}
	part := (q - qs[i-1]) / (qs[i] - qs[i-1])
	return float64(ns[i-1]) + part*float64(ns[i]-ns[i-1])
}

// above returns the share by which a percentile is above a value.
func (r ranks) above(q, value float64) float64 {
	v := r.at(q)
	if v <= 0 {
		return 0
	}
	return max(v-value, 0) / v
}

// below returns the share by which a percentile falls if this share of the values does not count.
func (r ranks) below(q, share float64) float64 {
	if share <= 0 {
		return 0
	}
	return r.above(q, r.at(q-share))
}

// beyond returns the share by which a percentile rises if this share of larger values is missing.
func (r ranks) beyond(q, share float64) float64 {
	v := r.at(q)
	switch {
	case v <= 0 || share <= 0:
		return 0
	case q+share >= 1:
		return most
	}
	return max(r.at(q+share)-v, 0) / v
}
