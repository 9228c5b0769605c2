package slo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/stats"
)

// confidence is the level of the confidence interval that a percentile needs samples for.
const confidence = 0.95

// Outcome is the result of checking an objective against a load. Met is only meaningful if Known.
type Outcome struct {
	Objective string `json:"objective"`
	Met       bool   `json:"met"`
	Known     bool   `json:"known"`
	// ns, share or requests per second; 0 if unknown
	Observed float64 `json:"observed"`
	// ns with the machine's stalls, if Observed excludes them or is unknown without them
	WithStalls float64 `json:"withStalls,omitempty"`
	Samples    int64   `json:"samples"` // number of samples
	// minimum number of samples; 0: any
	RequiredSamples int64 `json:"requiredSamples,omitempty"`
	// the observed value, or why it is unknown
	Text string `json:"text"`
}

// Line formats the outcome: "met      p99<50ms    41.2ms".
func (c Outcome) Line() string {
	word := "unknown"
	switch {
	case c.Known && c.Met:
		word = "met"
	case c.Known:
		word = "missed"
	}
	return fmt.Sprintf("%-8s %-14s %s", word, c.Objective, c.Text)
}

// Routes returns an error for the first objective on a route that is none of these names.
func Routes(objectives []Objective, names []string) error {
	for _, o := range objectives {
		switch {
		case o.Route == "" || slices.Contains(names, o.Route):
		case len(names) == 0:
			return fmt.Errorf("objective %q: the load sends only one request; leave the route out",
				o)
		default:
			return fmt.Errorf("objective %q: the load has no such route; there are %s", o,
				strings.Join(names, ", "))
		}
	}
	return nil
}

// CheckAll checks every objective against a load.
func CheckAll(objectives []Objective, l *record.Load) []Outcome {
	out := make([]Outcome, len(objectives))
	for i, o := range objectives {
		out[i] = o.Check(l)
	}
	return out
}

// CheckQuoted is CheckAll with the criteria of reports: correlated responses count as fewer
// independent ones, so a percentile can be unknown.
func CheckQuoted(objectives []Objective, l *record.Load) []Outcome {
	out := make([]Outcome, len(objectives))
	for i, o := range objectives {
		share := 1.0
		if o.Quantile > 0 && o.Time != lag && o.Time != connect {
			share, _ = l.Autocorrelation.Worth()
		}
		out[i] = o.check(l, share)
	}
	return out
}

// Doubt describes how findings affect a known outcome. It is empty if they cannot have changed the
// outcome even together; otherwise it names the rules and the possible change. Effects without a
// bound are only in the verdict.
func (o Objective) Doubt(c Outcome, findings []record.Finding) string {
	share, rules := 0.0, []string{}
	for _, f := range findings {
		for _, m := range f.PossibleBias {
			bound := m.Bound(c.WithStalls > 0) // then Observed is without the machine's stalls
			if m.Metric == o.Metric && f.Grade == record.Suspect && o.Time == "" &&
				o.Route == "" && bound > 0 {
				share, rules = share+bound, append(rules, f.Rule)
			}
		}
	}
	if !c.Known ||
		o.within(c.Observed*(1-share)) == c.Met && o.within(c.Observed*(1+share)) == c.Met {
		return ""
	}
	return fmt.Sprintf("which %s can have changed (by %s)", strings.Join(rules, ", "),
		units.AtMost(share))
}

// Needs returns the minimum number of responses that can decide the objective.
//
// Percentiles need as many as an interval by order statistics (stats.QuantileNeeds). Shares need as
// many that a single failure is a smaller share than the limit; with fewer, zero failures would
// pass for "fewer than the limit".
func (o Objective) Needs() int64 {
	switch {
	case o.Quantile > 0:
		return stats.QuantileNeeds(o.Quantile, confidence)
	case o.Metric == failures && o.Limit > 0:
		return int64(math.Ceil(1/o.Limit - 1e-9))
	case o.Metric == delivered && o.Limit < 1:
		return int64(math.Ceil(1/(1-o.Limit) - 1e-9))
	}
	return 1
}

