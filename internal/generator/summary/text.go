package summary

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/units"
	"prony.example/load/network"
	"prony.example/record"
)

// Options of Text.
type Options struct {
	Spectrum bool // also print the percentile spectrum
}

// Text writes a load for people.
func Text(w io.Writer, r Report, o Options) error {
	p := &page{}
	l := r.Load
	if r.Target != "" {
		p.Line("%s", r.Target)
	}
	p.Line("%s", what(l))
	p.Line("%s, %s, for %v after a lead-in of %v", units.Plural(int64(l.Threads), "thread"),
		connections(l), time.Duration(l.WindowNs).Round(time.Millisecond),
		time.Duration(l.LeadInNs))
	if r.Ran > 0 {
		p.Line("CUT SHORT after %v of the window: results are of this part, requests in flight "+
			"are unanswered", r.Ran.Round(time.Millisecond))
	}
	p.Line("")
	withheld := verdict.Withheld(r.Verdict, r.Load.Name)
	if withheld != nil {
		w := wording.Finding(*withheld)
		p.row("latency", "withheld: %s (limit %s);", w.Observed, w.Limit)
		p.row("", "%s", w.Hint)
	} else {
		p.latency(l)
	}
	p.Line("")
	p.counts(l)
	p.failures(l)
	if withheld == nil {
		share, _ := l.Autocorrelation.Worth()
		p.dist("first byte", &l.FirstByte, share)
	}
	p.conditions(l)
	if len(l.Routes) > 0 {
		p.Line("")
		p.routes(l, withheld != nil)
	}
	p.verdict(r.Verdict)
	if len(r.Command) > 0 {
		p.Line("")
		p.row("reproduce", "%s", cmdlog.Join(cmdlog.Repeatable(r.Command)))
	}
	if o.Spectrum && withheld == nil && l.ResponseTime.Count > 0 {
		p.Line("\n  Response time in ms, percentile spectrum:")
		if err := Spectrum(p, l); err != nil {
			return err
		}
	}
	return p.To(w)
}

// Model describes a load in words. It uses only fields that are known before the load.
func Model(l *record.Load) string { return what(l) + ", " + connections(l) }

func what(l *record.Load) string {
	var parts []string
	if l.Driver != "" {
		parts = append(parts, l.Driver)
	}
	if l.Protocol != "" {
		parts = append(parts, l.Protocol)
	}
	parts = append(parts, l.Model)
	if l.Model == record.Open {
		parts = append(parts, arrivals(l))
	}
	if l.Users != "" {
		parts = append(parts, "users "+l.Users)
	}
	if l.Think != "" {
		parts = append(parts, "think "+l.Think)
	}
	if n := l.Network; n != nil {
		parts = append(parts, "network "+network.FromNs(n.DelayNs, n.JitterNs).String())
	}
	return strings.Join(parts, ", ")
}

func connections(l *record.Load) string {
	text := units.Plural(int64(l.Connections), "connection")
	if l.Streams > 1 {
		text += fmt.Sprintf(" of %d streams", l.Streams)
	}
	if n := l.StreamsPermitted; n != nil {
		text += fmt.Sprintf(" (the server permits %d)", *n)
	}
	if l.Churn > 0 {
		text += " renewed every " + units.Plural(l.Churn, "answer")
	}
	return text
}

func arrivals(l *record.Load) string {
	text := l.Arrivals + " at " + units.Rate(l.RatePerS) + "/s"
	if l.Shape != "" {
		text += " on average, " + l.Shape
	}
	if l.RateOf != "" {
		text += " (" + l.RateOf + ")"
	}
	return text
}

// counts prints numbers of requests and the throughput.
func (p *page) counts(l *record.Load) {
	if l.WindowNs > 0 {
		rate := units.Rate(l.ThroughputPerS) + " requests/s"
		if l.Model == record.Open {
			rate += " of " + units.Rate(l.RatePerS) + "/s offered"
		}
		p.row("throughput", "%s", rate)
		s := float64(l.WindowNs) / 1e9
		p.row("transfer", "%s/s in, %s/s out", units.Bytes(float64(l.BytesIn)/s),
			units.Bytes(float64(l.BytesOut)/s))
	}
	due := ""
	if l.Model == record.Open || l.Waited > 0 {
		due = units.Count(l.Scheduled) + " due, "
	}
	p.row("requests", "%s%s sent, %s answered well, %s failed, %s unanswered", due,
		units.Count(l.Sent), units.Count(l.Answered),
		units.Count(l.Errors.Requests()), units.Count(l.Censored))
	if late := l.Answered + l.Errors.Requests() - l.Sent; late > 0 {
		p.row("", "at least %s more left after the window closed", units.Count(late))
	}
	switch {
	case l.Waited > 0 && l.StreamsPermitted != nil:
		p.row("", "%s of these requests waited because all streams that the server permits were "+
			"busy", units.Count(l.Waited))
	case l.Waited > 0:
		p.row("", "%s of these requests waited because every connection was "+
			"busy", units.Count(l.Waited))
	}
}

