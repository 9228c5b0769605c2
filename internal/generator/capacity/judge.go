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

// Limits for the outcome of a step.
const (
	shortMax   = 0.01 // share of arrivals that may lack a good response inside the window
	shortNoise = 5    // arrivals, as in the verdict's rule on the backlog
	shortSigma = 3    // standard deviations of the number of requests in progress
	waitedMax  = 0.01 // share of arrivals that may find all connections busy
	lagFloor   = 50 * time.Microsecond
	lagShare   = 0.05 // of the tightest time objective
	tellFrom   = 381  // number of responses from which on a p99 is known
)

// judge returns whether the service met its objectives under a load, or Invalid if the generator or
// the machine limited the load.
//
// A service meets them if it keeps up with the load and meets every objective, and the generator
// was on time. If the verdict is INVALID, the service is at fault if its backlog grew, otherwise
// the instrument.
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
		t.WithStalls = l.Model == record.Open && stalled(l) &&
			(record.StallFreeOf(l.StallFree, 0.5) == nil ||
				record.StallFreeOf(l.StallFree, 0.99) == nil)
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

// fault describes an instrument's problem and names the rule of the verdict that found it.
type fault struct{ rule, text string }

// blame returns problems of the load other than missed objectives, by who is at fault.
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
			// The objective decides.
		case f.Rule == "little":
			// An overload breaks this rule, or otherwise a defect of the instrument.
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

// short returns a description if good responses were too few for the load, or "". Requests in
// progress at both ends of the window cause small random differences.
func short(l *record.Load, promisesErrors bool) string {
	if l.Model != record.Open || l.Scheduled == 0 {
		return ""
	}
	good := l.Done
	if promisesErrors {
		good += l.Errors.Total() // a failure is also a response, which the objective counts
	}
	noise := shortNoise + shortSigma*math.Sqrt(max(l.InFlightMean, 0))
	if float64(l.Scheduled-good) <= max(shortMax*float64(l.Scheduled), noise) {
		return ""
	}
	return fmt.Sprintf("only %.1f %% of the due requests received a response",
		100*float64(good)/float64(l.Scheduled))
}

// stalled reports whether stalls of the machine were recorded.
func stalled(l *record.Load) bool { return l.Stalls != nil && l.Stalls.StalledNs > 0 }

// withoutStalls returns a percentile without the machine's stalls, or raw if it is unknown.
func withoutStalls(l *record.Load, quantile float64, raw int64) int64 {
	if x := record.StallFreeOf(l.StallFree, quantile); x != nil {
		return x.Ns
	}
	return raw
}

// own returns a description if the generator was late, or "". The limit of the lag depends on the
// time objective, because that is decided here, and not on this response time as in the verdict.
// For percentiles without the machine's stalls, the lag's part is known.
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

// stallFreeOf returns an objective's percentile without stalls, or nil if it is unknown.
func stallFreeOf(l *record.Load, o slo.Objective) *record.StallFree {
	if o.Quantile == 0 || o.Time != "" || o.Route != "" {
		return nil
	}
	return record.StallFreeOf(l.StallFree, o.Quantile)
}

// lagLimit returns the permitted lag for a time objective or response time.
func lagLimit(ns float64) time.Duration { return max(lagFloor, time.Duration(lagShare*ns)) }

// busy returns a description if the generator had no spare time, so that it may itself be slow, or
// "".
func busy(findings []record.Finding) string {
	for _, f := range findings {
		if f.Rule == "generator" {
			return f.Rule + ": " + wording.Finding(f).Observed
		}
	}
	return ""
}
