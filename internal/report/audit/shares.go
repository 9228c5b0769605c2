package audit

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/units"
	"prony.example/record"
)

// failures returns the share of requests that failed, and its computation in words.
func failures(r *Row) (share float64, words string, ok bool) {
	if v, ok := r.all(Errors, Requests); ok && v[1].V > 0 {
		return v[0].V / v[1].V, fmt.Sprintf("%s of %s requests failed, %s",
			v[0].Text, v[1].Text,
			percent(v[0].V/v[1].V)), true
	}
	if v, ok := r.all(ErrorRate, Rate); ok && v[0].V+v[1].V > 0 {
		// A rate of good responses next to one of failures: the two are all requests.
		share := v[0].V / (v[0].V + v[1].V)
		return share, fmt.Sprintf("%s failures/s and a rate of %s: %s of all "+
			"requests failed, or %s if the rate includes failures",
			strings.TrimSuffix(v[0].Text, "/s"), v[1].Text, percent(share),
			percent(v[0].V/v[1].V)), true
	}
	if v, ok := r.get(ErrorShare); ok {
		return v.V, v.Text + " of requests failed", true
	}
	return 0, "", false
}

func failureLine(r *Row) int {
	return cmp.Or(r.Values[Errors].Line, r.Values[ErrorRate].Line, r.Values[ErrorShare].Line)
}

// Shares of failures: below fewFailures they change no printed number, and from manyFailures on a
// rate or a latency describes a different service.
const (
	fewFailures  = 1e-4
	manyFailures = 0.01
)

func checkErrors(r *Row, _ []Value) (hit, bool) {
	share, words, ok := failures(r)
	if !ok {
		return hit{}, false
	}
	if h, ok := miscounted(r); ok {
		return h, true
	}
	if share < fewFailures {
		return hit{}, true
	}
	h := hit{severity: Note, line: failureLine(r), arithmetic: words,
		means: "failures are often faster or slower than good responses, and some tools include " +
			"them in rate and percentiles",
		do: "ask the authors whether the rate includes failures; print the failures beside it"}
	if share >= manyFailures {
		h.severity = Doubt
		h.means = "a service that fails so often does less work than others, so its rate and its " +
			"latency are not comparable with those of others"
		h.do = "do not use the rate as a result; find out why requests failed"
	}
	v, ok := r.all(Rate, Requests)
	if ok && r.Counted > 0 && !v[0].derived && v[1].V > 0 {
		aborted := ""
		if r.Aborted > 0 {
			aborted = " and " + units.Whole(r.Aborted) + " requests that its end aborted"
		}
		good := v[0].V * (v[1].V - r.Counted) / (v[1].V + r.Aborted)
		h.arithmetic += fmt.Sprintf("; %s includes %s failures%s in its rate of %s, so that good "+
			"responses are %s/s", r.Tool, units.Whole(r.Counted), aborted, v[0].Text,
			units.Whole(good))
	}
	return h, true
}

// miscounted finds counts of failures that contradict each other.
func miscounted(r *Row) (hit, bool) {
	h := hit{severity: Contradiction, means: "the counts of failures do not come from the same run",
		do: "use both counts only together with the raw output"}
	e, okE := r.get(Errors)
	n, okN := r.get(Requests)
	if r.Tool == "" && okE && okN && e.span().lo > n.span().hi {
		if _, ok := r.get(Good); !ok {
			h.severity = Doubt
			h.arithmetic = fmt.Sprintf("%s failures of %s requests", e.Text, n.Text)
			h.means = "there are more failures than requests, so the number of requests excludes " +
				"failures"
			h.do = "ask the authors which requests are counted"
			return h, true
		}
	}
	s, okS := r.get(ErrorShare)
	if okE && okN && okS && n.V > 0 {
		ofAll := e.span().per(n.span())
		ofGood := e.span().per(span{max(n.V-e.V, 1), max(n.V-e.V, 1)})
		without := e.V / (e.V + n.V)
		if !s.span().meets(ofAll, roundingShare) && !s.span().meets(ofGood, roundingShare) &&
			!s.span().meets(span{without, without}, roundingShare) {
			h.line = s.Line
			h.arithmetic = fmt.Sprintf("%s / %s = %s, but the file states %s", e.Text, n.Text,
				percent(e.V/n.V), s.Text)
			return h, true
		}
	}
	if g, ok := r.get(Good); ok && okE && okN {
		if sum := e.V + g.V; math.Abs(sum-n.V) > e.Slack+g.Slack+n.Slack+n.V*1e-3 {
			h.line = g.Line
			h.arithmetic = fmt.Sprintf("%s good + %s failed = %s, but the file states %s requests",
				g.Text, e.Text, units.Whole(sum), n.Text)
			return h, true
		}
	}
	return hit{}, false
}