func (p *page) failures(l *record.Load) {
	e := &l.Errors
	if e.Total() == 0 {
		return
	}
	var kinds []string
	for _, c := range []struct {
		name string
		n    int64
	}{
		{"connect", e.Connect}, {"write", e.Write}, {"read", e.Read}, {"timeout", e.Timeout},
		{"parse", e.Parse}, {"status", e.Status}, {"body", e.Body}, {"unsolicited", e.Unsolicited},
		{"closed", e.Closed},
	} {
		if c.n > 0 {
			kinds = append(kinds, c.name+" "+units.Count(c.n))
		}
	}
	p.row("errors", "%s", strings.Join(kinds, ", "))
	if e.Example != "" {
		p.row("", "first: %s", e.Example)
	}
}

// conditions prints connections and costs of the load.
func (p *page) conditions(l *record.Load) {
	p.dist("connect", &l.ConnectTime, 1)
	p.dist("TLS", &l.TLSTime, 1)
	if l.Network != nil {
		p.dist("network", &l.Network.Added, 1)
	}
	if l.TLSResumed > 0 {
		p.row("", "%s of %s TLS handshakes resumed a session", units.Count(l.TLSResumed),
			units.Count(l.TLSTime.Count))
	}
	if l.TLS != "" {
		p.row("", "%s", l.TLS)
	}
	if l.Reconnects > 0 {
		p.row("reconnects", "%s", units.Count(l.Reconnects))
	}
	if l.Retried > 0 {
		p.row("retried", "%s requests sent again: the service closed the connection before it "+
			"read them", units.Count(l.Retried))
	}
	if l.Early > 0 {
		p.row("early", "%s answers came before their requests were sent completely",
			units.Count(l.Early))
	}
	if l.TraceHash != "" {
		p.row("schedule", "seed %d, hash %s", l.Seed, l.TraceHash)
	}
	g := &l.Generator
	if g.Engine == "" {
		return
	}
	text := g.Engine
	if g.EngineReason != "" {
		text += " (" + g.EngineReason + ")"
	}
	p.row("generator", "%s", text)
	text = fmt.Sprintf("%s of CPU time per request, busiest thread "+
		"%s", units.Duration(g.CPUPerRequestNs),
		units.Percent(g.CPUShare))
	if g.MemoryBytes > 0 {
		text += ", " + units.Bytes(float64(g.MemoryBytes))
	}
	p.row("", "%s", text)
	p.row("", "pacing %s", g.Pacing)
	p.generators(l)
}

func (p *page) verdict(v record.Verdict) {
	p.Line("")
	p.Line("%s", v.Grade)
	reasons, noted := wording.Reasons(v)
	for _, r := range reasons {
		p.Line("  %s\n    %s", r.Observed, r.Hint)
	}
	if noted != "" {
		p.Line("  %s", noted)
	}
}

// generatorsShown is the number of listed generators of a load; JSON has all.
const generatorsShown = 8

// wallTold is the difference from which on a wall clock's offset is printed.
const wallTold = 10 * time.Millisecond

// generators prints the load's generators, first those with a fault.
func (p *page) generators(l *record.Load) {
	all := slices.Clone(l.Generators)
	if len(all) == 0 {
		return
	}
	within := int64(0)
	for i := range all {
		c := &all[i].Clock
		within = max(within, c.ErrorNs, max(c.DriftNs, -c.DriftNs)+c.DriftErrorNs)
	}
	p.row("generators", "%d, clock differences known within %s", len(all),
		units.Duration(float64(within)))
	slices.SortStableFunc(all, func(a, b record.Generator) int {
		return cmp.Compare(ailing(&b), ailing(&a))
	})
	for i := range all[:min(len(all), generatorsShown)] {
		g := &all[i]
		text := fmt.Sprintf("%d  %s: %s requests sent", g.Index, g.Name, units.Count(g.Sent))
		if g.Fault != "" {
			text += ", " + g.Fault
		} else {
			text += fmt.Sprintf(", delay up to %s, %s of CPU", units.Duration(float64(g.LagMaxNs)),
				units.Percent(g.CPUShare))
		}
		// Offsets of monotonic clocks are arbitrary, and so are not printed.
		if deviation := time.Duration(g.Clock.WallNs); deviation.Abs() > wallTold {
			text += ", clock off by " + deviation.Round(time.Millisecond).String()
		}
		p.row("", "%s", text)
	}
	if n := len(all) - generatorsShown; n > 0 {
		p.row("", "and %d more generators; --json lists all", n)
	}
}

// ailing returns a generator's rank by the severity of its problems.
func ailing(g *record.Generator) int {
	switch {
	case g.Fault != "":
		return 2
	case len(g.Findings) > 0:
		return 1
	}
	return 0
}
