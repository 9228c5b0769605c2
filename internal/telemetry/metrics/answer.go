package metrics

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

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
)

// refusal is an error of which Prometheus says what kind it is.
type refusal struct {
	kind   string
	status int
	error
}

func (r refusal) Unwrap() error { return r.error }

func badData(err error) error { return refusal{"bad_data", http.StatusBadRequest, err} }

// kindOf is an error as Prometheus calls it.
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

// envelope is around every answer.
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
		_, _ = w.Write(text) // who asked is gone
	})
}

// encode is JSON without the escapes that only a page of HTML needs: queries are full of them.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// params reads those of a request; the first that is wrong is err.
type params struct {
	*http.Request
	err error
}

func (p *params) refuse(name string, err error) {
	if p.err == nil && err != nil {
		p.err = badData(fmt.Errorf("invalid parameter %q: %w", name, err))
	}
}

// The bounds of time that Prometheus takes where none is given.
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

// duration is in seconds, or in Prometheus' units; usual where it is not given, unless that is
// below 0.
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

// limit is of an answer's items; 0: all.
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