func checkBytes(r *Row, _ []Value) (hit, bool) {
	h := hit{severity: Contradiction, means: "bytes, requests and time do not come from the same " +
		"run",
		do: "use these values only together with the raw output"}
	v, ok := r.all(ByteRate, Duration, Bytes)
	if ok {
		implied := v[0].span().times(v[1].span()).by(1 / second)
		// kB may be 1000 or 1024 bytes, MB 1000² or 1024².
		if !v[2].span().meets(implied, 0.08) {
			h.line = v[2].Line
			h.arithmetic = fmt.Sprintf("%s × %s = %s, but the file states %s",
				v[0].Text, said(v[1]),
				bytesText(v[0].V*v[1].V/second), v[2].Text)
			return h, true
		}
	}
	s, okS := r.all(Size, Requests, Bytes)
	if okS {
		e, _ := r.get(Errors)
		least := s[0].span().lo * max(s[1].span().lo-e.V, 0)
		if s[2].span().hi < least*0.92 {
			h.line = s[2].Line
			h.arithmetic = fmt.Sprintf("%s × %s requests = at least %s, but only %s were received",
				s[0].Text,
				s[1].Text, bytesText(s[0].V*s[1].V), s[2].Text)
			return h, true
		}
	}
	return hit{}, ok || okS
}

func bytesText(n float64) string {
	for _, u := range []struct {
		name  string
		total float64
	}{{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}} {
		if n >= u.total {
			return fmt.Sprintf("%.3g %s", n/u.total, u.name)
		}
	}
	return fmt.Sprintf("%.0f B", n)
}

// idleCPU is the share of the cores below which the CPU did not limit a service at its peak.
const idleCPU = 0.5

// checkCPU compares CPU use with the available cores: stated ones, or the largest use in any row of
// the document.
func checkCPU(d *Document) (hits []hit, checked bool) {
	most, source := 0.0, ""
	for _, t := range d.Tables {
		for _, r := range t.Rows {
			if v, ok := r.get(CPU); ok && r.ownLoad == nil && v.V > most {
				most, source = v.V, fmt.Sprintf(
					"%s in %q (line %d) used %s",
					r.Name,
					t.Title,
					v.Line,
					v.Text,
				)
			}
		}
	}
	for _, t := range d.Tables {
		var idle []string
		line := 0
		for _, r := range t.Rows {
			v, ok := r.get(CPU)
			if !ok || r.ownLoad != nil {
				continue
			}
			cores, stated := r.get(Cores)
			checked = checked || stated || most > v.V
			if stated && v.span().lo > cores.V*(1+cannotShare) {
				hits = append(hits, hit{severity: Contradiction, row: r.Name, line: v.Line,
					arithmetic: fmt.Sprintf("%s of CPU used on %s cores, which provide only %.0f%%",
						v.Text,
						cores.Text, cores.V*100),
					means: "the service used more CPU than it had: the limit was not in force, " +
						"or the value describes another process",
					do: "ask the authors how the CPU time was measured"})
				continue
			}
			limit := most
			if stated {
				limit = cores.V
			}
			if _, rated := r.get(Rate); rated && r.Model != record.Open && v.V < idleCPU*limit {
				idle = append(idle, r.Name+" "+v.Text)
				line = v.Line
			}
		}
		if idle != nil {
			hits = append(hits, idleHit(t, idle, line, source))
		}
	}
	return hits, checked
}

func idleHit(t *Table, idle []string, line int, source string) hit {
	if _, stated := t.Rows[0].get(Cores); stated {
		source = "the cores that the file states"
	}
	return hit{severity: Doubt, line: line, row: t.Title,
		arithmetic: fmt.Sprintf("%s, less than half of the available CPU (%s)",
			strings.Join(idle, ", "), source),
		means: "these services had unused CPU, so something else limited their rate: the client, " +
			"the network, a lock, or fewer threads than cores",
		do: "find what limits these services before you compare their rates"}
}

