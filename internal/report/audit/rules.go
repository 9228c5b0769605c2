package audit

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/stats"
)

// rules lists all checks, in the order in which a reader would make them.
var rules = []rule{
	{name: "count", row: checkCount, quantities: []Quantity{Rate, Duration, Requests},
		needs:  "rate, requests and duration, all three as printed",
		source: "requests = rate × time, by definition"},
	{name: "asked requests", row: checkAskedRequests, quantities: []Quantity{AskedRequests},
		needs: "a number of requests in the command (-n), and the measured requests or rate × " +
			"duration",
		source: "hey, oha, ab and h2load end after the number of requests that -n sets"},
	{name: "asked duration", row: checkAskedDuration, quantities: []Quantity{AskedDuration},
		needs:  "a configured duration (-d, -z), and the measured duration or requests / rate",
		source: "wrk, wrk2, hey -z, oha -z and k6 end after the configured time"},
	{
		name:       "iterations",
		row:        checkIterations,
		quantities: []Quantity{Iterations, IterationRate, Duration},
		needs:      "iterations, their rate and duration",
		source:     "iterations = rate × time; virtual users = rate × iteration time (Little 1961)",
	},
	{name: "little", row: checkLittle, quantities: []Quantity{Rate, Connections},
		needs: "rate, connections, and a mean or percentiles of a closed load",
		source: "J. D. C. Little, A Proof for the Queuing Formula L = λW, Operations Research " +
			"9(3), 1961"},
	{name: "order", row: checkOrder,
		needs:  "two values of minimum, mean, percentiles and maximum",
		source: "a percentile never falls as its rank rises; a mean is between min and max"},
	{name: "mean", row: checkMean, quantities: []Quantity{Mean},
		needs:  "a mean and percentiles",
		source: "a mean is the integral of the quantiles (Markov's inequality follows from it)"},
	{name: "deviation", row: checkDeviation, quantities: []Quantity{Deviation, Mean},
		needs: "a standard deviation with mean and median, or with maximum and number of requests",
		source: "|mean − median| ≤ s (Hotelling and Solomons 1932); max − mean ≤ s·√(n−1) " +
			"(Samuelson 1968)"},
	{name: "flat", row: checkFlat,
		needs:  "two percentiles",
		source: "docs/checks.md, numbers 8 and 19: timers and histograms too coarse"},
	{name: "errors", row: checkErrors,
		needs: "a number of errors with requests or rate, or a share of errors",
		source: "docs/checks.md, number 13; wrk counts responses with status 4xx and 5xx as " +
			"requests"},
	{name: "tail", row: checkTail, quantities: []Quantity{Max},
		needs: "a maximum and a percentile, and the duration for the maximum's share of the run",
		source: "coordinated omission: G. Tene, How NOT to Measure Latency, 2013; RFC 6298, 2.1, " +
			"for 1 s and its doublings"},
	{name: "samples", row: checkSamples, quantities: []Quantity{Requests},
		needs:  "the number of requests, and p99 or a higher percentile",
		source: "order statistics, 95 %: Conover, Practical Nonparametric Statistics, 3.2"},
	{name: "overload", row: checkOverload, quantities: []Quantity{Offered, Rate},
		needs:  "an offered rate (wrk2 -R, --rate) and the achieved rate",
		source: "backlog of an open load = (offered − achieved) × time; G. Tene, wrk2"},
	{name: "overload elsewhere", document: checkOverloadElsewhere,
		needs: "a command with an offered rate in the text, and a table of rates without a " +
			"command",
		source: "as overload"},
	{name: "think time", table: checkThink,
		needs:  "users with iteration times or think time, for one result or two compared results",
		source: "interactive response time law: X = N / (R + Z), Lazowska et al., 1984, chapter 3"},
	{name: "bytes", row: checkBytes,
		needs:  "two values of bytes, bytes/s and duration, or size and requests",
		source: "bytes = bytes/s × time ≥ size × requests"},
	{name: "cpu", document: checkCPU,
		needs:  "used CPU, with the available cores or several rows to compare",
		source: "utilisation law: busy time = rate × demand, Lazowska et al., 1984, chapter 3"},
	{name: "windows", table: checkWindows,
		needs: "durations of the runs, or requests and rates",
		source: "Kalibera and Jones, Rigorous Benchmarking in Reasonable Time, ISMM 2013; " +
			"Barrett et al., Virtual Machine Warmup Blows Hot and Cold, OOPSLA 2017"},
	{name: "best of", table: checkBestOf,
		needs: "a table whose headings, or the text above it, mention the best of several runs",
		source: "the largest of n is above the mean for every n > 1; order statistics of the " +
			"normal"},
	{name: "repetitions", table: checkRepetitions,
		needs:  "a table of several rates",
		source: "Kalibera and Jones 2013"},
	{name: "ranks", table: checkRanks,
		needs: "two rates of one scenario without a measure of spread",
		source: "up to 25 % between runs of one framework: TechEmpower/FrameworkBenchmarks issue " +
			"992; about 10 %: java-http's own README"},
	{name: "plateau", table: checkPlateau,
		needs:  "five rates of one scenario with three digits",
		source: "174 of 380 frameworks within 1.5 %: the-benchmarker/web-frameworks issue 9775"},
	{name: "identical", table: checkIdentical,
		needs:  "three values of one column with three digits",
		source: "expected number of coincidences, n over k / m^(k−1)"},
	{name: "relative", table: checkRelative,
		needs:  "a column of relative rates beside the rates",
		source: "the ratio of a row to itself is always 1"},
	{name: "sums", table: checkSums,
		needs:  "a row of totals",
		source: "a total is the sum of its rows"},
	{name: "histogram", row: checkHistogram,
		needs:  "a histogram and percentiles, such as in Prony's records",
		source: "percentiles are computed from the histogram: docs/formats/record.md"},
	{name: "identities", document: checkIdentities,
		needs:  "a run of Prony",
		source: "docs/formats/record.md"},
	{name: "verdict", row: checkVerdict,
		needs:  "a verdict of Prony",
		source: "docs/method.md"},
}

