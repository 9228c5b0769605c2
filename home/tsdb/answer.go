package tsdb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	jsoniter "github.com/json-iterator/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/jsonutil"
)

// refusal is an error with Prometheus' name for its kind.
type refusal struct {
	kind   string
	status int
	error
}

func (r refusal) Unwrap() error { return r.error }

func badData(err error) error { return refusal{"bad_data", http.StatusBadRequest, err} }

// kindOf classifies an error as Prometheus does.
func kindOf(err error) refusal {
	const clientGone = 499 // nginx's
	var r refusal
	var canceled promql.ErrQueryCanceled
	var late promql.ErrQueryTimeout
	var disk promql.ErrStorage
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &canceled), errors.Is(err, context.Canceled):
		return refusal{"canceled", clientGone, err}
	case errors.As(err, &late):
		return refusal{"timeout", http.StatusServiceUnavailable, err}
	case errors.As(err, &disk):
		return refusal{"internal", http.StatusInternalServerError, err}
	}
	return refusal{"execution", http.StatusUnprocessableEntity, err}
}

// envelope is the outer object of every answer.
type envelope struct {
	Status    string   `json:"status"`
	Data      any      `json:"data,omitempty"`
	ErrorType string   `json:"errorType,omitempty"`
	Error     string   `json:"error,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Infos     []string `json:"infos,omitempty"`
}

func answering(f read) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, notes, err := f(r)
		status, out := http.StatusOK, envelope{Status: "success", Data: data}
		out.Warnings, out.Infos = notes.AsStrings(r.FormValue("query"), 10, 10)
		if err != nil {
			k := kindOf(err)
			status = k.status
			out = envelope{Status: "error", ErrorType: k.kind, Error: k.Error()}
		} else if data == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		text, err := encode(out)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(text) // the client has gone
	})
}

// encode returns JSON without the escapes that only HTML needs: queries contain many such
// characters.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// params reads the parameters of a request; err is the first error.
type params struct {
	*http.Request
	err error
}

func (p *params) refuse(name string, err error) {
	if p.err == nil && err != nil {
		p.err = badData(fmt.Errorf("invalid parameter %q: %w", name, err))
	}
}

// The default limits of time in Prometheus.
var (
	minTime = time.Unix(math.MinInt64/1000+62135596801, 0).UTC()
	maxTime = time.Unix(math.MaxInt64/1000-62135596801, 999999999).UTC()
)

func (p *params) stretch() (from, to time.Time) {
	return p.time("start", minTime), p.time("end", maxTime)
}

func (p *params) time(name string, usual time.Time) time.Time {
	text := p.FormValue(name)
	if text == "" {
		return usual
	}
	t, err := parseTime(text)
	if err != nil {
		p.refuse(name, fmt.Errorf("invalid time value for '%s': %w", name, err))
	}
	return t
}

func (p *params) must(name string) time.Time {
	t, err := parseTime(p.FormValue(name))
	p.refuse(name, err)
	return t
}

func parseTime(s string) (time.Time, error) {
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		whole, part := math.Modf(f)
		part = math.Round(part*1000) / 1000
		return time.Unix(int64(whole), int64(part*float64(time.Second))).UTC(), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	for _, t := range []time.Time{minTime, maxTime} { // years of more than four digits
		if s == t.Format(time.RFC3339Nano) {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("cannot parse %q to a valid timestamp", s)
}

// duration reads a duration in seconds or in Prometheus' units. Without the parameter it returns
// usual, or fails if usual is negative.
func (p *params) duration(name string, usual time.Duration) time.Duration {
	text := p.FormValue(name)
	if text == "" && usual >= 0 {
		return usual
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		ns := f * float64(time.Second)
		if ns > math.MaxInt64 || ns < math.MinInt64 {
			p.refuse(name, fmt.Errorf("cannot parse %q to a valid duration. It overflows int64",
				text))
		}
		return time.Duration(ns)
	}
	d, err := model.ParseDuration(text)
	if err != nil {
		p.refuse(name, fmt.Errorf("cannot parse %q to a valid duration", text))
	}
	return time.Duration(d)
}

// limit returns the maximum number of items in the answer; 0: all.
func (p *params) limit() int {
	n, err := wholeOr(p.FormValue("limit"), 0)
	if err == nil && n < 0 {
		err = errors.New("limit must be non-negative")
	}
	p.refuse("limit", err)
	return n
}

func wholeOr(text string, usual int) (int, error) {
	if text == "" {
		return usual, nil
	}
	return strconv.Atoi(text)
}

// JSON forms of the engine's results. The engine's own JSON is for debugging only, and writes very
// large and very small numbers with all digits.

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

// point is a time with its value.
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

// shown converts a result of the engine to its JSON form.
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

// exemplars are the exemplars of a series.
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
