package slo

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/base/lazyregexp"
)

// Lists for error texts.
const (
	allMetrics = "p50, p90, p95, p99, p99.9 (any pNN or pNN.N), mean, max, errors, throughput, " +
		"delivered"
	allTimes = "service., lag., connect."
	example  = "p99<50ms,errors<0.1%"
)

// Bounds of limits: the maximum of a histogram, and a rate beyond any load.
const (
	timeMaxNs = 1 << 40 // 18 minutes
	rateMaxPS = 1e9
)

var (
	percentileForm = lazyregexp.New(`^p([0-9]{1,2})(?:\.([0-9]{1,4}))?$`)
	numberForm     = lazyregexp.New(`^[0-9]{1,15}(\.[0-9]{1,15})?$`)
)

// Parse reads objectives separated by commas, all of which must hold:
//
//	p99<50ms,errors<0.1%,service.p99.9<=1s,delivered>99%,throughput>1000/s,route "GET /" p99<5ms
//
// The name of a route needs quotes (as in Go) only if it contains a comma, a quote, < or >.
func Parse(text string) ([]Objective, error) {
	pieces, err := split(text)
	if err != nil {
		return nil, err
	}
	var all []Objective
	for _, piece := range pieces {
		o, err := parseOne(strings.TrimSpace(piece))
		if err != nil {
			return nil, fmt.Errorf("parse objective %q: %w", strings.TrimSpace(piece), err)
		}
		all = append(all, o)
	}
	return all, nil
}

// split splits at commas outside of quotes.
func split(text string) ([]string, error) {
	var pieces []string
	for from, pos := 0, 0; ; pos++ {
		switch {
		case pos == len(text):
			return append(pieces, text[from:]), nil
		case text[pos] == ',':
			pieces = append(pieces, text[from:pos])
			from = pos + 1
		case text[pos] == '"':
			q, err := strconv.QuotedPrefix(text[pos:])
			if err != nil {
				return nil, fmt.Errorf("parse objectives %q: a quote is not closed", text)
			}
			pos += len(q) - 1
		}
	}
}

func parseOne(piece string) (Objective, error) {
	var o Objective
	if piece == "" {
		return o, fmt.Errorf("it is empty; write objectives as %s", example)
	}
	pos := strings.LastIndexAny(piece, "<>")
	if pos < 0 {
		return o, fmt.Errorf("it has none of <, <=, >, >=; write it as p99<50ms")
	}
	o.Op = piece[pos : pos+1]
	value := piece[pos+1:]
	if strings.HasPrefix(value, "=") {
		o.Op, value = o.Op+"=", value[1:]
	}
	if err := o.subject(strings.TrimSpace(piece[:pos])); err != nil {
		return o, err
	}
	if err := o.direction(); err != nil {
		return o, err
	}
	return o, o.limit(strings.TrimSpace(value))
}

// subject parses the part before the operator: route, time and metric.
func (o *Objective) subject(text string) error {
	metric := text
	if tail, ok := strings.CutPrefix(text, "route "); ok {
		pos := strings.LastIndexByte(tail, ' ')
		if pos < 0 {
			return fmt.Errorf("a route has a name and a metric, as in route \"GET /\" p99<5ms")
		}
		o.Route, metric = strings.TrimSpace(tail[:pos]), tail[pos+1:]
		if name, err := strconv.Unquote(o.Route); err == nil && o.Route[0] == '"' {
			o.Route = name
		}
		if o.Route == "" {
			return fmt.Errorf("the route's name is empty")
		}
	}
	for _, t := range []string{service, lag, connect} {
		if tail, ok := strings.CutPrefix(metric, t+"."); ok {
			o.Time, metric = t, tail
			break
		}
	}
	return o.metric(metric)
}

func (o *Objective) metric(name string) error {
	o.Metric = name
	if m := percentileForm.FindStringSubmatch(name); m != nil {
		// Parsed as text, because 99.9/100 is not 0.999 in binary.
		digits := strings.TrimRight(fmt.Sprintf("%02s%s", m[1], m[2]), "0")
		q, err := strconv.ParseFloat("0."+digits+"0", 64)
		if err != nil || q == 0 {
			return fmt.Errorf("%s lies below every answer; there are %s", name, allMetrics)
		}
		o.Quantile = q
		o.Metric = "p" + plain(100*q)
	}
	isTime := o.Quantile > 0 || name == mean || name == longest
	switch {
	case !isTime && name != failures && name != throughput && name != delivered:
		return fmt.Errorf("%q is not a metric; there are %s; a time may begin with one of %s",
			name, allMetrics, allTimes)
	case !isTime && o.Time != "":
		return fmt.Errorf("%s. goes before times only: percentiles, mean, max", o.Time)
	case o.Route != "" && (o.Time == lag || o.Time == connect):
		return fmt.Errorf("%s is not kept by route; response and service time are", o.Time)
	case o.Route != "" && (name == throughput || name == delivered):
		return fmt.Errorf("%s is not kept by route; times and errors are", name)
	}
	return nil
}

// direction rejects bounds in the wrong direction, such as p99>50ms.
func (o *Objective) direction() error {
	side, op := "above", "<"
	if o.Metric == throughput || o.Metric == delivered {
		side, op = "below", ">"
	}
	if o.Op[:1] == op {
		return nil
	}
	return fmt.Errorf("%[1]s is promised from %[2]s; write %[1]s%[3]s or %[1]s%[3]s=", o.Metric,
		side, op)
}

func (o *Objective) limit(text string) (err error) {
	switch {
	case o.IsTime():
		return o.timeLimit(text)
	case o.Metric == throughput:
		o.Limit, err = number(strings.TrimSuffix(text, "/s"))
		if err != nil || o.Limit == 0 || o.Limit > rateMaxPS {
			return fmt.Errorf("%q is not a rate; write it as 1000/s, up to %.0f/s", text, rateMaxPS)
		}
		return nil
	}
	share, percent := strings.CutSuffix(text, "%")
	o.Limit, err = number(strings.TrimSpace(share))
	if percent {
		o.Limit /= 100
	}
	switch {
	case err == nil && !percent && o.Limit == 1:
		return fmt.Errorf("%s is 1%% or 100%%; write the percent sign", text)
	case err != nil || o.Limit > 1:
		return fmt.Errorf("%q is not a share; write it as 0.1%% or 0.001, up to 100%%", text)
	case o.Limit == 0 && o.Op == "<":
		return fmt.Errorf("no share is below 0; write %s<=0%%", o.Metric)
	case o.Limit == 1 && o.Op == ">":
		return fmt.Errorf("no share is above 100%%; write %s>=100%%", o.Metric)
	}
	return nil
}

func (o *Objective) timeLimit(text string) error {
	if numberForm.MatchString(text) {
		return fmt.Errorf("the time %s has no unit; write it as %sms, or in ns, us, s, m", text,
			text)
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > timeMaxNs {
		return fmt.Errorf("%q is not a time; write it as 50ms, 800us or 1.5s, up to 18m", text)
	}
	o.Limit = float64(d)
	return nil
}

func number(text string) (float64, error) {
	if !numberForm.MatchString(text) {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return strconv.ParseFloat(text, 64)
}
