package audit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/units"
)

// alike groups rows by key, in the order of the keys.
func alike[K comparable](rows []*Row, key func(*Row) K) (out [][]*Row) {
	indexes := map[K]int{}
	for _, r := range rows {
		k := key(r)
		i, ok := indexes[k]
		if !ok {
			i = len(out)
			indexes[k], out = i, append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	return out
}

// comparable returns the rows of each key that have a rate, fastest first. Repeated names are
// repetitions, which are not ranked.
func (t *Table) comparable() [][]*Row {
	rated := slices.DeleteFunc(slices.Clone(t.Rows), func(r *Row) bool {
		_, ok := r.get(Rate)
		return !ok || totals.MatchString(r.Name)
	})
	groups := alike(rated, func(r *Row) string { return r.Key })
	groups = slices.DeleteFunc(groups, func(rows []*Row) bool {
		names := alike(rows, func(r *Row) string { return r.Name })
		return len(rows) < 2 || len(names) < len(rows)
	})
	for _, rows := range groups {
		slices.SortStableFunc(rows, func(a, b *Row) int {
			return cmp.Compare(b.Values[Rate].V, a.Values[Rate].V)
		})
	}
	return groups
}

func checkThink(t *Table) (hits []hit, checked bool) {
	var last *Row
	for _, r := range t.Rows {
		v, ok := r.all(IterationMean, IterationMin, Rate)
		if !ok {
			continue
		}
		checked = true
		fastest, _ := r.get(Min)
		think := v[1].V - fastest.V
		if think < v[0].V/2 || think < 50e6 {
			continue
		}
		hits = append(hits, hit{severity: Doubt, row: r.Name, line: v[0].Line,
			arithmetic: fmt.Sprintf("no iteration took less than %s, but some requests took only "+
				"%s: about %s of the mean iteration of %s is waiting, which is %s",
				said(v[1]), said(fastest),
				units.Duration(think), said(v[0]), percent(think/v[0].V)),
			means: "users seem to pause on purpose most of the time, so the rate is users / " +
				"(think time + latency) and does not show the capacity",
			do: "measure capacity with a load without think time, or with a search (prony " +
				"capacity)"})
		if last != nil {
			if h, ok := explained(last, r); ok {
				hits = append(hits, h)
			}
		}
		last = r
	}
	for _, r := range t.Rows {
		h, ok := interactive(r)
		checked = checked || ok
		hits = append(hits, h)
	}
	return hits, checked
}

// explained reports that the iteration time alone explains a change of throughput.
func explained(a, b *Row) (hit, bool) {
	va, okA := a.all(Rate, IterationMean, Users)
	vb, okB := b.all(Rate, IterationMean, Users)
	if !okA || !okB || va[2].V != vb[2].V {
		return hit{}, false
	}
	count, expected := vb[0].V/va[0].V-1, va[1].V/vb[1].V-1
	expectedSpan := va[1].span().per(vb[1].span())
	if !(span{1 + count, 1 + count}).meets(expectedSpan, roundingShare) || math.Abs(count) < 0.02 {
		return hit{}, false
	}
	h := hit{severity: Doubt, row: b.Name, line: vb[0].Line,
		arithmetic: fmt.Sprintf("the rate changes from %s to %s, by %+.1f %%; the change of "+
			"iteration times from %s to %s alone explains %s / %s − 1 = %+.1f %%",
			va[0].Text, vb[0].Text, count*100, said(va[1]), said(vb[1]),
			said(va[1]), said(vb[1]), expected*100),
		means: "with the same users and a fixed think time, throughput follows from latency, so " +
			"its change is no evidence about capacity",
		do: "do not quote the throughput beside the latency; find the capacity of both services"}
	ma, okA := a.get(Mean)
	mb, okB := b.get(Mean)
	if okA && okB {
		h.arithmetic += fmt.Sprintf("; requests under way were first %s × %s = %s and then %s × "+
			"%s = %s, so the two services did not have the same load", va[0].Text, said(ma),
			few(va[0].V*ma.V/second), vb[0].Text, said(mb), few(vb[0].V*mb.V/second))
	}
	return h, true
}

// interactive compares users with a stated think time with the response time law.
func interactive(r *Row) (hit, bool) {
	v, ok := r.all(Users, Think, Mean, Rate)
	if !ok {
		return hit{}, false
	}
	cycle := span{v[1].span().lo + v[2].span().lo, v[1].span().hi + v[2].span().hi}
	law := v[0].span().per(cycle).by(second)
	sum := fmt.Sprintf("%s / (%s + %s) = %s", v[0].Text, said(v[1]), said(v[2]),
		rateText(v[0].V/(v[1].V+v[2].V)*second))
	switch {
	case v[3].span().lo > law.hi*(1+cannotShare):
		return hit{severity: Contradiction, row: r.Name, line: v[3].Line,
			arithmetic: sum + ", but the file states " + v[3].Text,
			means:      "this number of users with this think time cannot send this many requests",
			do: "ask the authors for the requests of an iteration and for the raw " +
				"output"}, true
	case v[1].V > v[2].V && v[3].span().meets(law, cannotShare):
		return hit{severity: Doubt, row: r.Name, line: v[3].Line,
			arithmetic: sum + ", which equals the stated rate",
			means: "the rate follows from users and think time: any service that is fast enough " +
				"would have it, so it does not show the capacity",
			do: "measure capacity with a load without think time, or with a search (prony " +
				"capacity)",
		}, true
	}
	return hit{}, true
}

// durationOf returns the stated duration, or requests / rate.
func durationOf(r *Row) (ns float64, ok bool) {
	if d, ok := r.get(Duration); ok {
		return d.V, true
	}
	v, ok := r.all(Requests, Rate)
	if !ok || v[1].V <= 0 {
		return 0, false
	}
	return v[0].V / v[1].V * second, true
}

// shortest is the duration below which a closed load of a managed runtime mostly measures its
// startup.
const shortest = 10 * second

func checkWindows(t *Table) (hits []hit, checked bool) {
	var short []string
	var row *Row
	least, most := math.Inf(1), 0.0
	for _, r := range t.Rows {
		ns, ok := durationOf(r)
		if !ok || r.ownLoad != nil {
			checked = checked || ok
			continue
		}
		checked = true
		least, most = min(least, ns), max(most, ns)
		if ns < shortest {
			row = cmp.Or(row, r)
			short = append(short, strings.TrimSpace(r.Name+" "+units.Duration(ns)))
		}
	}
	if row == nil {
		return nil, checked
	}
	sum := strings.Join(short, ", ")
	if most > 3*least {
		sum += fmt.Sprintf("; the longest run took %.2g times as long, %s", most/least,
			units.Duration(most))
	}
	return []hit{{severity: Doubt, line: row.Line, arithmetic: "the measurement took only " + sum,
		means: "a run this short may be mostly warm-up if no warm-up came before it, and runs of " +
			"different lengths have different shares of warm-up",
		do: "ask the authors about the warm-up; load each service for the same time, 30 s or " +
			"more"}}, true
}

var bestOf = lazyregexp.New(
	`(?i)\b(best|fastest|highest|max(?:imum)?)\s+(?:out )?of\s+(?:the )?` +
		`(\d+|two|three|four|five|ten)\b[^.\n)]*`)

// above has by how many standard deviations the best of n is above the mean, for normal
// distributions.
var above = map[string]string{"2": "0.56", "two": "0.56", "3": "0.85", "three": "0.85",
	"4": "1.03", "four": "1.03", "5": "1.16", "five": "1.16", "10": "1.54", "ten": "1.54"}

func checkBestOf(t *Table) ([]hit, bool) {
	m := bestOf.FindStringSubmatch(t.context)
	if m == nil {
		return nil, true
	}
	sum := fmt.Sprintf("“%s”", strings.TrimSpace(m[0]))
	if d := above[strings.ToLower(m[2])]; d != "" {
		sum += fmt.Sprintf(": for normally distributed runs, this best run is %s standard "+
			"deviations above the mean", d)
	}
	return []hit{{severity: Doubt, line: t.Line, arithmetic: sum,
		means: "the best of several runs favors the service with the most noise, and drops the " +
			"measured spread",
		do: "print the median of the runs with its interval"}}, true
}

// exactTimes is the value, in units of its last digit, from which a rate is printed too exactly:
// five digits.
const exactTimes = 1e4

func checkRepetitions(t *Table) ([]hit, bool) {
	groups := t.comparable()
	if len(groups) == 0 {
		return nil, false
	}
	if t.spread {
		return nil, true
	}
	n, exact := 0, ""
	for _, rows := range groups {
		n += len(rows)
		if v := rows[0].Values[Rate]; v.V > exactTimes*v.Slack {
			exact = v.Text
		}
	}
	sum := fmt.Sprintf("%d rates, without a number of runs and without a measure of spread", n)
	if exact != "" {
		sum += "; " + exact + " has more digits than a repeated run would reproduce"
	}
	return []hit{{severity: Note, line: t.Line, arithmetic: sum,
		means: "it is unknown which differences a repetition would reproduce",
		do: "repeat the runs in random order, and print the interval and the number of " +
			"runs"}}, true
}

// noise is the known difference between single runs of one service.
const noise = 0.10

func checkRanks(t *Table) (hits []hit, checked bool) {
	if t.spread {
		return nil, false
	}
	for _, rows := range t.comparable() {
		checked = true
		var pairs []string
		for i := 1; i < len(rows); i++ {
			a, b := rows[i-1].Values[Rate], rows[i].Values[Rate]
			if b.V <= 0 || a.V/b.V-1 >= noise {
				continue
			}
			pairs = append(pairs, fmt.Sprintf("%s %s and %s %s (%s)", rows[i-1].Name, a.Text,
				rows[i].Name, b.Text, percent(a.V/b.V-1)))
		}
		if pairs == nil {
			continue
		}
		const shown = 3
		sum := fmt.Sprintf("in %d of %d cases, rows with neighboring ranks differ by less than "+
			"10 %%: %s", len(pairs),
			len(rows)-1, strings.Join(units.First(pairs, shown), "; "))
		hits = append(hits, hit{severity: Doubt, line: rows[0].Values[Rate].Line, arithmetic: sum,
			means: "repeated runs of one service often differ by this much, so the ranks may " +
				"change in the next run",
			do: "report these rows as equal, or repeat until their intervals do not overlap"})
	}
	return hits, checked
}

// Limits for a plateau: how close rows are to the fastest one, and how many of them there are.
const (
	plateauShare = 0.015
	plateauRows  = 5
	plateauPart  = 0.2
)

func checkPlateau(t *Table) (hits []hit, checked bool) {
	for _, rows := range t.comparable() {
		best := rows[0].Values[Rate]
		if len(rows) < plateauRows || best.Slack > plateauShare*best.V/3 {
			continue
		}
		checked = true
		n := 0
		for _, r := range rows {
			if r.Values[Rate].V >= best.V*(1-plateauShare) {
				n++
			}
		}
		if n < plateauRows || float64(n) < plateauPart*float64(len(rows)) {
			continue
		}
		hits = append(hits, hit{severity: Doubt, line: best.Line,
			arithmetic: fmt.Sprintf("%d of %d rates are within 1.5 %% of the highest, %s (%s)", n,
				len(rows), best.Text, rows[0].Name),
			means: "different services rarely have rates this similar: the client, the network " +
				"or another shared limit was measured",
			do: "find the client's own limit with a server that does nothing (prony null)"})
	}
	return hits, checked
}

// surprise is the expected number of coincidences above which one is not a finding.
const surprise = 0.01

// identicalOf lists quantities that should differ between rows.
var identicalOf = []Quantity{Rate, Mean, P50, P90, P95, P99, P999, Max, Memory, CPU, Requests}

func checkIdentical(t *Table) (hits []hit, checked bool) {
	for _, q := range identicalOf {
		var rows []*Row
		lo, hi, step := math.Inf(1), 0.0, math.Inf(1)
		for _, r := range t.Rows {
			v, ok := r.get(q)
			_, requested := r.get(AskedRequests)
			if !ok || v.Slack <= 0 || q == Requests && requested {
				continue
			}
			rows = append(rows, r)
			lo, hi, step = min(lo, v.V), max(hi, v.V), min(step, v.Slack)
		}
		// A column has one resolution: a trailing zero of some values is a digit like others.
		rows = slices.DeleteFunc(rows, func(r *Row) bool { return r.Values[q].V < 100*step })
		if len(rows) < 3 {
			continue
		}
		checked = true
		places := (hi-lo)/step + 1
		hits = append(hits, identical(q, rows, places)...)
	}
	return hits, checked
}

// identical finds values that too many rows share: with n values in m places, the expected number
// of random coincidences of k values is n over k / m^(k-1).
func identical(q Quantity, rows []*Row, places float64) (hits []hit) {
	// By value, because a record has more digits than are printed.
	for _, equal := range alike(rows, func(r *Row) float64 { return r.Values[q].V }) {
		k := float64(len(equal))
		chance := 1.0
		for i := range len(equal) {
			chance *= (float64(len(rows)) - float64(i)) / float64(i+1)
		}
		chance /= math.Pow(places, k-1)
		if k < 3 || chance > surprise {
			continue
		}
		var names []string
		for _, r := range equal {
			names = append(names, r.Name)
		}
		v := equal[0].Values[q]
		hits = append(hits, hit{severity: Doubt, line: v.Line,
			arithmetic: fmt.Sprintf("the same value, %s %s, is in %d rows: %s",
				q, v.Text, len(names),
				strings.Join(names, ", ")),
			means: "this is hardly chance: not every row has a separate measurement; one value " +
				"was copied, or comes from a process that several rows share",
			do: "ask the authors how each row was measured; do not compare rows that share a " +
				"measurement"})
	}
	return hits
}

func checkRelative(t *Table) (hits []hit, checked bool) {
	for _, rows := range t.comparable() {
		var ownPart *Row
		for _, r := range rows {
			if v, ok := r.get(Relative); ok && math.Abs(v.V-1) < 1e-9 {
				ownPart = cmp.Or(ownPart, r)
			}
		}
		if ownPart == nil {
			continue
		}
		base := ownPart.Values[Rate]
		for _, r := range rows {
			v, ok := r.get(Relative)
			if !ok {
				continue
			}
			checked = true
			ratio := r.Values[Rate].span().per(base.span())
			if v.span().meets(ratio, roundingShare) {
				continue
			}
			hits = append(hits, hit{severity: Contradiction, row: r.Name, line: v.Line,
				arithmetic: fmt.Sprintf("%s / %s = %s, but the file states %s", r.Values[Rate].Text,
					base.Text, percent(r.Values[Rate].V/base.V), v.Text),
				means: "the ratio and the rates do not come from the same run",
				do:    "compute the ratio again from the rates"})
		}
		if checked {
			hits = append(hits, hit{severity: Note, line: ownPart.Line,
				arithmetic: fmt.Sprintf("%s is 1 by definition (%s)", ownPart.Name, base.Text),
				means: "if this baseline gets slower, its own ratio stays 1 and all others look " +
					"faster: over time, such a column cannot show changes of the baseline",
				do: "compare absolute rates, and compare each service only with itself between " +
					"dates"})
		}
	}
	return hits, checked
}

var totals = lazyregexp.New(`(?i)^(total|totals|sum|all|overall|aggregated)$`)

func checkSums(t *Table) (hits []hit, checked bool) {
	i := slices.IndexFunc(t.Rows, func(r *Row) bool { return totals.MatchString(r.Name) })
	if i < 0 || len(t.Rows) < 3 {
		return nil, false
	}
	total := t.Rows[i]
	for _, q := range []Quantity{Requests, Errors} {
		stated, ok := total.get(q)
		if !ok {
			continue
		}
		sum := span{}
		middle, all := 0.0, true
		for j, r := range t.Rows {
			v, ok := r.get(q)
			if j == i {
				continue
			}
			all = all && ok
			sum = span{sum.lo + v.span().lo, sum.hi + v.span().hi}
			middle += v.V
		}
		checked = checked || all
		if !all || stated.span().meets(sum, 1e-9) {
			continue
		}
		hits = append(hits, hit{severity: Contradiction, row: total.Name, line: stated.Line,
			arithmetic: fmt.Sprintf("the rows add up to %s %s, but the file states %s",
				units.Whole(middle), q, stated.Text),
			means: "rows are missing, are counted twice, or come from another run",
			do:    "ask the authors for the missing rows"})
	}
	return hits, checked
}
