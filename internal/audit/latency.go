package audit

import (
	"fmt"
	"math"
	"strings"

	"prony/internal/result"
	"prony/internal/unit"
)

var percentiles = []struct {
	quantity Quantity
	q        float64
}{{P50, .5}, {P75, .75}, {P90, .9}, {P95, .95}, {P99, .99}, {P999, .999}, {P9999, .9999}}

// unordered is how driver.Import says that times make no sense.
var unordered = []string{"its times do not ascend", "its mean is above its largest time"}

func checkOrder(r *Row) (hit, bool) {
	for _, n := range r.Notes {
		for _, u := range unordered {
			if strings.HasPrefix(n, u) {
				return hit{severity: Contradiction, arithmetic: n, means: orderMeans,
					do: orderDo}, true
			}
		}
	}
	order := []Quantity{Min}
	for _, p := range percentiles {
		order = append(order, p.quantity)
	}
	order = append(order, Max)
	var last Value
	lastOf, known := Quantity(""), 0
	for _, q := range order {
		v, ok := r.get(q)
		if !ok {
			continue
		}
		if known++; known > 1 && last.span().lo > v.span().hi*(1+roundingShare) {
			return disordered(lastOf, last, q, v), true
		}
		last, lastOf = v, q
	}
	m, ok := r.get(Mean)
	if !ok {
		return hit{}, known > 1
	}
	if v, ok := r.get(Max); ok && m.span().lo > v.span().hi*(1+roundingShare) {
		return disordered(Mean, m, Max, v), true
	}
	if v, ok := r.get(Min); ok && v.span().lo > m.span().hi*(1+roundingShare) {
		return disordered(Min, v, Mean, m), true
	}
	return hit{}, known > 0
}

// roundingShare covers histograms of two digits and tools that round each value their own way.
const roundingShare = 0.01

const (
	orderMeans = "these are not of one distribution: columns are swapped, of different runs, " +
		"averaged over runs, or the tool lost samples"
	orderDo = "take none of these latencies before the raw output is seen"
)

func disordered(a Quantity, va Value, b Quantity, vb Value) hit {
	return hit{severity: Contradiction, line: vb.Line,
		arithmetic: fmt.Sprintf("%s %s is above %s %s", a, said(va), b, said(vb)),
		means:      orderMeans, do: orderDo}
}

// meanBounds are the least and the largest mean that the percentiles allow: every part of the
// requests between two of them is at least as slow as the lower and at most as slow as the upper.
// Without a largest time the mean has no upper bound.
func meanBounds(r *Row) (lo, hi float64) {
	atLo, at, done := 0.0, 0.0, 0.0
	if v, ok := r.get(Min); ok {
		atLo = v.span().lo
	}
	for _, p := range percentiles {
		v, ok := r.get(p.quantity)
		if !ok {
			continue
		}
		s := v.span()
		lo += (p.q - done) * atLo
		hi += (p.q - done) * s.hi
		atLo, at, done = s.lo, s.hi, p.q
	}
	if at == 0 {
		return 0, math.Inf(1)
	}
	lo += (1 - done) * atLo
	if v, ok := r.get(Max); ok {
		return lo, hi + (1-done)*v.span().hi
	}
	return lo, math.Inf(1)
}

// fewRequests: below, a percentile's rank is too coarse for bounds.
const fewRequests = 200

