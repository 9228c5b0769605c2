package record

import (
	"math"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/base/lazyregexp"
)

// Version 1 had sentences in place of values. They are parsed only here. The texts themselves are
// kept and printed.

// upgrade adds values that version 1 only had as text.
func (r *Record) upgrade() {
	for i := range r.Loads {
		_, r.Loads[i].RateBase, _ = strings.Cut(r.Loads[i].RateOf, " of ")
	}
}

// limitIn1 matches the text of a limit: the process of a system, the kind, a number or a list of
// cores, and what enforces it.
var limitIn1 = lazyregexp.New(`^(?:([^:()]+): )?` +
	`(affinity|cpuset|cpu quota|memory|private memory) ` +
	`(?:([0-9.e+]+)|\[?([0-9]+(?:[ ,-][0-9]+)*)\]?)(?: \((cgroup v[12]|rlimit)\))?$`)

// missingIn1 matches the text of a limit that nothing enforced.
var missingIn1 = lazyregexp.New(
	`^(?:([^:()]+): )?(cores \[|[0-9.e+-]+ CPUs|memory [0-9]|no swap|control group: )`)

// limitOfText parses a limit of version 1. If its form is unknown, the result has only the text.
func limitOfText(text string) Limit {
	l := Limit{Text: text}
	m := limitIn1.FindStringSubmatch(text)
	if m != nil && (m[5] != "" || m[2] == ByAffinity) {
		l.Process, l.By = m[1], m[5]
		if m[2] == ByAffinity || m[2] == "cpuset" {
			l.Kind, l.Cores = LimitCores, coresOfText(m[3]+m[4])
		} else {
			l.Kind = LimitMemory
			l.Value, _ = strconv.ParseFloat(m[3], 64)
		}
		switch m[2] {
		case ByAffinity:
			l.By = ByAffinity
		case "cpu quota":
			l.Kind = LimitCPU
		}
		return l
	}
	if m := missingIn1.FindStringSubmatch(text); m != nil {
		l.Process, l.By = m[1], ByNone
		switch subject := m[2]; {
		case subject == "cores [":
			l.Kind = LimitCores
		case strings.HasSuffix(subject, "CPUs"):
			l.Kind = LimitCPU
		case subject == "no swap":
			l.Kind = LimitSwap
		case subject == "control group: ":
			l.Kind, l.Reason = LimitGroup, Strayed
		default:
			l.Kind = LimitMemory
		}
	}
	return l
}

// coresOfText parses a list of cores as formatted by the kernel or by Go: "0-2,4", "0 1".
func coresOfText(text string) (cores []int) {
	gap := func(r rune) bool { return r == ' ' || r == ',' }
	for part := range strings.FieldsFuncSeq(text, gap) {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(to)
		}
		if err != nil || last < first || last > first+maxCores {
			return nil
		}
		for c := first; c <= last; c++ {
			cores = append(cores, c)
		}
	}
	return cores
}

// maxCores exceeds the number of cores of any machine: Linux supports at most 8192.
const maxCores = 1 << 13

// finding1 is a finding of version 1.
type finding1 struct {
	Rule     string `json:"rule"`
	Load     string `json:"load"`
	Grade    string `json:"grade"`
	Observed string `json:"observed"`
	Limit    string `json:"limit"`
	Hint     string `json:"hint"`
	Bias     []Bias `json:"possibleBias"`
	Note     bool   `json:"note"`
}

// finding returns the finding with its text, and with the numbers that can be parsed: the limit, if
// it is a number, and the first number with the same unit in Observed.
func (item finding1) finding() Finding {
	f := Finding{Rule: item.Rule, Load: item.Load, Grade: item.Grade, PossibleBias: item.Bias,
		Note: item.Note,
		Text: &Words{Observed: item.Observed, Limit: item.Limit, Hint: item.Hint}}
	limit, ok := amountOf(item.Limit)
	if !ok || limit.text != strings.TrimSpace(item.Limit) {
		return f
	}
	f.Limit, f.Unit, f.Text.Quantity = limit.value, limit.unit, true
	observed := item.Observed
	if _, worth, present := strings.Cut(observed, "worth "); present {
		observed = worth // the 200 in "64438 answers, worth 200 independent ones"
	}
	for _, text := range amountIn1.FindAllString(observed, -1) {
		q, ok := amountOf(text)
		if !ok || q.unit != limit.unit {
			continue
		}
		f.Value, f.Text.Amount = q.value, q.text
		switch {
		case q.value > limit.value:
			f.Side = Above
		case q.value < limit.value:
			f.Side = Below
		}
		break
	}
	return f
}

// amount1 is a number of version 1 with its unit.
type amount1 struct {
	text  string
	value float64
	unit  string
}

// amountIn1 matches numbers with the units that rules printed; durations are in Go's format.
var amountIn1 = lazyregexp.New(
	`\d[\d.]*(?: ?%|/s\b|(?:(?:ns|µs|ms|s|m|h)[\d.]*)+\b)?`)

// amountOf parses the first number in a text.
func amountOf(text string) (amount1, bool) {
	match := amountIn1.FindString(text)
	number, unit, scale := match, UnitCount, 1.0
	if n, ok := strings.CutSuffix(match, "%"); ok {
		number, unit, scale = strings.TrimSpace(n), UnitShare, 100
	} else if n, ok := strings.CutSuffix(match, "/s"); ok {
		number, unit = n, UnitPerS
	}
	if v, err := strconv.ParseFloat(number, 64); err == nil && math.Abs(v) < greatest {
		return amount1{match, v / scale, unit}, true
	}
	if d, err := time.ParseDuration(match); err == nil {
		return amount1{match, float64(d), UnitNs}, true
	}
	return amount1{}, false
}