// Limits for differences beyond the printed digits: a tool's clock stops a little after its
// counter, and a rate may exclude its start. A difference above oddShare is unusual, and one above
// cannotShare is a contradiction.
const (
	oddShare    = 0.02
	cannotShare = 0.05
)

func graded(stated, implied span) (Severity, bool) {
	switch {
	case stated.meets(implied, oddShare):
		return "", false
	case stated.meets(implied, cannotShare):
		return Doubt, true
	}
	return Contradiction, true
}

// times formats a factor in words.
func times(a, b float64) string {
	switch f := a / b; {
	case f >= 1.95:
		return fmt.Sprintf("%.3g times as many", f)
	case f > 1:
		return fmt.Sprintf("%.2g %% more", (f-1)*100)
	case f < 0.1: // "1e+02 % less" is unreadable
		return fmt.Sprintf("one %.3gth of it", 1/f)
	default:
		return fmt.Sprintf("%.2g %% less", (1-f)*100)
	}
}

func checkCount(r *Row, v []Value) (hit, bool) {
	if v[0].derived || v[1].derived {
		return hit{}, false
	}
	implied := v[0].span().times(v[1].span()).by(1 / second)
	stated := v[2].span()
	if e, ok := r.get(Errors); ok {
		// The rate may count only good responses and the number all of them, or the other way
		// round.
		stated = span{max(stated.lo-e.V, 0), stated.hi + e.V}
	}
	severity, odd := graded(stated, implied)
	if !odd {
		return hit{}, true
	}
	n := v[0].V * v[1].V / second
	return hit{severity: severity, line: v[2].Line,
		arithmetic: fmt.Sprintf("%s × %s = %s requests, but the file states %s: %s",
			v[0].Text, v[1].Text,
			units.Whole(n), v[2].Text, times(n, v[2].V)),
		means: "rate, time and number of requests do not come from the same run, or one of them " +
			"has a typing error",
		do: "use these three values only together with the raw output"}, true
}