func checkMean(r *Row) (hit, bool) {
	m, ok := r.get(Mean)
	lo, hi := meanBounds(r)
	if !ok || lo <= 0 {
		return hit{}, false
	}
	if h, _ := checkOrder(r); h.arithmetic != "" {
		return hit{}, true // percentiles that fall have no mean
	}
	if n, ok := r.get(Requests); ok && n.V < fewRequests {
		return hit{}, true
	}
	s := m.span()
	switch {
	case s.hi < lo*(1-oddShare):
		return hit{severity: Contradiction, line: m.Line,
			arithmetic: fmt.Sprintf("the percentiles alone add up to a mean of %s, and it says %s",
				unit.Duration(lo), said(m)),
			means: "mean and percentiles are not of the same requests",
			do:    orderDo}, true
	case s.lo > hi*(1+oddShare):
		return hit{severity: Contradiction, line: m.Line,
			arithmetic: fmt.Sprintf("percentiles and max allow a mean of %s at most, and it "+
				"says %s",
				unit.Duration(hi), said(m)),
			means: "mean and percentiles are not of the same requests",
			do:    orderDo}, true
	}
	return heavyTail(r, m), true
}

// heavyTail says what a mean above a high percentile takes.
func heavyTail(r *Row, m Value) hit {
	for i := len(percentiles) - 1; i >= 0; i-- {
		p := percentiles[i]
		v, ok := r.get(p.quantity)
		if !ok {
			continue
		}
		if p.q < 0.9 || v.V <= 0 || m.span().lo <= v.span().hi {
			return hit{}
		}
		least := (m.span().lo - p.q*v.span().hi) / (1 - p.q)
		return hit{severity: Note, line: m.Line,
			arithmetic: fmt.Sprintf("mean %s is above %s %s: the slowest %s took %s on average at "+
				"least", said(m), p.quantity, said(v), percent(1-p.q), unit.Duration(least)),
			means: "a few very slow requests make the mean; it describes nobody's request",
			do:    "quote percentiles, and look for the cause of the slow ones"}
	}
	return hit{}
}

func checkDeviation(r *Row) (hit, bool) {
	s, ok := r.get(Deviation)
	m, okM := r.get(Mean)
	if !ok || !okM {
		return hit{}, false
	}
	h := hit{severity: Contradiction, line: s.Line,
		means: "standard deviation and the other values are not of the same requests", do: orderDo}
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
	v, ok := r.all(Max, Requests)
	if !ok || r.Tool == "wrk" { // its samples are more than its requests
		return hit{}, checked
	}
	reach := s.span().hi * math.Sqrt(max(v[1].span().hi-1, 0))
	if over := v[0].span().lo - m.span().hi; over > reach*(1+cannotShare) {
		h.arithmetic = fmt.Sprintf("max %s is %s above the mean; with a deviation of %s and %s "+
			"requests it can be %s at most", said(v[0]), unit.Duration(over), said(s), v[1].Text,
			unit.Duration(reach))
		return h, true
	}
	return hit{}, true
}

func checkFlat(r *Row) (hit, bool) {
	var lowest, highest Value
	var of [2]Quantity
	n := 0
	for _, p := range percentiles {
		v, ok := r.get(p.quantity)
		if !ok {
			continue
		}
		if n++; n == 1 {
			lowest, of[0] = v, p.quantity
		}
		highest, of[1] = v, p.quantity
	}
	if n < 2 {
		return hit{}, false
	}
	if lowest.V != highest.V || of[1] == P75 || highest.V == 0 {
		return hit{}, true
	}
	return hit{severity: Doubt, line: highest.Line,
		arithmetic: fmt.Sprintf("%s = %s = %s", of[0], of[1], said(highest)),
		means: "no service answers all requests alike: the clock or the histogram is coarser " +
			"than what it measured, or a column was copied",
		do: "ask for the resolution of the clock, and for the raw output"}, true
}

// Ratios that make a tail worth a word.
const (
	tailTimes = 20
	tailLeast = 50e6 // ns; below it a slow request is an ordinary pause of a machine
)

