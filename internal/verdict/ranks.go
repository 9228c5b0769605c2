package verdict

import (
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony/internal/result"
)

// load is one of a record's; its histograms are read once, when a rule first asks for them.
type load struct {
	*result.Load
	times, lags, late func() ranks // of response times, own lag and lag
}

func loadOf(l *result.Load) *load {
	once := func(d *result.Dist) func() ranks {
		return sync.OnceValue(func() ranks { return ranksOf(d) })
	}
	return &load{l, once(&l.ResponseTime), once(&l.OwnLag), once(&l.Lag)}
}

// ranks reads values by their rank: from the histogram, else from what the record has.
type ranks struct {
	d *result.Dist
	h *hdrhistogram.Histogram
}

func ranksOf(d *result.Dist) ranks {
	r := ranks{d: d}
	if h, err := hdrhistogram.Decode([]byte(d.HDR)); err == nil && h.TotalCount() > 0 {
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

// below is the share by which a percentile falls where this share of the values does not count.
func (r ranks) below(q, share float64) float64 {
	v := r.at(q)
	if v <= 0 || share <= 0 {
		return 0
	}
	return max(v-r.at(q-share), 0) / v
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