// impliedRequests returns the stated requests, or rate × time.
func impliedRequests(r *Row) (span, string, bool) {
	if n, ok := r.get(Requests); ok {
		return n.span(), n.Text + " requests in the file", true
	}
	v, ok := r.all(Rate, Duration)
	if !ok {
		return span{}, "", false
	}
	return v[0].span().times(v[1].span()).by(1 / second),
		fmt.Sprintf("%s × %s = %s requests", v[0].Text, v[1].Text,
			units.Whole(v[0].V*v[1].V/second)), true
}

func checkAskedRequests(r *Row, v []Value) (hit, bool) {
	requested := v[0]
	n, words, ok := impliedRequests(r)
	if !ok {
		return hit{}, false
	}
	if e, ok := r.get(Errors); ok {
		n.hi += e.V
	}
	want := requested.span()
	if c, ok := r.get(Connections); ok && r.Tool == "hey" && c.V >= 1 {
		want.lo = math.Floor(requested.V/c.V) * c.V // it sends the same number on each connection
	}
	severity, odd := graded(want, n)
	if !odd {
		return hit{}, true
	}
	middle := (n.lo + n.hi) / 2
	line := cmp.Or(r.Values[Requests].Line, r.Values[Duration].Line)
	means := "the printed command did not produce these numbers"
	if middle < requested.V {
		means += ", or many requests failed and are not reported"
	}
	return hit{severity: severity, line: line,
		arithmetic: fmt.Sprintf(
			"%s, but the command (line %d) requests %s: %s",
			words,
			requested.Line,
			units.Whole(requested.V),
			times(middle, requested.V),
		),
		means: means,
		do: "run the printed command, or ask the authors for the real command, because the " +
			"printed one does not reproduce the result",
	}, true
}

func checkAskedDuration(r *Row, v []Value) (hit, bool) {
	requested := v[0]
	elapsed, words := span{}, ""
	if d, ok := r.get(Duration); ok {
		elapsed, words = d.span(), "the run took "+said(d)
	} else if n, ok := r.all(Requests, Rate); ok {
		elapsed = n[0].span().per(n[1].span()).by(second)
		words = fmt.Sprintf("%s / %s = %s", n[0].Text, n[1].Text,
			units.Duration(n[0].V/n[1].V*second))
	} else {
		return hit{}, false
	}
	h := hit{arithmetic: fmt.Sprintf("%s, but the configured duration is %s (line %d)", words,
		units.Duration(requested.V), requested.Line)}
	switch {
	case elapsed.hi < requested.V*0.9:
		h.severity = Contradiction
		h.means = "the run ended early, or it used another configuration than the printed one"
		h.do = "find out why the run ended early; do not quote the configured duration"
	case elapsed.hi < requested.V*0.98:
		h.severity = Doubt
		h.means = "the run ended a little early"
		h.do = "find out why the run ended early"
	case elapsed.lo > requested.V*1.1+second:
		h.severity = Doubt
		h.means = "the tool waited for responses long after the end, or the configuration is " +
			"different: a rate over the longer time is too low"
		h.do = "look for a stall or timeouts at the end"
	default:
		return hit{}, true
	}
	return h, true
}

func checkIterations(r *Row, v []Value) (hit, bool) {
	implied := v[1].span().times(v[2].span()).by(1 / second)
	if severity, odd := graded(v[0].span(), implied); odd {
		return hit{severity: severity, line: v[0].Line,
			arithmetic: fmt.Sprintf("%s × %s = %s iterations, but the file states %s",
				v[1].Text, v[2].Text,
				units.Whole(v[1].V*v[2].V/second), v[0].Text),
			means: "iterations, their rate and the time do not come from the same run",
			do:    "use these three values only together with the raw output"}, true
	}
	u, ok := r.all(Users, IterationMean)
	if !ok {
		return hit{}, true
	}
	busy := v[1].span().times(u[1].span()).by(1 / second)
	if busy.lo <= u[0].V*(1+cannotShare) {
		return hit{}, true
	}
	return hit{severity: Contradiction, line: u[1].Line,
		arithmetic: fmt.Sprintf("%s × %s = %s users at once, but there were at most %s users",
			v[1].Text, u[1].Text, units.Whole(v[1].V*u[1].V/second), u[0].Text),
		means: "each user can be in only one iteration at a time",
		do:    "ask the authors which of the three values comes from another run"}, true
}

