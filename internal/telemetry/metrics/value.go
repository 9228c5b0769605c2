package metrics

import (
	"math"
	"strconv"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// What the engine finds, as the interface writes it. The engine's own JSON is for debugging only,
// and writes very large and very small numbers with all their digits.

// moment is a time in ms, written in seconds.
type moment int64

func (t moment) MarshalJSON() ([]byte, error) { return t.append(nil), nil }

func (t moment) append(b []byte) []byte {
	if t < 0 {
		b, t = append(b, '-'), -t
	}
	b = strconv.AppendInt(b, int64(t/1000), 10)
	if rest := t % 1000; rest != 0 {
		b = append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
	}
	return b
}

// float is written as a text, because JSON has no NaN.
type float float64

func (f float) MarshalJSON() ([]byte, error) { return f.append(nil), nil }

func (f float) append(b []byte) []byte {
	form := byte('f')
	if size := math.Abs(float64(f)); size != 0 && (size < 1e-6 || size >= 1e21) {
		form = 'e'
	}
	return append(strconv.AppendFloat(append(b, '"'), float64(f), form, -1, 64), '"')
}

type point promql.FPoint

func (p point) MarshalJSON() ([]byte, error) {
	b := append(moment(p.T).append([]byte{'['}), ',')
	return append(float(p.F).append(b), ']'), nil
}

// buckets is a native histogram.
type buckets struct {
	Count   float   `json:"count"`
	Sum     float   `json:"sum"`
	Buckets [][]any `json:"buckets,omitempty"` // that hold something: edges, from, to, count
}

func bucketsOf(h *histogram.FloatHistogram) buckets {
	out := buckets{Count: float(h.Count), Sum: float(h.Sum)}
	for it := h.AllBucketIterator(); it.Next(); {
		b := it.At()
		if b.Count == 0 {
			continue
		}
		edges := 2 // neither belongs to it
		switch {
		case b.LowerInclusive && b.UpperInclusive:
			edges = 3
		case b.LowerInclusive:
			edges = 1
		case b.UpperInclusive:
			edges = 0
		}
		out.Buckets = append(out.Buckets, []any{edges, float(b.Lower), float(b.Upper),
			float(b.Count)})
	}
	return out
}

type course struct {
	Metric     labels.Labels `json:"metric"`
	Values     []point       `json:"values,omitempty"`
	Histograms [][2]any      `json:"histograms,omitempty"`
}

type instant struct {
	Metric    labels.Labels `json:"metric"`
	Value     *point        `json:"value,omitempty"`
	Histogram *[2]any       `json:"histogram,omitempty"`
}

// shown is an answer of the engine's as the interface writes it.
func shown(v parser.Value) any {
	switch v := v.(type) {
	case promql.Matrix:
		out := make([]course, len(v))
		for i, s := range v {
			out[i].Metric = s.Metric
			for _, p := range s.Floats {
				out[i].Values = append(out[i].Values, point(p))
			}
			for _, p := range s.Histograms {
				out[i].Histograms = append(out[i].Histograms, [2]any{moment(p.T), bucketsOf(p.H)})
			}
		}
		return out
	case promql.Vector:
		out := make([]instant, len(v))
		for i, s := range v {
			out[i].Metric = s.Metric
			if s.H != nil {
				out[i].Histogram = &[2]any{moment(s.T), bucketsOf(s.H)}
			} else {
				out[i].Value = &point{s.T, s.F}
			}
		}
		return out
	}
	return v
}

// exemplars are those of a series.
type exemplars struct {
	Series    labels.Labels `json:"seriesLabels"`
	Exemplars []sampled     `json:"exemplars"`
}

type sampled struct {
	Labels    labels.Labels `json:"labels"`
	Value     float         `json:"value"`
	Timestamp moment        `json:"timestamp"`
}

func exemplarsOf(found []exemplar.QueryResult) []exemplars {
	out := make([]exemplars, len(found))
	for i, f := range found {
		out[i].Series, out[i].Exemplars = f.SeriesLabels, []sampled{}
		for _, e := range f.Exemplars {
			out[i].Exemplars = append(out[i].Exemplars,
				sampled{e.Labels, float(e.Value), moment(e.Ts)})
		}
	}
	return out
}
