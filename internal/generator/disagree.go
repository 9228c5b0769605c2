package generator

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"prony.example/record"
)

// From where on two results differ. Throughput of closed loads varies by a few per cent from run to
// run, percentiles by more.
const (
	differs     = 0.05  // throughput, relative
	differsTime = 0.10  // percentiles, relative
	differsRate = 0.001 // share of failed requests, absolute
	busy        = 0.8   // of its cores: a generator above may be the limit itself
	delivered   = 0.99  // of the rate asked for
)

// Disagreement is one thing in which two results differ, or a cause of it.
type Disagreement struct {
	Kind string // the same for the same thing between other results of these two
	Text string // with this one's numbers
}

// Disagree says why two results of loads against the same service differ: first what cannot be
// compared at all, then what differs, then what about the tools explains it. It is empty when they
// agree. Only what differs is certain; the causes are those that apply.
func Disagree(a, b *record.Load) []Disagreement {
	out := unlike(a, b)
	facts := differences(a, b)
	if len(out)+len(facts) == 0 {
		return nil
	}
	out = append(out, facts...)
	for _, l := range []*record.Load{a, b} {
		for i, c := range causes {
			if c.subject != "" && c.subject != brand(l) || !c.when(l) {
				continue
			}
			out = append(out, Disagreement{fmt.Sprintf("cause %d of %s", i, who(l)),
				who(l) + " " + c.report(l)})
		}
	}
	return out
}

// saying appends a disagreement of a kind.
func saying(out *[]Disagreement) func(kind, format string, args ...any) {
	return func(kind, format string, args ...any) {
		*out = append(*out, Disagreement{kind, fmt.Sprintf(format, args...)})
	}
}

func who(l *record.Load) string { return cmp.Or(l.Driver, "prony") }

// brand is the tool without its version.
func brand(l *record.Load) string {
	name, _, _ := strings.Cut(who(l), " ")
	return name
}

// unlike says what makes a comparison meaningless.
func unlike(a, b *record.Load) (out []Disagreement) {
	x, y := who(a), who(b)
	report := saying(&out)
	if a.Model != b.Model && a.Model != "" && b.Model != "" {
		report("model", "%s offered a %s load, %s %s one: only an open one counts what waits "+
			"before it is sent", x, a.Model, y, article(b.Model))
	}
	if a.Connections != b.Connections && a.Connections > 0 && b.Connections > 0 {
		report("connections", "%s used %d connections, %s %d", x, a.Connections, y, b.Connections)
	}
	if a.RatePerS > 0 && b.RatePerS > 0 && apart(a.RatePerS, b.RatePerS) > 1-delivered {
		report("rate", "%s was asked for %g/s, %s for %g/s", x, a.RatePerS, y, b.RatePerS)
	}
	if a.Arrivals != b.Arrivals && a.Model == record.Open && b.Model == record.Open {
		report("arrivals", "%s had %s arrivals, %s %s: bunches wait longer", x, a.Arrivals, y,
			b.Arrivals)
	}
	if a.Protocol != b.Protocol {
		report("protocol", "%s spoke %s, %s %s", x, cmp.Or(a.Protocol, "HTTP/1.1"), y,
			cmp.Or(b.Protocol, "HTTP/1.1"))
	}
	return out
}

func article(model string) string {
	if model == record.Open {
		return "an open"
	}
	return "a " + model
}

// apart is the relative difference of two positive numbers.
func apart(a, b float64) float64 { return math.Abs(a-b) / max(a, b) }

func differences(a, b *record.Load) (out []Disagreement) {
	item, alternative := who(a), who(b)
	report := saying(&out)
	if x, y := a.ThroughputPerS, b.ThroughputPerS; x > 0 && y > 0 && apart(x, y) > differs {
		report(
			"throughput",
			"throughput: %s %.0f/s, %s %.0f/s (%.2f of it)",
			item,
			x,
			alternative,
			y,
			y/x,
		)
	}
	if x, y := failed(a), failed(b); math.Abs(x-y) > differsRate {
		report("failed", "failed requests: %s %s, %s %s", item, share(x), alternative, share(y))
	}
	subject, x, y := "response time", &a.ResponseTime, &b.ResponseTime
	if x.Count == 0 || y.Count == 0 {
		// The only clock that both have.
		subject, x, y = "service time", &a.ServiceTime, &b.ServiceTime
	}
	for _, q := range []struct {
		name string
		a, b int64
	}{{"p50", x.P50Ns, y.P50Ns}, {"p99", x.P99Ns, y.P99Ns}, {"largest", x.MaxNs, y.MaxNs}} {
		if q.a > 0 && q.b > 0 && apart(float64(q.a), float64(q.b)) > differsTime {
			report(
				q.name+" "+subject,
				"%s of %s: %s %v, %s %v",
				q.name,
				subject,
				item,
				short(q.a),
				alternative,
				short(q.b),
			)
		}
	}
	return out
}

