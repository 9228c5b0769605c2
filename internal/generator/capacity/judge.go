package capacity

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/analysis/wording"
	"prony.example/record"
	"prony.example/record/slo"
)

// Limits of a step's judgement.
const (
	shortMax   = 0.01 // of the arrivals offered, may lack a good answer inside the window
	shortNoise = 5    // arrivals; as the verdict's rule on the backlog allows
	shortSigma = 3    // likewise, standard deviations of the requests under way
	waitedMax  = 0.01 // of the arrivals, may find all connections busy
	lagFloor   = 50 * time.Microsecond
	lagShare   = 0.05 // of the tightest time promised
	tellFrom   = 381  // answers from which on a p99 is told
)

// judge says whether the service kept its objectives under a load: yes, no, or that the generator
// or the machine was not up to it, so that the load says nothing.
//
// A service holds that keeps up with what was offered and keeps every objective, under a generator
// that was on time. What the verdict calls INVALID is the service's fault where the service lets
// the backlog grow, and the instrument's fault otherwise.
func judge(l *record.Load, objectives []slo.Objective) Tried {
	t := Tried{
		ThroughputPerS: l.ThroughputPerS, Objectives: slo.CheckAll(objectives, l),
		CPUPerRequest: l.Generator.CPUPerRequestNs, BacklogPerS: l.BacklogPerS,
	}
	v := verdict.Judge(&record.Record{
		Outcome: record.Measured, Loads: []record.Load{*l}, Warmup: record.Warmup{Steady: true},
	})
	service, instrument := blame(l, objectives, v.Findings)
	for _, f := range v.Findings {
		t.named = append(t.named, f.Rule)
		if f.Grade == record.Suspect {
			t.Suspect = append(t.Suspect, f.Rule)
		}
	}
	t.overload, t.instrument = service, instrument.text
	if l.ResponseTime.Count >= tellFrom && service == "" {
		t.P50Ns, t.P99Ns = withoutStalls(l, 0.5, l.ResponseTime.P50Ns),
			withoutStalls(l, 0.99, l.ResponseTime.P99Ns)
	}
	broken, unknown := "", ""
	for _, o := range t.Objectives {
		switch line := o.Objective + ": " + o.Text; {
		case o.Known && !o.Met && broken == "":
			broken = line
		case !o.Known && unknown == "":
			unknown = line
		}
	}
	service = cmp.Or(service, broken)
	switch {
	case instrument.text != "":
		t.Outcome, t.Reason, t.rule = Invalid, instrument.text, instrument.rule
	case service != "" && busy(v.Findings) != "":
		t.Outcome, t.Reason = Invalid, busy(v.Findings)
	case service != "":
		t.Outcome, t.Reason = Missed, service
	case unknown != "":
		t.Outcome, t.Reason = Invalid, unknown
	default:
		t.Outcome = Met
	}
	return t
}

// fault is what was wrong with an instrument, and the rule of the verdict that says so.
type fault struct{ rule, text string }

// blame tells what was wrong with the load beside the objectives, and with whom.
func blame(l *record.Load, objectives []slo.Objective, findings []record.Finding) (service string,
	instrument fault) {
	promisesErrors := false
	for _, o := range objectives {
		promisesErrors = promisesErrors || o.IsErrors() && o.Route == ""
	}
	service = short(l, promisesErrors)
	starved := fault{}
	for _, f := range findings {
		text := f.Rule + ": " + wording.Finding(f).Observed
		switch {
		case f.Grade != record.Invalid:
		case f.Rule == "delivered" && float64(l.Waited) > waitedMax*float64(l.Scheduled),
			f.Rule == "answers", f.Rule == "capacity", f.Rule == "censored",
			f.Rule == "errors" && !promisesErrors:
			service = cmp.Or(service, text)
		case f.Rule == "errors":
			// The objective says how many are too many.
		case f.Rule == "little":
			// What an overload does to the books; else a defect of the instrument.
			starved = fault{f.Rule, text}
		default:
			instrument = fault{f.Rule, text}
		}
	}
	if service == "" && instrument.text == "" {
		instrument = starved
	}
	if late := own(l, objectives); late != "" && instrument.text == "" {
		instrument = fault{"lag", late}
	}
	return service, instrument
}

// short says by how much the answers fell short of what was offered. Some requests are under way
// at both ends of the window, so that small numbers differ by chance.
func short(l *record.Load, promisesErrors bool) string {
	if l.Model != record.Open || l.Scheduled == 0 {
		return ""
	}
	good := l.Done
	if promisesErrors {
		good += l.Errors.Total() // a failure is an end too, and the objective counts it
	}
	noise := shortNoise + shortSigma*math.Sqrt(max(l.InFlightMean, 0))
	if float64(l.Scheduled-good) <= max(shortMax*float64(l.Scheduled), noise) {
		return ""
	}
	return fmt.Sprintf("only %.1f %% of the due requests received a response",
		100*float64(good)/float64(l.Scheduled))
}

// withoutStalls is a percentile without the machine's stalls, or the raw one if that is not known.
func withoutStalls(l *record.Load, quantile float64, raw int64) int64 {
	if x := record.StallFreeOf(l.StallFree, quantile); x != nil {
		return x.Ns
	}
	return raw
}

// own says by how much the generator was late. What matters is not its lag beside this answer's
// time, as in the verdict, but beside the time promised: that is what is decided here. Of
// percentiles without the machine's stalls, it is known how much of them the lag is.
func own(l *record.Load, objectives []slo.Objective) string {
	if l.Model != record.Open || l.OwnLag.Count == 0 {
		return ""
	}
	promised, remain := math.Inf(1), len(objectives) == 0
	for _, o := range objectives {
		if !o.IsTime() {
			continue
		}
		promised = min(promised, o.Limit)
		x := stallFreeOf(l, o)
		if x == nil {
			remain = true
		} else if late := time.Duration(x.Ns - x.PunctualNs); late > lagLimit(o.Limit) {
			return fmt.Sprintf("lag: the generator sent late, which is %v of %s (limit %v)",
				late.Round(time.Microsecond), o.Metric, lagLimit(o.Limit).Round(time.Microsecond))
		}
	}
	if math.IsInf(promised, 1) {
		promised, remain = float64(l.ResponseTime.P99Ns), true
	}
	if limit := lagLimit(promised); remain && time.Duration(l.OwnLag.P99Ns) > limit {
		return fmt.Sprintf("lag: the generator sent late, with a p99 delay of %v (limit %v)",
			time.Duration(l.OwnLag.P99Ns).Round(time.Microsecond), limit.Round(time.Microsecond))
	}
	return ""
}

// stallFreeOf is what is known of an objective's percentile without stalls; nil if nothing is.
func stallFreeOf(l *record.Load, o slo.Objective) *record.StallFree {
	if o.Quantile == 0 || o.Time != "" || o.Route != "" {
		return nil
	}
	return record.StallFreeOf(l.StallFree, o.Quantile)
}

// lagLimit is how late a generator may be, beside a time that is promised or observed.
func lagLimit(ns float64) time.Duration { return max(lagFloor, time.Duration(lagShare*ns)) }

// busy tells whether the generator had no time left: then what is slow may be itself.
func busy(findings []record.Finding) string {
	for _, f := range findings {
		if f.Rule == "generator" {
			return f.Rule + ": " + wording.Finding(f).Observed
		}
	}
	return ""
}
