// Package verdict judges a measurement: not whether the service did well, but whether the numbers
// say what they seem to say. Each rule is a small pure function over a record, with its source
// named; what does not hold becomes a finding, and the worst finding is the verdict.
package verdict

import (
	"fmt"
	"slices"

	"prony/internal/result"
)

// Rule is one condition that a measurement must meet.
type Rule struct {
	Name   string
	Meets  string // the condition, in words
	Else   string // what a record becomes that does not meet it
	Source string // who found that it matters
	check  func(*result.Record, *result.Load) *result.Finding
}

// ended stands before the others: what a trial that failed has measured is not looked at.
var ended = Rule{"failed", "every step of the trial went well", "INVALID",
	"docs/formats/record.md", failed}

var trialRules = []Rule{
	{"warm-up", "a steady state was reached before the first window", "SUSPECT",
		"HttpArena #1417, spring-quarkus-perf-comparison #633", warmup},
	{"limits", "every limit asked for is in force", "SUSPECT",
		"kubernetes #67577; docs/decisions/0005-launching.md", limits},
	{"cores", "service and load run on cores of their own", "SUSPECT",
		"postrust #11; Treadmill, ISCA 2016", cores},
}

var loadRules = []Rule{
	{"answers", "there are good answers", "INVALID", "wrk #457", answers},
	{"delivered", "99 % of the arrivals due in the window, or all but five, were sent in it",
		"INVALID", "Lancet, ATC 2019; HttpArena #1317", delivered},
	{"capacity", "the backlog grows by less than 1 % of the rate, randomness aside",
		"INVALID", "wrk2 #81, #94", capacity},
	{"lag", "p99 of the generator's own lag is below 50 µs or 5 % of the response time's p99",
		"SUSPECT", "Treadmill, ISCA 2016; wrk2 #78", lag},
	{"generator", "each load thread is busy for less than 80 % of the window", "SUSPECT",
		"FrameworkBenchmarks #5207; Hyperfoil's watchdog", generator},
	{"run delay", "load threads wait for a processor for less than 5 % of the window", "SUSPECT",
		"Linux, Documentation/scheduler/sched-stats.rst", runDelay},
	{"ceiling", "throughput is below 70 % of the generator's against a null server", "SUSPECT",
		"the-benchmarker #9662, #9775", ceiling},
	{"little", "requests under way equal rate times mean service time within 5 %",
		"SUSPECT, beyond 20 % INVALID", "Little, Operations Research 9(3), 1961", little},
	{"order", "percentiles do not decrease and lie between minimum and maximum", "INVALID",
		"locust #331, #777", order},
	{"errors", "every answer has the right status and body", "SUSPECT, above 0.1 % INVALID",
		"HttpArena #939", failures},
	{"censored", "every request was answered by the end of the drain",
		"SUSPECT, above 1 % INVALID", "Tene, How NOT to Measure Latency", censored},
	{"connections", "fewer than 1 % of the requests cost a new connection", "SUSPECT",
		"the-benchmarker #9421", reconnects},
	{"samples", "there are at least 381 answers, the least for an interval of p99", "SUSPECT",
		"order statistics as in Lancet, ATC 2019", samples},
	{"drift",
		"the two halves of a closed window differ by less than 5 % in throughput, randomness aside",
		"SUSPECT", "Kalibera & Jones, ISMM 2013", drift},
	{"steal", "the hypervisor took less than 1 % of the processors' time",
		"SUSPECT, above 10 % INVALID", "proc(5), /proc/stat; bencher noise", steal},
	{"throttled", "the service was throttled for less than 1 % of the window", "SUSPECT",
		"kubernetes #67577", throttled},
	{"neighbours", "other processes used less than 5 % of the processors' time", "SUSPECT",
		"postrust #11", neighbours},
	{"memory", "tasks stalled on memory for less than 1 % of the window", "SUSPECT",
		"Linux, Documentation/accounting/psi.rst", memory},
}

// Rules lists every rule, for the documentation.
func Rules() []Rule { return slices.Concat([]Rule{ended}, trialRules, loadRules) }

// Judge applies all rules to a record.
func Judge(r *result.Record) result.Verdict {
	v := result.Verdict{Grade: result.Valid}
	apply := func(l *result.Load, rules ...Rule) {
		for _, rule := range rules {
			f := rule.check(r, l)
			if f == nil {
				continue
			}
			f.Rule = rule.Name
			if l != nil {
				f.Load = l.Name
			}
			v.Findings = append(v.Findings, *f)
			v.Grade = worse(v.Grade, f.Grade)
		}
	}
	apply(nil, ended)
	if len(v.Findings) > 0 {
		return v
	}
	apply(nil, trialRules...)
	for i := range r.Loads {
		apply(&r.Loads[i], loadRules...)
	}
	return v
}

func worse(a, b string) string {
	order := map[string]int{result.Valid: 0, result.Suspect: 1, result.Invalid: 2}
	if order[b] > order[a] {
		return b
	}
	return a
}

func suspect(observed, limit, hint string) *result.Finding {
	return &result.Finding{Grade: result.Suspect, Observed: observed, Limit: limit, Hint: hint}
}

func invalid(observed, limit, hint string) *result.Finding {
	return &result.Finding{Grade: result.Invalid, Observed: observed, Limit: limit, Hint: hint}
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// beside is a share with as many digits as it takes to tell it from its limit.
func beside(x, limit float64) string {
	for digits := 1; digits < 6; digits++ {
		s := fmt.Sprintf("%.*f %%", digits, 100*x)
		if s != fmt.Sprintf("%.*f %%", digits, 100*limit) {
			return s
		}
	}
	return percent(x)
}