// Check checks the objective against a load.
func (o Objective) Check(l *record.Load) Outcome { return o.check(l, 1) }

// check counts each response as this share of an independent one.
func (o Objective) check(l *record.Load, share float64) Outcome {
	c := Outcome{Objective: o.String(), RequiredSamples: o.Needs()}
	s, ok := o.subjectOf(l)
	switch {
	case !ok:
		c.Text = "the load has no route " + o.Route
		return c
	case o.Metric == throughput:
		c.Samples = l.Done
		o.settle(&c, l.ThroughputPerS)
	case o.Metric == delivered:
		// Responses to requests from before the window can make Done exceed Scheduled.
		o.share(&c, min(l.Done, l.Scheduled), l.Scheduled)
	case o.Metric == failures:
		o.share(&c, s.failed+s.silent, s.answered+s.failed+s.silent)
	default:
		s.share = share
		o.time(&c, s)
		o.leaveStallsOut(&c, l, s)
	}
	return c
}

// leaveStallsOut decides a percentile of response time without the machine's stalls, if the load
// has it. If it is unknown without stalls, an objective that is met with them is met.
func (o Objective) leaveStallsOut(c *Outcome, l *record.Load, s sample) {
	i := slices.IndexFunc(l.StallFree, func(x record.StallFree) bool {
		return math.Abs(x.Quantile-o.Quantile) < 1e-9
	})
	if i < 0 || !c.Known || o.Time != "" || o.Route != "" || s.silent > 0 {
		return
	}
	x, all := l.StallFree[i], *c
	enough := s.share*x.KeptShare*float64(c.Samples) >= float64(c.RequiredSamples)
	switch {
	case x.Ns == x.RawNs && x.Unknown == "":
		return
	case x.Unknown == "" && enough:
		o.settle(c, float64(x.Ns))
		c.Text += fmt.Sprintf(" (%s with the machine's stalls", all.Text)
		if c.Met && !all.Met {
			c.Text += ", which would miss it"
		}
		c.Text += ")"
	case all.Met, x.Unknown == stats.UnrecordedStalls && !o.within(float64(x.LowestNs)):
		return
	default:
		c.Known, c.Met, c.Observed = false, false, 0
		c.Text = fmt.Sprintf("%s with the machine's stalls, unknown without them: %s", all.Text,
			cmp.Or(x.Unknown, stats.TooFewArrivals))
	}
	c.WithStalls = all.Observed
}

// settle sets the outcome by a value.
func (o Objective) settle(c *Outcome, v float64) {
	c.Known, c.Observed, c.Met = true, v, o.within(v)
	c.Text = o.seen(v)
}

// share settles part/total. With too few requests, only a missed objective is decided.
func (o Objective) share(c *Outcome, part, total int64) {
	c.Samples = total
	if total == 0 {
		c.Text = "there were no requests"
		return
	}
	v := float64(part) / float64(total)
	if total < c.RequiredSamples && o.within(v) {
		c.Text = needs(c)
		return
	}
	o.settle(c, v)
	c.Text += fmt.Sprintf(" (%d of %d)", part, total)
}

func needs(c *Outcome) string {
	return fmt.Sprintf("needs n ≥ %d, has %d", c.RequiredSamples, c.Samples)
}

// sample is the data for a time or the errors. Silent requests got no response, at least not within
// silentNs.
type sample struct {
	dist                     record.Dist
	answered, failed, silent int64
	silentNs                 float64
	share                    float64 // share of an independent response that each counts for
}