// meanOf returns the mean latency, or the minimum that the percentiles allow.
func meanOf(r *Row) (s span, words string, stated bool) {
	if m, ok := r.get(Mean); ok {
		return m.span(), m.Text, true
	}
	if lo, _ := meanBounds(r); lo > 0 {
		return span{lo, math.Inf(1)}, "a mean of at least " + units.Duration(lo) +
			" implied by the percentiles", false
	}
	return span{}, "", false
}

// idleShare is the largest share of the connections' time that may be outside of the latency
// without a finding.
const idleShare = 0.2

func checkLittle(r *Row, v []Value) (hit, bool) {
	mean, words, stated := meanOf(r)
	if words == "" || r.Model == record.Open {
		return hit{}, false
	}
	n, places := v[1].V, v[1].Text+" connections"
	s, ok := r.get(Streams)
	if ok && s.V > 1 {
		n, places = n*s.V, places+" of "+s.Text+" streams"
	}
	think, _ := r.get(Think)
	busy := v[0].span().times(span{mean.lo + think.V, mean.hi + think.V}).by(1 / second)
	sum := fmt.Sprintf("%s × %s = %s requests under way, on %s", v[0].Text, words,
		few(v[0].V*(r.Values[Mean].V+think.V)/second), places)
	if !stated {
		sum = fmt.Sprintf("%s × %s = at least %s requests under way, on %s", v[0].Text, words,
			few(busy.lo), places)
	}
	switch {
	case busy.lo > n*(1+cannotShare) && r.Tool == "wrk" && stated:
		return hit{severity: Doubt, arithmetic: sum,
			means: "wrk's latency does not describe the requests that it sent: a script with " +
				"pipelining has several requests under way on a connection, or wrk added " +
				"invented samples for each slow request (stats_correct in its source)",
			do: "do not use latencies of that run; measure latency with an open load"}, true
	case busy.lo > n*(1+cannotShare) && r.Tool == "h2load" && !ok:
		return hit{}, false // its text lacks the number of streams (-m)
	case busy.lo > n*(1+cannotShare):
		h := hit{severity: Contradiction, arithmetic: sum,
			means: "a connection carries one request at a time, so rate, latency and connections " +
				"do not come from the same run",
			do: "ask the authors which of the three values comes from another run, or whether " +
				"requests were pipelined"}
		if r.Model != record.Closed {
			h.severity = Doubt
			h.means = "this is impossible in a closed load: the latency includes time outside of " +
				"the connections, or the load is open, or requests were pipelined"
			h.do = "ask the authors for the load model, and state it beside the latency"
		}
		return h, true
	case stated && busy.hi < n*(1-idleShare):
		return hit{severity: Doubt, arithmetic: sum,
			means: "connections spent much time outside of counted requests: the client was " +
				"busy, connected or paused, or responses never arrived; the client may limit the " +
				"rate",
			do: "check the client's CPU before you take the rate for the capacity"}, true
	}
	return hit{}, true
}

// confidence is the confidence level of the percentiles' intervals.
const confidence = 0.95

func checkSamples(r *Row, v []Value) (hit, bool) {
	n := v[0]
	var words []string
	checked, needs := false, int64(0)
	for _, p := range r.points() {
		if p.q < 0.99 {
			continue
		}
		checked = true
		if need := stats.QuantileNeeds(p.q, confidence); n.V < float64(need) {
			words = append(words, fmt.Sprintf("%s %s", p.quantity, p.Text))
			needs = need
		}
	}
	if words == nil {
		return hit{}, checked
	}
	return hit{severity: Doubt,
		arithmetic: fmt.Sprintf("%s of %s requests; a confidence interval needs %d requests",
			strings.Join(words, ", "), n.Text, needs),
		means: "there are too few requests above this percentile to estimate it",
		do:    "leave the percentile out, or measure longer"}, true
}