func checkTail(r *Row) (hit, bool) {
	v, ok := r.get(Max)
	if !ok {
		return hit{}, false
	}
	var high Value
	var of Quantity
	q := 0.0
	for _, p := range percentiles {
		if h, ok := r.get(p.quantity); ok && p.q <= 0.99 {
			high, of, q = h, p.quantity, p.q
		}
	}
	if q < 0.9 || high.V <= 0 {
		return hit{}, q >= 0.9
	}
	if v.V < tailLeast || v.V < tailTimes*high.V {
		return hit{}, true
	}
	h := hit{severity: Note, line: v.Line,
		arithmetic: fmt.Sprintf("max %s is %.0f times %s %s%s", said(v), v.V/high.V, of, said(high),
			retransmission(v.V)),
		means: "a stall, a timeout or a lost packet",
		do:    "look at latency over time; one number cannot tell a stall from a single request"}
	if r.Model == result.Open {
		return h, true
	}
	h.means += "; if it stalled all connections of a closed load, the requests that would have " +
		"come meanwhile were never sent and are in no percentile (coordinated omission)"
	took, ok := r.get(Duration)
	if rate, known := r.get(Rate); known {
		h.arithmetic += fmt.Sprintf("; a stall of %s hides %s × %s = %s requests", said(v),
			rate.Text, said(v), unit.Whole(rate.V*v.V/second))
	}
	if share := v.V / took.V; ok && share > 1-q {
		h.severity = Doubt
		h.arithmetic += fmt.Sprintf(", %s of the run of %s, so that on a schedule %s would be "+
			"up to "+
			"%s", percent(share), said(took), of, unit.Duration(v.V-(1-q)*took.V))
		h.do = "repeat it with an open load (prony load --rate) below its capacity"
	}
	return h, true
}

// retransmission names the timeouts of TCP: a lost SYN costs 1 s, then 2 s and 4 s more.
func retransmission(ns float64) string {
	for _, s := range []float64{1, 3, 7} {
		if ns >= s*second && ns < s*second*1.04 {
			return fmt.Sprintf(" (%.0f s is what lost SYNs cost)", s)
		}
	}
	return ""
}

// Shares of the offered rate: a load that is kept up, and one that is surely above capacity.
const (
	keptShare = 0.99
	overShare = 0.95
)

func checkOverload(r *Row) (hit, bool) {
	v, ok := r.all(Offered, Rate)
	if !ok {
		return hit{}, false
	}
	failed := r.Values[ErrorRate].V
	if n, ok := r.all(Errors, Duration); ok && n[1].V > 0 {
		failed = n[0].V / n[1].V * second
	}
	if (v[1].span().hi+failed)/v[0].span().lo >= keptShare {
		return hit{}, true
	}
	share := (v[1].V + failed) / v[0].V
	h := hit{severity: Note, line: v[1].Line,
		arithmetic: fmt.Sprintf("%s of %s offered is %s", v[1].Text, v[0].Text, percent(share)),
		means: "the load was above what it can take: the rate is a capacity, and no latency of " +
			"that run would be one",
		do: "measure latency at rates below the capacity"}
	if share >= overShare {
		return hit{severity: Doubt, line: v[1].Line,
			arithmetic: fmt.Sprintf("%s of %s offered is %s", v[1].Text, v[0].Text, percent(share)),
			means: "the rate was not kept up: requests waited or were not sent, and the latency " +
				"holds that waiting or leaves it out",
			do: "ask what was not sent; measure at a lower rate"}, true
	}
	took, ok := r.get(Duration)
	if !ok {
		took, ok = r.get(AskedDuration)
	}
	latency := false
	for _, q := range []Quantity{Mean, P50, P99, Max} {
		_, known := r.get(q)
		latency = latency || known
	}
	if ok {
		behind := took.V * (1 - share)
		h.arithmetic += fmt.Sprintf("; after %s it is %s × (1 − %.3g) = %s behind, %s on average",
			unit.Duration(took.V), unit.Duration(took.V), share, unit.Duration(behind),
			unit.Duration(behind/2))
	}
	if latency {
		h.severity = Doubt
		h.means = "the load was above what it can take, so its latency says how long the run " +
			"was, not how fast it answers"
		h.do = "strike the latency; measure it at rates below the capacity"
	}
	return h, true
}
