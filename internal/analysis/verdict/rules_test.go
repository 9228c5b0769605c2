package verdict_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/analysis/wording"
	"prony.example/record"
	"prony.example/record/metric"
)

const (
	ms  = 1e6 // ns
	sec = 1e9 // ns
)

const (
	valid   = record.Valid // without a finding
	noted   = "noted"      // VALID, with a finding that explains or names
	suspect = record.Suspect
	invalid = record.Invalid
)

// The two loads of a healthy record.
const (
	half  = "half" // open
	peak  = "peak" // closed
	trial = ""
)

// flat returns a distribution of n equal durations.
func flat(n, ns int64) record.Dist {
	return record.Dist{Count: n, MinNs: ns, MeanNs: float64(ns), P50Ns: ns, P90Ns: ns, P99Ns: ns,
		P999Ns: ns, MaxNs: ns}
}

// every returns the same number for each interval.
func every(n int64) []int64 { return slices.Repeat([]int64{n}, 40) }

// healthy returns a record without findings: 10 s each of 1,000 requests a second. Open ones take 2
// ms, so that 2 are under way (1,000/s × 0.002 s); closed ones, on 64 connections, take 64 ms.
// There are 40 intervals of 250 ms.
func healthy() *record.Record {
	offer := func(name, model string, connections int, timeNs int64) record.Load {
		d := flat(10000, timeNs)
		return record.Load{
			Name: name, Model: model, Connections: connections, Threads: 1, WindowNs: 10 * sec,
			Scheduled: 10000, Sent: 10000, Done: 10000, Answered: 10000, ThroughputPerS: 1000,
			InFlightMean: float64(timeNs) / ms, CeilingPerS: 2000,
			ResponseTime: d, ServiceTime: d, FirstByte: d, ConnectTime: flat(64, ms/10),
			Autocorrelation: record.Autocorrelation{Samples: 10000, Lag1: 0.3, EffectiveShare: 0.5},
			Series:          record.Series{IntervalNs: 250 * ms, Done: every(250)},
			Generator:       record.Gen{CPUShare: 0.2, RunDelayNs: 20 * ms},
			Service:         record.Usage{WindowNs: 10.1 * sec, ThrottledNs: 20 * ms},
			Host: record.Host{StealShare: 0.001, OtherCPUShare: 0.001,
				PressureMemory: 0.001},
		}
	}
	r := &record.Record{
		Outcome: record.Measured, Warmup: record.Warmup{Steady: true},
		Limits: record.Limits{ServiceCores: []int{1}, LoadCores: []int{0}},
		Loads: []record.Load{
			offer(half, "open", 64, 2*ms), offer(peak, "closed", 64, 64*ms),
		},
	}
	l := &r.Loads[0]
	l.RatePerS, l.Lag, l.OwnLag = 1000, flat(10000, ms/500), flat(10000, ms/500)
	l.Arrivals = "poisson"
	l.ArrivalProcess = record.ArrivalProcess{Samples: 10000, AndersonDarling: 0.6,
		Dispersion1ms:  1.01,
		Dispersion10ms: 0.98, Dispersion100ms: 1.1}
	l.Series.Scheduled, l.Series.Sent = every(250), every(250)
	l.Series.P50Ns = every(2 * ms)
	l.Generator.Wakeup, l.Generator.Iterations, l.Generator.BatchMax = flat(100, ms/100), 20000, 5
	return r
}

// row is a healthy record with one change, and the rule's grade for it.
type row struct {
	rule   string
	load   string // the changed one: half, peak, or trial for the record itself
	want   string // a grade, or noted
	change func(*record.Record, *record.Load)
}

// aside lists the rules that may also have a finding: Little's law allows for failed and censored
// requests, which have rules of their own, like timeouts and third-party tools; and a timer is too
// coarse only if lag is too large.
var aside = map[string][]string{
	"warm-up": {"drift"}, "little": {"errors", "censored"}, "sums": {"errors", "third-party tool"},
	"timer": {"lag"},
}