func (o Objective) subjectOf(l *record.Load) (sample, bool) {
	s := sample{
		answered: l.Answered, failed: l.Errors.Total(), silent: max(l.Censored, 0),
		silentNs: float64(l.DrainNs), dist: l.ResponseTime,
	}
	switch o.Time {
	case service:
		// Requests that were never sent have no service time, and the record does not count them.
		s.dist, s.silent = l.ServiceTime, max(l.Sent-l.Answered-l.Errors.Total(), 0)
	case lag:
		s.dist, s.silent = l.Lag, 0
	case connect:
		s.dist, s.silent = l.ConnectTime, 0
	}
	if o.Route == "" {
		return s, true
	}
	for i := range l.Routes {
		r := &l.Routes[i]
		if r.Name != o.Route {
			continue
		}
		s.answered, s.failed = r.Answered, r.Failed
		s.silent = max(r.Sent-r.Answered-r.Failed, 0)
		s.dist = r.ResponseTime
		if o.Time == service {
			s.dist = r.ServiceTime
		}
		return s, true
	}
	return s, false
}

// time settles a duration. Silent requests count as the slowest, because they took longer than the
// drain.
func (o Objective) time(c *Outcome, s sample) {
	n := s.dist.Count
	c.Samples = n + s.silent
	switch {
	case c.Samples > 0:
	case s.answered > 0 && o.Time == lag:
		c.Text = "only an open load has a lag"
		return
	case s.answered > 0 && o.Time == connect:
		c.Text = "no connection was opened in the window"
		return
	default:
		c.Text = "there were no answers"
		return
	}
	v, isLeast := 0.0, false
	switch o.Metric {
	case longest:
		v, isLeast = float64(s.dist.MaxNs), s.silent > 0
	case mean:
		v = (s.dist.MeanNs*float64(n) + s.silentNs*float64(s.silent)) / float64(c.Samples)
		isLeast = s.silent > 0
	default:
		h, _ := s.dist.Histogram() // a damaged histogram counts as none
		if int64(s.share*float64(c.Samples)) < c.RequiredSamples && !o.brokenAnyway(h, c, s) {
			if c.Text = needs(c); c.Samples >= c.RequiredSamples {
				c.Text += fmt.Sprintf(" that are worth %d independent ones", int64(s.share*
					float64(c.Samples)))
			}
			return
		}
		var ok bool
		if v, isLeast, ok = o.percentile(h, c.Samples, &s.dist); !ok {
			c.Text = "the record has no histogram"
			return
		}
	}
	if isLeast && o.Metric != mean {
		v = max(s.silentNs, float64(s.dist.MaxNs))
	}
	if isLeast && o.within(v) {
		c.Text = fmt.Sprintf("at least %s: %d requests were never answered; raise the drain",
			o.seen(v), s.silent)
		return
	}
	o.settle(c, v)
	if isLeast {
		c.Text = "≥ " + c.Text
	}
}

// percentile returns the value at the quantile's rank among all n requests; isLeast is set if that
// request is silent.
func (o Objective) percentile(h *hdrhistogram.Histogram, n int64, d *record.Dist) (v float64,
	isLeast, ok bool) {
	rank := rankOf(o.Quantile, n)
	switch {
	case rank > d.Count:
		return 0, true, true
	case h != nil:
		return float64(h.ValueAtPercentile(100 * float64(rank) / float64(d.Count))), false, true
	case n > d.Count:
		return 0, false, false
	}
	// External load generators can report only the usual percentiles.
	stored := map[string]int64{"p50": d.P50Ns, "p90": d.P90Ns, "p99": d.P99Ns, "p99.9": d.P999Ns}
	ns := stored[o.Metric]
	return float64(ns), false, ns > 0
}

// brokenAnyway reports whether the objective is missed even if all missing samples were fast.
func (o Objective) brokenAnyway(h *hdrhistogram.Histogram, c *Outcome, s sample) bool {
	slow := int64(0)
	if s.silentNs >= o.Limit {
		slow = s.silent
	}
	if h != nil {
		for _, bar := range h.Distribution() {
			if !o.within(float64(bar.From)) {
				slow += bar.Count
			}
		}
	}
	return int64(s.share*float64(slow)) > c.RequiredSamples-rankOf(o.Quantile, c.RequiredSamples)
}

// rankOf returns the rank, from 1, that HdrHistogram uses for a quantile of n.
func rankOf(q float64, n int64) int64 { return min(max(int64(q*float64(n)+0.5), 1), n) }
