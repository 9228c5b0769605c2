package wording

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/units"
	"prony.example/record"
)

// Finding returns a finding in words. Its limit is empty if a bound decides instead.
func Finding(f record.Finding) record.Words {
	if f.Text != nil {
		return *f.Text
	}
	report := sentences[f.Rule]
	switch {
	case f.Rule == "generators":
		return generators(f)
	case report == nil:
		return record.Words{Observed: cmp.Or(f.Case, f.Rule)}
	}
	w := report(f)
	if len(f.PossibleBias) > 0 {
		w.Limit, w.Quantity = "", false
	}
	return w
}

// Sentence returns a finding on a comparison as one sentence with its hint, preceded by its grade
// unless that is VALID.
func Sentence(f record.Finding) string {
	w := Finding(f)
	text := fmt.Sprintf("%s (%s).", w.Observed, w.Hint)
	if f.Grade == record.Valid {
		return units.Capital(text)
	}
	return f.Grade + ": " + text
}

// Against returns the limit of a finding, "limit 5.0 %", or the largest bound of its effect.
func Against(f record.Finding) string {
	limit := Finding(f).Limit
	switch {
	case limit != "":
		return "limit " + limit
	case len(f.PossibleBias) == 0:
		return "no limit"
	}
	m := slices.MaxFunc(f.PossibleBias, func(a, b record.Bias) int {
		return cmp.Compare(a.Share,
			b.Share)
	})
	return fmt.Sprintf("can have moved %s by %s", m.Metric, units.AtMost(m.Share))
}

// WithWords returns findings with their texts, for documents that people read.
func WithWords(findings []record.Finding) []record.Finding {
	out := slices.Clone(findings)
	for i := range out {
		words := Finding(out[i])
		out[i].Text = &words
	}
	return out
}

// Reason is why a verdict is what it is: a finding, and what to do.
type Reason struct{ Observed, Hint string }

// Reasons returns the findings of a verdict that count and the notes on the service, and one line
// with the rules of the others; empty: there are no others.
func Reasons(v record.Verdict) (reasons []Reason, noted string) {
	var small []string
	for _, f := range v.Findings {
		w := Finding(f)
		switch {
		case f.Note:
			reasons = append(reasons, Reason{f.Rule + ": " + w.Observed, w.Hint})
		case f.Grade == record.Valid:
			small = append(small, f.Rule)
		default:
			observed := fmt.Sprintf("%s: %s (%s)", f.Rule, w.Observed, Against(f))
			reasons = append(reasons, Reason{observed, w.Hint})
		}
	}
	if len(small) > 0 {
		noted = "noted, too small to change a result: " + strings.Join(small, ", ")
	}
	return reasons, noted
}

// sentences has a function for each rule that puts its findings into words. Only generators is
// separate, because its findings contain findings of other rules.
var sentences = map[string]func(record.Finding) record.Words{
	"failed": failed, "warm-up": warmup, "quiet": quiet, "limits": limits, "log": logged,
	"cores": cores, "pod": pod, "reader": reader, "cluster": cluster, "answers": answers,
	"sums": sums, "stalled": stoodStill, "order": order, "capacity": capacity,
	"delivered": delivered, "generator": busy, "run delay": runDelay, "ceiling": ceiling,
	"network": delayedBy,
	"little":  little, "starving": starving, "errors": failures, "backend calls": unasked,
	"censored": censored, "datagrams": datagrams, "clocks": clocks, "range": clipped,
	"connections": connections,
	"delayed ack": delayed, "unused": unused, "drift": drift,
	"steal": steal, "throttled": throttled, "neighbors": neighbours, "memory": memory,
	"idle targets": idleTargets,
	"lag":          lag, "timer": timer, "waited": waited, "rate": rate, "arrivals": arrivals,
	"bursts": bursts, "batch": batch, "retried": retried, "early": early,
	"samples": samples, "settled": settled, record.Identities: identities,
	"third-party tool": foreign, Whole: whole, "slice answers": sliceAnswers, "idle work": idleWork,
	"slice lag": sliceLag, "slice generator": sliceGenerator,
	"starts": starts, "control": control, "levels": levels,
	"balance": balance, "rare events": rareEvents,
}

// Whole is the rule that a load was offered for its whole window.
const Whole = "whole"

// words returns the observation, a limit that is not a number, and a hint.
func words(hint, limit, format string, args ...any) record.Words {
	return record.Words{Observed: fmt.Sprintf(format, args...), Limit: limit, Hint: hint}
}

// amount adds the formatted value, and marks a limit as a number.
func amount(w record.Words, value string) record.Words {
	w.Amount, w.Quantity = value, w.Limit != ""
	return w
}