// check judges a row: one finding of its rule, at its load, and no other finding.
func check(t *testing.T, i int, w row) {
	t.Helper()
	r := healthy()
	l := map[string]*record.Load{half: &r.Loads[0], peak: &r.Loads[1]}[w.load]
	w.change(r, l)
	v := verdict.Judge(r)
	got, gotGrade, grade := record.Finding{}, valid, w.want
	if w.want == noted {
		grade = valid
	}
	others := 0
	for _, f := range v.Findings {
		switch {
		case f.Rule == w.rule:
			if got, gotGrade = f, f.Grade; f.Grade == valid {
				gotGrade = noted
			}
		case f.Grade == valid: // named, and no doubt
		case slices.Contains(aside[w.rule], f.Rule):
			others++
		default:
			t.Errorf("row %d (%s): another rule objects: %+v", i, w.rule, f)
		}
	}
	if gotGrade != w.want {
		t.Errorf("row %d (%s): %s, want %s; %+v", i, w.rule, gotGrade, w.want, got)
	}
	if others == 0 && v.Grade != grade {
		t.Errorf("row %d (%s): the record is %s, want %s", i, w.rule, v.Grade, grade)
	}
	if w.want == valid {
		return
	}
	if got.Load != w.load {
		t.Errorf("row %d (%s): found at %q, want %q", i, w.rule, got.Load, w.load)
	}
	// The printed value must differ from its limit, unlike 98.96 % with one digit.
	says := wording.Finding(got)
	same := says.Limit != "" && strings.HasPrefix(says.Observed, says.Limit)
	mute := says.Hint == "" && w.want != noted || strings.HasPrefix(says.Hint, ":") ||
		got.Text != nil || strings.Contains(fmt.Sprint(says), "%!")
	limitless := says.Limit == "" && len(got.PossibleBias) == 0 && w.want != noted
	if says.Observed == "" || limitless || mute || same {
		t.Errorf("row %d (%s): the finding does not explain itself: %+v, %+v", i, w.rule, got, says)
	}
	// A number with a limit is on the wrong side of it.
	above, below := got.Side == record.Above, got.Side == record.Below
	bound := len(got.PossibleBias) > 0
	if above && got.Value < got.Limit && !bound || below && got.Value > got.Limit ||
		(above || below) && got.Unit == "" {
		t.Errorf("row %d (%s): its numbers contradict each other: %+v", i, w.rule, got)
	}
}

func TestRules(t *testing.T) {
	for i, w := range rows {
		check(t, i, w)
	}
}

// TestEveryRuleHasRows checks that the rows cover every grade of each rule's text and no other. A
// new rule without rows fails here.
func TestEveryRuleHasRows(t *testing.T) {
	names := map[string]bool{}
	for _, rule := range verdict.Rules() {
		if names[rule.Name] || rule.Meets == "" || rule.Source == "" {
			t.Errorf("rule %q is there twice, or says too little: %+v", rule.Name, rule)
		}
		names[rule.Name] = true
		notes := strings.Contains(rule.Else, "note") ||
			strings.Contains(rule.Else, "reported") || strings.Contains(rule.Else, "bound")
		for _, grade := range []string{valid, noted, suspect, invalid} {
			named := grade == valid || grade == noted && notes ||
				strings.Contains(rule.Else, grade)
			tried := slices.ContainsFunc(rows, func(w row) bool {
				return w.rule == rule.Name && w.want == grade
			})
			if named != tried {
				t.Errorf("rule %q: %s named: %v, tried: %v", rule.Name, grade, named, tried)
			}
		}
	}
	for i, w := range rows {
		if !names[w.rule] {
			t.Errorf("row %d is about %q, which is not a rule", i, w.rule)
		}
	}
}

func TestHealthy(t *testing.T) {
	if v := verdict.Judge(healthy()); v.Grade != valid || len(v.Findings) > 0 {
		t.Errorf("a healthy record is %+v", v)
	}
}

// TestWarmupBoundsProcessorTime checks that compilers in the window move processor time per request
// by as much as throughput: the time that they take from the service counts as its own.
func TestWarmupBoundsProcessorTime(t *testing.T) {
	r := healthy()
	compilers(0.3*sec, 0, 6*sec)(r, nil)
	findings := verdict.Judge(r).Findings
	if len(findings) != 1 || findings[0].Rule != "warm-up" {
		t.Fatalf("%+v", findings)
	}
	shares := map[string]float64{}
	for _, b := range findings[0].PossibleBias {
		shares[b.Metric] = b.Share
	}
	// 0.3 s of 6 s: 5 % of the time, 5.3 % of what remains.
	cpu := shares[metric.CPU]
	if math.Abs(cpu-0.0527) > 0.0001 || cpu != shares[metric.Throughput] {
		t.Errorf("%v", shares)
	}
}

// TestWaitsForStreams checks that the finding on waits names streams if the server permits too few,
// and connections otherwise.
func TestWaitsForStreams(t *testing.T) {
	for _, permitted := range []*int{nil, new(int)} {
		r := healthy()
		l := r.Loads[slices.IndexFunc(r.Loads, func(l record.Load) bool { return l.Name == half })]
		slowest(200, 4*ms, func(ld) {})(r, &l)
		l.Waited, l.Lag, l.StreamsPermitted = 101, flat(10000, ms), permitted
		r.Loads = []record.Load{l}
		findings := verdict.Judge(r).Findings
		i := slices.IndexFunc(findings, func(f record.Finding) bool { return f.Rule == "waited" })
		if i < 0 || (findings[i].Case == "streams") != (permitted != nil) {
			t.Errorf("of %v permitted streams: %+v", permitted, findings)
		}
	}
}