func failed(l *record.Load) float64 {
	n := l.Errors.Total()
	if n == 0 {
		return 0
	}
	return float64(n) / float64(l.Done+n)
}

func share(f float64) string {
	if f > 0 && f < 0.0005 {
		return "less than 0.1 %"
	}
	return fmt.Sprintf("%.1f %%", 100*f)
}

// short is a time with three digits.
func short(ns int64) time.Duration {
	d, unit := time.Duration(ns), time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// cause is a property of a tool, or of any, that explains a difference.
type cause struct {
	subject string // the tool; empty: any
	when    func(*record.Load) bool
	report  func(*record.Load) string
}

func always(*record.Load) bool { return true }

func just(s string) func(*record.Load) string { return func(*record.Load) string { return s } }

var causes = []cause{
	{"", func(l *record.Load) bool { return l.Driver != "" && l.Errors.Status > 0 },
		func(l *record.Load) string {
			total := float64(l.Errors.Status) / float64(l.Done+l.Errors.Total())
			return fmt.Sprintf("itself counts answers whatever their status: %s of its requests "+
				"had one that is an error", share(total))
		}},
	{"", func(l *record.Load) bool { return l.Model == record.Open && l.ResponseTime.Count == 0 },
		just("starts its clock when a request is really sent: what waited before that is in no " +
			"time (coordinated omission)")},
	{"", func(l *record.Load) bool {
		requested := l.RatePerS * float64(l.WindowNs) / 1e9
		return requested > 0 && float64(l.Done+l.Errors.Total()) < delivered*requested
	}, func(l *record.Load) string {
		requested := l.RatePerS * float64(l.WindowNs) / 1e9
		return fmt.Sprintf("came to %s of the rate that it was asked for",
			share(float64(l.Done+l.Errors.Total())/requested))
	}},
	{"", func(l *record.Load) bool { return l.Generator.CPUShare > busy },
		func(l *record.Load) string {
			return fmt.Sprintf("used %s of its cores: it may be the limit itself",
				share(l.Generator.CPUShare))
		}},
	{"", func(l *record.Load) bool { return l.Censored > 0 }, func(l *record.Load) string {
		return fmt.Sprintf("had no answer to %d requests, which are in no percentile", l.Censored)
	}},
	{"", func(l *record.Load) bool {
		return l.LeadInNs == 0 && l.WindowNs > 0 &&
			brand(l) != "wrk2"
	},
		just("counts from its first request: connecting and a cold service are in its numbers")},
	{"", func(l *record.Load) bool { return l.Errors.Body > 0 },
		just("compares bodies, which others take as they come")},
	{"wrk", func(l *record.Load) bool { return l.ServiceTime.HDR == "" },
		just("fills its percentiles up with invented samples (backfill)")},
	{"wrk", func(l *record.Load) bool { return l.Errors.Timeout > 0 },
		just("leaves answers later than its timeout out of its percentiles")},
	{"wrk2", always, just("wakes up in whole milliseconds, which adds half a millisecond and " +
		"more to each time from when it was due")},
	{"wrk2", always, just("leaves its first 10 s out of its latency, but not out of its counts")},
	{"hey", func(l *record.Load) bool { return l.ServiceTime.HDR == "" },
		just("knows times in steps of 0.1 ms")},
	{"hey", func(l *record.Load) bool {
		return l.ServiceTime.Count+l.ErrorTime.Count >= heyMost
	}, just("keeps its first million answers: of the others neither time nor status is known")},
	{"hey", func(l *record.Load) bool { return l.Model == record.Open },
		just("drops what was due while a worker waited for an answer")},
	{"k6", always, just("leaves waiting for a connection and connecting out of its times, and " +
		"its script takes processor time for each request")},
	{"h2load", func(l *record.Load) bool { return l.Model == record.Open },
		just("paces each connection for itself: a slow one delays only its own requests")},
	{"jmeter", always, just("counts whole milliseconds")},
	{"jmeter", always, just("runs in a Java machine that warms up while it measures")},
	{"vegeta", always, just("gives percentiles of a t-digest of all requests, failed ones too")},
}