// quantity marks the limit as a number although the text has no number to compare.
func quantity(w record.Words) record.Words {
	w.Quantity = true
	return w
}

// limitText returns the text of a limit, or "" for a finding without one.
func limitText(f record.Finding, text string) string {
	if f.Side == "" {
		return ""
	}
	return text
}

// percent formats a share with one decimal, or with two if one would be 0.0 %.
func percent(x float64) string {
	if a := math.Abs(x); 0 < a && a < 0.0005 {
		return units.PercentTo(x, 2)
	}
	return units.PercentTo(x, 1)
}

// share formats a share with enough digits to distinguish it from its limit.
func share(f record.Finding) string {
	if f.Side == "" {
		return percent(f.Value)
	}
	return apart(100*f.Value, 100*f.Limit, 1) + " %"
}

// apart formats other numbers in the same way, with a minimum number of digits.
func apart(x, limit float64, digits int) string {
	valueAt := func(digits int, x float64) string { return fmt.Sprintf("%.*f", digits, x) }
	more := digits
	for more < 5 && valueAt(more, x) == valueAt(more, limit) {
		more++
	}
	if valueAt(more, x) == valueAt(more, limit) {
		more = digits
	}
	return valueAt(more, x)
}

// duration rounds a time in ns.
func duration[T float64 | int64](ns T, to time.Duration) time.Duration {
	return time.Duration(ns).Round(to)
}

// first returns the first string, or "".
func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

func failed(f record.Finding) record.Words {
	const limit = "every step of the trial succeeds"
	if f.Case == "unknown" {
		return words("read the service's log", limit, "the record has no reason for the failure")
	}
	return words(f.Facts.Hint, limit, "%s: %s", f.Facts.Step, first(f.Facts.Messages))
}

func warmup(f record.Finding) record.Words {
	after := duration(f.Value, 100*time.Millisecond)
	switch f.Case {
	case "never steady":
		return words("raise --warmup", "steady", "the service was not steady after %v of warm-up",
			after)
	case "steady before":
		return words("raise warmup.min, and use longer windows", "steady",
			"the service looked steady after %v of warm-up, but was not steady in the window",
			after)
	case "steady late":
		return words("raise warmup.min", "before it", "the steady state began %v after the start "+
			"of the window",
			after)
	}
	hint := "raise --warmup, run as root so that compiler threads get priority, or warm up on " +
		"all cores"
	if f.Case == "compiles again" {
		hint = "raise warmup.min, and use longer windows"
	}
	return words(hint, "silent", "in the window of load %s, just-in-time compilers ran for %s "+
		"and waited for a core for %s of the time",
		f.Facts.Name, percent(f.Value), percent(f.Facts.WaitingShare))
}

func quiet(f record.Finding) record.Words {
	return words("stop other programs; see prony doctor", "a quiet host",
		"before the trial %s, also after waiting for %v", first(f.Facts.Messages),
		duration(f.Facts.AtNs, 100*time.Millisecond))
}

func limits(f record.Finding) record.Words {
	return words("run Prony as root, or in a cgroup that is delegated to your user", "all in force",
		"limits not in force: %s", strings.Join(Limits(f.Facts.Limits), ", "))
}

func logged(f record.Finding) record.Words {
	return words("reduce the service's logging to its level in production", "the whole log",
		"%s of the service's log were dropped", units.Bytes(f.Value))
}

func cores(f record.Finding) record.Words {
	return words("give the machine a second core", "disjoint cores", "service and load both ran "+
		"on core %d",
		f.Facts.Core)
}

func pod(f record.Finding) record.Words {
	return words("set cpuManagerPolicy: static for the kubelet of the pod's node, and request "+
		"whole CPUs", "cores of its own", "%s", strings.Join(f.Facts.Messages, "; "))
}

func reader(f record.Finding) record.Words {
	const hint = "use a network in which the node and the cluster's API are always reachable"
	if f.Case == "lost" {
		return words(hint, "each reading", "readings of the service's resource usage were lost: %s",
			strings.Join(f.Facts.Messages, "; "))
	}
	return words(hint, units.Duration(f.Limit)+", 1 % of load "+f.Facts.Name,
		"a reading of the service's resource usage was %s late", units.Duration(f.Value))
}

func cluster(f record.Finding) record.Words {
	return words("no action is needed, because results do not depend on the cluster's API", "none",
		"the cluster's API did not respond for %s", units.Duration(f.Value))
}

func whole(f record.Finding) record.Words {
	limit := time.Duration(f.Limit).String()
	if f.Facts.Total > 0 { // it ends by a number, and has no window
		limit = units.Plural(f.Facts.Total, "request")
	}
	return words("let the load run to its end", limit,
		"the load ended after %v of the window", duration(f.Value, time.Millisecond))
}