// TestUnknownIsNoFinding checks that unknown values cause no finding: -1 for values that the kernel
// does not report, and 0 for values that nobody measured, for example in a load without a probe.
func TestUnknownIsNoFinding(t *testing.T) {
	r := healthy()
	for i := range r.Loads {
		for _, part := range []any{&r.Loads[i].Service, &r.Loads[i].Host} {
			unknown(reflect.ValueOf(part).Elem())
		}
	}
	if r.Loads[0].Service.ThrottledNs != -1 || r.Loads[1].Host.StealShare != -1 {
		t.Fatal("the test is broken: nothing is unknown")
	}
	if v := verdict.Judge(r); v.Grade != valid || len(v.Findings) > 0 {
		t.Errorf("a record with unknowns is %+v", v)
	}
	for i := range r.Loads {
		l := &r.Loads[i]
		l.Service, l.Host = record.Usage{}, record.Host{}
		l.Generator, l.CeilingPerS = record.Gen{}, 0
	}
	r.Limits = record.Limits{}
	if v := verdict.Judge(r); v.Grade != valid || len(v.Findings) > 0 {
		t.Errorf("a record that was not probed is %+v", v)
	}
}

// unknown sets every number of a struct to -1.
func unknown(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.CanInt():
			f.SetInt(-1)
		case f.CanFloat():
			f.SetFloat(-1)
		}
	}
}

// TestFailed checks that a failed trial has one finding, which repeats its failure.
func TestFailed(t *testing.T) {
	check := func(f *record.Failure, want record.Finding) {
		t.Helper()
		r := healthy()
		r.Outcome, r.Failure = record.Failed, f
		r.Warmup.Steady = false
		r.Loads[0].Done = 0
		v := verdict.Judge(r)
		if v.Grade != invalid || !reflect.DeepEqual(v.Findings, []record.Finding{want}) {
			t.Errorf("verdict is %+v\nwant INVALID with %+v", v, want)
		}
	}
	want := record.Finding{Rule: "failed", Grade: invalid}
	want.Facts = record.Facts{Step: "ready", Messages: []string{"connection refused"},
		Hint: "see the log"}
	check(&record.Failure{Step: "ready", Error: "connection refused", Hint: "see the log"}, want)
	want.Case, want.Facts = "unknown", record.Facts{}
	check(nil, want)
}

func TestGradeIsTheWorst(t *testing.T) {
	check := func(change func(*record.Record), grade string, rules ...string) {
		t.Helper()
		r := healthy()
		change(r)
		v := verdict.Judge(r)
		var got []string
		for _, f := range v.Findings {
			got = append(got, f.Load+"/"+f.Rule)
		}
		if v.Grade != grade || !slices.Equal(got, rules) {
			t.Errorf("%s for %q, want %s for %q", v.Grade, got, grade, rules)
		}
	}
	check(func(r *record.Record) {
		r.Warmup.Steady = false
		r.Loads[1].Host.StealShare = 0.05
	}, suspect, "/warm-up", "peak/steal")
	// The worst comes first, in the middle, last.
	check(func(r *record.Record) {
		r.Loads[0].Done = 0
		r.Loads[1].Host.StealShare = 0.05
	}, invalid, "half/answers", "peak/steal")
	check(func(r *record.Record) {
		r.Warmup.Steady = false
		r.Loads[0].Host.StealShare = 0.2
		r.Loads[1].Host.StealShare = 0.05
	}, invalid, "/warm-up", "half/steal", "peak/steal")
	check(func(r *record.Record) {
		r.Warmup.Steady = false
		r.Loads[1].Done = 0
	}, invalid, "/warm-up", "peak/answers")
	// A trial may only measure the startup.
	check(func(r *record.Record) { r.Loads = nil }, valid)
}

// TestEveryRuleHasWords checks that each rule's findings have their own texts.
func TestEveryRuleHasWords(t *testing.T) {
	for _, r := range verdict.Rules() {
		if got := wording.Finding(record.Finding{Rule: r.Name}).Observed; got == r.Name {
			t.Errorf("%s has no words in package wording", r.Name)
		}
	}
}

// TestCompilersThatStartAgain names compilers that were busy in a window after they had been idle.
func TestCompilersThatStartAgain(t *testing.T) {
	for idleAt, want := range map[int64]string{-1: "compiles", 0: "compiles", 1: "compiles again",
		5 * sec: "compiles again"} {
		r := healthy()
		compilers(0.3*sec, 0, 6*sec)(r, nil)
		r.Warmup.CompilersIdleAtNs = idleAt
		for _, f := range verdict.Judge(r).Findings {
			if f.Rule == "warm-up" && f.Case != want {
				t.Errorf("idle at %d: case %q, want %q", idleAt, f.Case, want)
			}
		}
	}
}
