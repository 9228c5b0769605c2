package audit

import (
	"fmt"
	"math"
	"slices"

	"prony.example/internal/base/units"
	"prony.example/record"
)

var percentiles = []struct {
	quantity Quantity
	q        float64
}{{P50, .5}, {P75, .75}, {P90, .9}, {P95, .95}, {P99, .99}, {P999, .999}, {P9999, .9999}}

// point is a percentile of a row.
type point struct {
	Value
	quantity Quantity
	q        float64
}

// points returns the row's percentiles, ascending.
func (r *Row) points() (out []point) {
	for _, p := range percentiles {
		if v, ok := r.get(p.quantity); ok {
			out = append(out, point{v, p.quantity, p.q})
		}
	}
	return out
}

func checkOrder(r *Row, _ []Value) (hit, bool) {
	for _, n := range r.Notes {
		if n.Inconsistent() {
			return hit{severity: Contradiction, arithmetic: n.String(), means: orderMeans,
				do: orderDo}, true
		}
	}
	valueAt := func(q Quantity) (known []point) {
		if v, ok := r.get(q); ok {
			known = []point{{Value: v, quantity: q}}
		}
		return known
	}
	least, mean, most := valueAt(Min), valueAt(Mean), valueAt(Max)
	all := slices.Concat(least, r.points(), most)
	for _, order := range [][]point{all, slices.Concat(mean, most), slices.Concat(least, mean)} {
		for i := 1; i < len(order); i++ {
			if a, b := order[i-1], order[i]; exceeds(a.Value, b.Value) {
				return hit{severity: Contradiction, line: b.Line,
					arithmetic: fmt.Sprintf(
						"%s %s is above %s %s",
						a.quantity,
						said(a.Value),
						b.quantity,
						said(b.Value),
					),
					means: orderMeans, do: orderDo}, true
			}
		}
	}
	return hit{}, len(all) > 1 || len(mean) > 0 && len(all) > 0
}

// exceeds reports whether a is above b also before rounding. Values with the same last digit are
// printed by one rule, which moves both in one direction or each by half a unit.
func exceeds(a, b Value) bool {
	lo := a.span().lo
	if a.Slack == b.Slack {
		lo = a.V
	}
	return lo > b.span().hi*(1+roundingShare)
}

// roundingShare covers histograms of two digits and different ways of rounding.
const roundingShare = 0.01

const (
	orderMeans = "these values cannot come from one distribution: columns are swapped, come from " +
		"different runs or are averaged over runs, or the tool lost samples"
	orderDo = "use these latencies only together with the raw output"
)

// meanBounds returns the minimum and maximum mean that the percentiles allow: the requests between
// two percentiles are at least as slow as the lower and at most as slow as the upper one. Without a
// maximum the mean has no upper bound.
func meanBounds(r *Row) (lo, hi float64) {
	atLo, position, done := 0.0, 0.0, 0.0
	if v, ok := r.get(Min); ok {
		atLo = v.span().lo
	}
	for _, p := range r.points() {
		s := p.span()
		lo += (p.q - done) * atLo
		hi += (p.q - done) * s.hi
		atLo, position, done = s.lo, s.hi, p.q
	}
	if position == 0 {
		return 0, math.Inf(1)
	}
	lo += (1 - done) * atLo
	if v, ok := r.get(Max); ok {
		return lo, hi + (1-done)*v.span().hi
	}
	return lo, math.Inf(1)
}

// fewRequests is the number below which a percentile's rank is too coarse for bounds.
const fewRequests = 200