// checkOverloadElsewhere compares the open commands of a text with tables without a command.
func checkOverloadElsewhere(d *Document) (hits []hit, checked bool) {
	var most *command
	for _, c := range d.commands {
		v, ok := c.values[Offered]
		if ok && (most == nil || v.V > most.values[Offered].V ||
			v.V == most.values[Offered].V && c.values[AskedDuration].V >
				most.values[AskedDuration].V) {
			most = c
		}
	}
	if most == nil {
		return nil, false
	}
	offered, elapsed := most.values[Offered], most.values[AskedDuration]
	for _, t := range d.Tables {
		if t.Command != nil {
			continue
		}
		lo, hi := math.Inf(1), 0.0
		for _, r := range t.Rows {
			if v, ok := r.get(Rate); ok && r.ownLoad == nil && r.Tool == "" {
				lo, hi = min(lo, v.V), max(hi, v.V)
			}
		}
		if hi == 0 {
			continue
		}
		checked = true
		if hi >= offered.V*overShare {
			continue
		}
		h := hit{severity: Note, line: t.Line,
			arithmetic: fmt.Sprintf("the command in line %d offers %s/s, but the table has rates "+
				"of %s to %s/s, which are %s to %s of it",
				most.line, units.Whole(offered.V), units.Whole(lo),
				units.Whole(hi), percent(lo/offered.V), percent(hi/offered.V)),
			means: "if that command produced the table, the load was far above the capacity of " +
				"every row: the rates are rates at saturation, and latencies depend on the " +
				"length of the runs",
			do: "print the command beside the table; do not use latencies of such runs"}
		if elapsed.V > 0 {
			h.arithmetic += fmt.Sprintf("; after %s the fastest row is %s × (1 − %.2g) = %s "+
				"behind its schedule",
				units.Duration(elapsed.V), units.Duration(elapsed.V), hi/offered.V,
				units.Duration(elapsed.V*(1-hi/offered.V)))
		}
		hits = append(hits, h)
	}
	return hits, checked
}

// checkHistogram decodes a record's histograms and compares the printed fields with them.
func checkHistogram(r *Row, _ []Value) (hit, bool) {
	if r.ownLoad == nil {
		return hit{}, false
	}
	checked := false
	l := r.ownLoad
	for _, d := range []*record.Dist{&l.ResponseTime, &l.ServiceTime} {
		if d.HDR == "" {
			continue
		}
		checked = true
		h, err := d.Histogram()
		sum := ""
		switch {
		case err != nil:
			sum = fmt.Sprintf("the histogram of the record cannot be read: %v", err)
		case h.TotalCount() != d.Count:
			sum = fmt.Sprintf("the histogram has %d response times, but the field count is %d",
				h.TotalCount(),
				d.Count)
		case math.Abs(float64(h.ValueAtQuantile(99)-d.P99Ns)) > 0.01*float64(d.P99Ns)+1e3:
			sum = fmt.Sprintf("the histogram's p99 is %s, but the field p99Ns is %s",
				units.Duration(float64(h.ValueAtQuantile(99))), units.Duration(float64(d.P99Ns)))
		}
		if sum != "" {
			return hit{severity: Contradiction, arithmetic: sum,
				means: "the record was changed after it was written, or another program wrote it",
				do:    "do not use latencies of this record"}, true
		}
	}
	return hit{}, checked
}

// checkVerdict returns Prony's own findings on the measurement.
func checkVerdict(r *Row, _ []Value) (hit, bool) {
	if r.ownLoad == nil || r.verdict.Grade == "" {
		return hit{}, false
	}
	if r.verdict.Grade == record.Valid {
		return hit{}, true
	}
	var words []string
	for _, f := range r.verdict.Findings {
		if f.Grade != record.Valid {
			words = append(words, fmt.Sprintf("%s: %s, %s", f.Rule,
				wording.Finding(f).Observed, wording.Against(f)))
		}
	}
	h := hit{severity: Note, arithmetic: r.verdict.Grade + ": " + strings.Join(words, "; "),
		means: "Prony's own verdict doubts this measurement",
		do: "quote the measurement together " +
			"with its verdict"}
	if r.verdict.Grade == record.Invalid {
		h.severity = Doubt
		h.means = "Prony's own verdict excludes this measurement"
		h.do = "do not quote this measurement"
	}
	return h, true
}
