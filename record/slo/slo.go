// Package slo says what a service has promised, and whether a load shows that it keeps it.
//
//	"p99<50ms,errors<0.1%" ─► Parse ─► objectives ─► Check(load) ─► met, missed or unknown
//
// An objective that too few answers speak of is unknown, not met: the outcome says how
// many it takes. Percentiles come from the histogram, requests without an answer count as slower
// than every answered one.
//
// Non-goals: judging the measurement, which is what package verdict does, and deciding what follows
// from a missed objective.
package slo

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Metrics beside the percentiles.
const (
	mean       = "mean"
	longest    = "max"
	failures   = "errors"
	throughput = "throughput"
	delivered  = "delivered"
)

// Times beside response time, which has no name of its own.
const (
	service = "service"
	lag     = "lag"
	connect = "connect"
)

// Objective is one bound on one metric.
type Objective struct {
	Route    string  // its name in the result; empty: the whole load
	Time     string  // "service", "lag" or "connect"; empty: response time
	Metric   string  // "p99.9" and the like, "mean", "max", "errors", "throughput", "delivered"
	Quantile float64 // of a percentile, 0.999; else 0
	Op       string  // "<", "<=", ">" or ">="
	Limit    float64 // nanoseconds, a share (0.001), or requests per second
}

// String is the canonical text, which Parse reads back.
func (o Objective) String() string {
	subject := o.Metric
	if o.Time != "" {
		subject = o.Time + "." + subject
	}
	if o.Route != "" {
		subject = "route " + quoted(o.Route) + " " + subject
	}
	return subject + o.Op + o.text(o.Limit)
}

// Text joins objectives as Parse takes them.
func Text(objectives []Objective) string {
	parts := make([]string, len(objectives))
	for i, o := range objectives {
		parts[i] = o.String()
	}
	return strings.Join(parts, ",")
}

// Quantiles are those of response times of the whole load, in the order of the objectives.
func Quantiles(objectives []Objective) (out []float64) {
	for _, o := range objectives {
		if o.Quantile > 0 && o.Time == "" && o.Route == "" {
			out = append(out, o.Quantile)
		}
	}
	return out
}

// IsTime tells whether the metric is a duration.
func (o Objective) IsTime() bool {
	return o.Metric != failures && o.Metric != throughput && o.Metric != delivered
}

// IsErrors tells whether the metric is the share of failed requests.
func (o Objective) IsErrors() bool { return o.Metric == failures }

// IsThroughput tells whether the metric is the rate of good answers.
func (o Objective) IsThroughput() bool { return o.Metric == throughput }

// within tells whether a value meets the bound.
func (o Objective) within(v float64) bool {
	switch o.Op {
	case "<":
		return v < o.Limit
	case "<=":
		return v <= o.Limit
	case ">":
		return v > o.Limit
	}
	return v >= o.Limit
}

// text prints a value in the metric's unit.
func (o Objective) text(v float64) string {
	switch {
	case o.Metric == throughput:
		return plain(v) + "/s"
	case !o.IsTime():
		return plain(100*v) + "%"
	}
	s := time.Duration(v).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	return s
}

// plain prints twelve digits at most, which hides that 0.07 × 100 is 7.000000000000001 in binary,
// and never an exponent.
func plain(v float64) string {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64)
	if err != nil {
		short = v // not a number is printed as such
	}
	return strconv.FormatFloat(short, 'f', -1, 64)
}

// seen is a value rounded for reading: three digits of a time, four of others.
func (o Objective) seen(v float64) string {
	if v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return o.text(max(v, 0))
	}
	digits := 4
	if o.IsTime() {
		digits = 3
	}
	if short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64); err == nil {
		v = short
	}
	return o.text(v)
}

// quoted leaves a name as it is where Parse would find its end without quotes.
func quoted(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` || strings.ContainsAny(name, ",<>") ||
		name != strings.Join(strings.Fields(name), " ") {
		return q
	}
	return name
}