func checkMean(r *Row, v []Value) (hit, bool) {
	m := v[0]
	lo, hi := meanBounds(r)
	if lo <= 0 {
		return hit{}, false
	}
	if h, _ := checkOrder(r, nil); h.arithmetic != "" {
		return hit{}, true // decreasing percentiles have no mean
	}
	if n, ok := r.get(Requests); ok && n.V < fewRequests {
		return hit{}, true
	}
	h := hit{severity: Contradiction, line: m.Line,
		means: "mean and percentiles do not describe the same requests", do: orderDo}
	switch s := m.span(); {
	case s.hi < lo*(1-oddShare):
		h.arithmetic = fmt.Sprintf("the percentiles imply a mean of at least %s, but the stated "+
			"mean is %s",
			units.Duration(lo), said(m))
	case s.lo > hi*(1+oddShare):
		h.arithmetic = fmt.Sprintf("percentiles and maximum imply a mean of at most %s, but the "+
			"stated mean is %s",
			units.Duration(hi), said(m))
	default:
		h = heavyTail(r, m)
	}
	return h, true
}

// heavyTail computes the tail that a mean above a high percentile requires. The row has percentiles
// above 0.
func heavyTail(r *Row, m Value) hit {
	all := r.points()
	p := all[len(all)-1]
	if p.q < 0.9 || m.span().lo <= p.span().hi {
		return hit{}
	}
	least := (m.span().lo - p.q*p.span().hi) / (1 - p.q)
	return hit{severity: Note, line: m.Line,
		arithmetic: fmt.Sprintf("mean %s is above %s %s: the slowest %s of requests took at "+
			"least %s on average",
			said(m), p.quantity, said(p.Value), percent(1-p.q), units.Duration(least)),
		means: "a few very slow requests dominate the mean, so it does not describe a typical " +
			"request",
		do: "quote percentiles, and look for the cause of the slow requests"}
}

func checkDeviation(r *Row, v []Value) (hit, bool) {
	s, m := v[0], v[1]
	h := hit{severity: Contradiction, line: s.Line,
		means: "the standard deviation and the other values do not describe the same requests",
		do:    orderDo}
	checked := false
	if p, ok := r.get(P50); ok {
		checked = true
		gap := max(m.span().lo-p.span().hi, p.span().lo-m.span().hi)
		if gap > s.span().hi*(1+cannotShare) {
			h.arithmetic = fmt.Sprintf("mean %s and median %s are further apart than one standard "+
				"deviation, %s", said(m), said(p), said(s))
			return h, true
		}
	}
	most, ok := r.all(Max, Requests)
	if !ok || r.Tool == "wrk" { // its samples are more than its requests
		return hit{}, checked
	}
	reach := s.span().hi * math.Sqrt(max(most[1].span().hi-1, 0))
	if over := most[0].span().lo - m.span().hi; over > reach*(1+cannotShare) {
		h.arithmetic = fmt.Sprintf("max %s is %s above the mean; with a standard deviation of %s "+
			"and %s requests it can be at most %s above the mean",
			said(most[0]), units.Duration(over), said(s),
			most[1].Text, units.Duration(reach))
		return h, true
	}
	return hit{}, true
}

// flatLeast is the number of requests from which p95 is not simply the longest time.
const flatLeast = 20

func checkFlat(r *Row, _ []Value) (hit, bool) {
	all := r.points()
	n, counted := r.get(Requests)
	if len(all) < 2 || counted && n.V < flatLeast {
		return hit{}, false
	}
	lowest, highest := all[0], all[len(all)-1]
	if lowest.V != highest.V || highest.quantity == P75 || highest.V == 0 {
		return hit{}, true
	}
	return hit{severity: Doubt, line: highest.Line,
		arithmetic: fmt.Sprintf(
			"%s = %s = %s",
			lowest.quantity,
			highest.quantity,
			said(highest.Value),
		),
		means: "no service has equal response times for all requests: the clock or the histogram " +
			"is too coarse, or a column was copied",
		do: "ask the authors for the resolution of the clock and for the raw output"}, true
}

// Ratios from which a tail is reported.
const (
	tailTimes = 20
	tailLeast = 50e6 // ns; a shorter delay is an ordinary pause of a machine
)

