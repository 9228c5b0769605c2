// Package slo parses objectives and checks whether a load meets them.
//
//	"p99<50ms,errors<0.1%" ─► Parse ─► objectives ─► Check(load) ─► met, missed or unknown
//
// An objective is unknown, not met, if there are too few responses for it; the outcome has the
// number needed. Percentiles come from the histogram, and requests without a response count as
// slower than every response.
//
// Non-goals: judging the measurement (see package verdict), and consequences of a missed objective.
package slo

import (
	"strconv"
	"strings"
	"time"
)

// Metrics besides percentiles.
const (
	mean       = "mean"
	longest    = "max"
	failures   = "errors"
	throughput = "throughput"
	delivered  = "delivered"
)

// Times besides response time, which has no prefix.
const (
	service = "service"
	lag     = "lag"
	connect = "connect"
)

// Objective is one bound on one metric.
type Objective struct {
	Route    string  // name of the route in the result; empty: the whole load
	Time     string  // "service", "lag" or "connect"; empty: response time
	Metric   string  // such as "p99.9", "mean", "max", "errors", "throughput", "delivered"
	Quantile float64 // of a percentile, such as 0.999; otherwise 0
	Op       string  // "<", "<=", ">" or ">="
	Limit    float64 // nanoseconds, a share (0.001), or requests per second
}

// String returns the canonical text, which Parse accepts.
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

// Text joins objectives in the syntax of Parse.
func Text(objectives []Objective) string {
	parts := make([]string, len(objectives))
	for i, o := range objectives {
		parts[i] = o.String()
	}
	return strings.Join(parts, ",")
}

// Quantiles returns the quantiles of response times of the whole load, in the order of the
// objectives.
func Quantiles(objectives []Objective) (out []float64) {
	for _, o := range objectives {
		if o.Quantile > 0 && o.Time == "" && o.Route == "" {
			out = append(out, o.Quantile)
		}
	}
	return out
}

// IsTime reports whether the metric is a duration.
func (o Objective) IsTime() bool {
	return o.Metric != failures && o.Metric != throughput && o.Metric != delivered
}

// IsErrors reports whether the metric is the share of failed requests.
func (o Objective) IsErrors() bool { return o.Metric == failures }

// IsThroughput reports whether the metric is the rate of good responses.
func (o Objective) IsThroughput() bool { return o.Metric == throughput }

// within reports whether a value meets the bound.
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

// text formats a value in the metric's unit.
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

// plain formats at most twelve digits, which hides that 0.07 × 100 is 7.000000000000001 in binary,
// and never an exponent.
func plain(v float64) string { return strconv.FormatFloat(rounded(v, 12), 'f', -1, 64) }

// seen formats a value rounded for readers: three digits for times, four for others.
func (o Objective) seen(v float64) string {
	if o.IsTime() {
		return o.text(rounded(v, 3))
	}
	return o.text(rounded(v, 4))
}

// rounded rounds to a number of digits. Infinity and not a number are returned as they are.
func rounded(v float64, digits int) float64 {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	return short // infinity, beside an error, if the digits are rounded up beyond the largest float
}

// quoted quotes a name unless Parse finds its end without quotes.
func quoted(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` || strings.ContainsAny(name, ",<>") ||
		name != strings.Join(strings.Fields(name), " ") {
		return q
	}
	return name
}
