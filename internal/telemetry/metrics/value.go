package metrics

import (
	jsoniter "github.com/json-iterator/go"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/jsonutil"
)

// What the engine finds, as the interface writes it. The engine's own JSON is for debugging only,
// and writes very large and very small numbers with all their digits.

// moment is a time in ms, written in seconds.
type moment int64

func (t moment) MarshalJSON() ([]byte, error) {
	return written(func(to *jsoniter.Stream) { jsonutil.MarshalTimestamp(int64(t), to) })
}

// float is written as a text, because JSON has no NaN.
type float float64

func (f float) MarshalJSON() ([]byte, error) {
	return written(func(to *jsoniter.Stream) { jsonutil.MarshalFloat(float64(f), to) })
}

// buckets is a native histogram.
type buckets histogram.FloatHistogram

func (b *buckets) MarshalJSON() ([]byte, error) {
	return written(func(to *jsoniter.Stream) {
		jsonutil.MarshalHistogram((*histogram.FloatHistogram)(b), to)
	})
}

func written(by func(*jsoniter.Stream)) ([]byte, error) {
	const usual = 32 // bytes
	s := jsoniter.NewStream(jsoniter.ConfigDefault, nil, usual)
	by(s)
	return s.Buffer(), s.Error
}

// point is a moment with what was then.
type point [2]any

type course struct {
	Metric     labels.Labels `json:"metric"`
	Values     []point       `json:"values,omitempty"`
	Histograms []point       `json:"histograms,omitempty"`
}

type instant struct {
	Metric    labels.Labels `json:"metric"`
	Value     *point        `json:"value,omitempty"`
	Histogram *point        `json:"histogram,omitempty"`
}

// shown is an answer of the engine's as the interface writes it.
func shown(v parser.Value) any {
	switch v := v.(type) {
	case promql.Matrix:
		out := make([]course, len(v))
		for i, s := range v {
			out[i].Metric = s.Metric
			for _, p := range s.Floats {
				out[i].Values = append(out[i].Values, point{moment(p.T), float(p.F)})
			}
			for _, p := range s.Histograms {
				out[i].Histograms = append(out[i].Histograms, point{moment(p.T), (*buckets)(p.H)})
			}
		}
		return out
	case promql.Vector:
		out := make([]instant, len(v))
		for i, s := range v {
			out[i].Metric = s.Metric
			if s.H != nil {
				out[i].Histogram = &point{moment(s.T), (*buckets)(s.H)}
			} else {
				out[i].Value = &point{moment(s.T), float(s.F)}
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