func checkTail(r *Row, v []Value) (hit, bool) {
	most := v[0]
	var high point
	for _, p := range r.points() {
		if p.q <= 0.99 {
			high = p
		}
	}
	if high.q < 0.9 || high.V <= 0 {
		return hit{}, high.q >= 0.9
	}
	if most.V < tailLeast || most.V < tailTimes*high.V {
		return hit{}, true
	}
	h := hit{severity: Note, line: most.Line,
		arithmetic: fmt.Sprintf(
			"max %s is %.0f times %s %s%s",
			said(most),
			most.V/high.V,
			high.quantity,
			said(high.Value),
			retransmission(most.V),
		),
		means: "the slowest request met a stall, a timeout or a lost packet",
		do: "look at latency over time, because the maximum alone does not show whether one " +
			"request or all requests were slow"}
	if r.Model == record.Open {
		return h, true
	}
	h.means += "; if a stall stopped all connections of a closed load, the requests due during " +
		"the stall were never sent and are missing from percentiles (coordinated omission)"
	elapsed, ok := r.get(Duration)
	if rate, known := r.get(Rate); known {
		h.arithmetic += fmt.Sprintf("; a stall of %s hides %s × %s = %s requests", said(most),
			rate.Text, said(most), units.Whole(rate.V*most.V/second))
	}
	if share := most.V / elapsed.V; ok && share > 1-high.q {
		h.severity = Doubt
		h.arithmetic += fmt.Sprintf(", which is %s of the run of %s; if requests had been sent "+
			"on a schedule, %s would be up to %s", percent(share), said(elapsed), high.quantity,
			units.Duration(most.V-(1-high.q)*elapsed.V))
		h.do = "repeat the measurement with an open load (prony load --rate) below the capacity"
	}
	return h, true
}

// retransmission names the timeouts of TCP: a lost SYN costs 1 s, then 2 s and 4 s more.
func retransmission(ns float64) string {
	for _, s := range []float64{1, 3, 7} {
		if ns >= s*second && ns < s*second*1.04 {
			return fmt.Sprintf(" (TCP takes %.0f s to replace lost SYN packets)", s)
		}
	}
	return ""
}

// Shares of the offered rate: keptShare for a load at which the service kept up, overShare for one
// that is certainly above capacity.
const (
	keptShare = 0.99
	overShare = 0.95
)

func checkOverload(r *Row, v []Value) (hit, bool) {
	failed := r.Values[ErrorRate].V
	if n, ok := r.all(Errors, Duration); ok && n[1].V > 0 {
		failed = n[0].V / n[1].V * second
	}
	if (v[1].span().hi+failed)/v[0].span().lo >= keptShare {
		return hit{}, true
	}
	share := (v[1].V + failed) / v[0].V
	h := hit{severity: Note, line: v[1].Line,
		arithmetic: fmt.Sprintf("a rate of %s with %s offered is %s",
			v[1].Text, v[0].Text, percent(share)),
		means: "the load was above the capacity: the rate shows the capacity, but no latency of " +
			"that run is meaningful",
		do: "measure latency at rates below the capacity"}
	if share >= overShare {
		h.severity = Doubt
		h.means = "the offered rate was not reached: requests waited or were not sent, and the " +
			"latency may or may not include these waits"
		h.do = "ask the authors which requests were not sent; measure at a lower rate"
		return h, true
	}
	elapsed, ok := r.get(Duration)
	if !ok {
		elapsed, ok = r.get(AskedDuration)
	}
	latency := slices.ContainsFunc([]Quantity{Mean, P50, P99, Max}, func(q Quantity) bool {
		_, known := r.get(q)
		return known
	})
	if ok {
		behind := elapsed.V * (1 - share)
		h.arithmetic += fmt.Sprintf("; after %s the load is %s × (1 − %.3g) = %s behind its "+
			"schedule, %s on average",
			units.Duration(elapsed.V), units.Duration(elapsed.V), share, units.Duration(behind),
			units.Duration(behind/2))
	}
	if latency {
		h.severity = Doubt
		h.means = "the load was above the capacity, so its latency depends on the length of the " +
			"run, not on the service's speed"
		h.do = "do not use this latency; measure latency at rates below the capacity"
	}
	return h, true
}
