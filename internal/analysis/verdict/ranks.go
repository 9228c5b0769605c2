package verdict

import (
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/record"
)

// load is one of a record's; its histograms are read once, when a rule first asks for them.
type load struct {
	*record.Load
	times, punctual, lags, late func() ranks // lags are the generator's own
}

// heldUpKnown tells whether the generator has said of each answer by how much its own lag can have
// held it up, be it that arrivals had to wait for connections behind it.
func (l *load) heldUpKnown() bool {
	return l.PunctualTime.Count > 0 && l.PunctualTime.Count == l.ResponseTime.Count
}

func loadOf(l *record.Load) *load {
	once := func(d *record.Dist) func() ranks {
		return sync.OnceValue(func() ranks { return ranksOf(d) })
	}
	return &load{l, once(&l.ResponseTime), once(&l.PunctualTime), once(&l.OwnLag), once(&l.Lag)}
}

// ranks reads values by their rank: from the histogram, else from what the record has.
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

// at is the value at a rank; without a histogram, on a line between those that the record has.
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

// above is the share by which a percentile is above a value.
func (r ranks) above(q, value float64) float64 {
	v := r.at(q)
	if v <= 0 {
		return 0
	}
	return max(v-value, 0) / v
}

// below is the share by which it falls where this share of the values does not count.
func (r ranks) below(q, share float64) float64 {
	if share <= 0 {
		return 0
	}
	return r.above(q, r.at(q-share))
}

// beyond is the share by which it rises where as many larger ones are missing.
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
