package record

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"
)

// A record proves a result only if its numbers agree with each other. Read leaves out records that
// violate one of the identities below, which hold for records of all versions. Those that need
// Prony's own counting hold only for its own loads; other tools define their numbers themselves.
//
// A record that Prony writes has a finding of the rule Identities for each violation, so that the
// measurement is saved, and INVALID. Read keeps such records: their numbers count nowhere.

// Identities is the rule of findings on numbers that contradict each other.
const Identities = "identities"

// rounded bounds the relative difference of numbers that were rounded or quantized by a histogram
// of three digits.
const rounded = 0.002

// scaled bounds the relative difference of requests that early versions did not scale to the window
// of a service's readings.
const scaled = 0.1

// exact bounds counts: above 2^53, JSON readers that use doubles change them.
const exact = 1 << 53

// Violation is an identity that a record violates.
type Violation struct {
	Load string // empty: the violation is of the whole trial
	Err  error  // names the identity and the numbers
}

// Error returns the identity with its numbers, after the load.
func (v Violation) Error() string {
	if v.Load == "" {
		return v.Err.Error()
	}
	return fmt.Sprintf("load %s: %v", v.Load, v.Err)
}

// Check returns an error that names the first identity that a record violates; nil if it proves
// its results. It does not check loads of failed trials, because they ended anywhere. Nor does it
// return a violation whose load, or whose trial, is INVALID: nothing uses these numbers.
func (r *Record) Check() error {
	for _, v := range r.Violations() {
		if !r.invalid(v.Load) {
			return v
		}
	}
	return nil
}

// invalid reports whether a finding makes a load INVALID, in slices and in its window.
func (r *Record) invalid(load string) bool {
	return r.Verdict.Grade == Invalid && slices.ContainsFunc(r.Verdict.Findings,
		func(f Finding) bool {
			return f.Grade == Invalid && f.Phase == "" && (f.Load == "" || f.Load == load)
		})
}

// Violations returns the first identity that the trial, and each of its loads, violates.
func (r *Record) Violations() (out []Violation) {
	if err := r.check(); err != nil {
		out = append(out, Violation{Err: err})
	}
	if r.Outcome == Failed {
		return out
	}
	for i := range r.Loads {
		if err := r.Loads[i].Check(); err != nil {
			out = append(out, Violation{r.Loads[i].Name, err})
		}
	}
	return out
}

// check returns the first identity of the whole trial that a record violates.
func (r *Record) check() error {
	switch {
	case r.Block < 0 || r.Order < 0:
		return fmt.Errorf("block %d, order %d: both must be at least 0", r.Block, r.Order)
	case !r.Time.IsZero() && (r.Time.Before(time.Unix(0, 0)) ||
		r.Time.After(time.Unix(0, greatest))):
		return fmt.Errorf("time is %s: must be between 1970 and 2096, so check the clock of the "+
			"machine", r.Time.UTC().Format(time.RFC3339))
	case r.DurationNs < 0:
		return fmt.Errorf("durationNs is %d: the trial cannot end before it begins", r.DurationNs)
	case r.Outcome != Measured && r.Outcome != Failed:
		return fmt.Errorf("outcome %q is neither %s nor %s", r.Outcome, Measured, Failed)
	case r.Outcome == Failed:
		return nil
	case len(r.Loads) == 0:
		return errors.New("loads: it has none, and its outcome is measured")
	}
	grades := []string{Valid, Suspect, Invalid}
	grade := slices.Index(grades, r.Verdict.Grade)
	if grade < 0 {
		return fmt.Errorf("verdict.grade %q is none of %s, %s and %s", r.Verdict.Grade, Valid,
			Suspect, Invalid)
	}
	for _, f := range r.Verdict.Findings {
		if slices.Index(grades, f.Grade) > grade {
			return fmt.Errorf("verdict.grade is %s, but the finding %s is %s", r.Verdict.Grade,
				f.Rule, f.Grade)
		}
	}
	for i := range r.Loads {
		name := r.Loads[i].Name
		if slices.ContainsFunc(r.Loads[:i], func(l Load) bool { return l.Name == name }) {
			return fmt.Errorf("loads: it has two with the name %q", name)
		}
	}
	return r.checkConditions()
}

// checkConditions returns the first impossible number of a measured trial beside its loads.
func (r *Record) checkConditions() error {
	ascending := []named{{"start.listenNs", float64(r.Start.ListenNs)},
		{"start.readyNs", float64(r.Start.ReadyNs)},
		{"start.firstResponseNs", float64(r.Start.FirstResponseNs)}}
	for _, x := range append(ascending, named{"start.rssBytes", float64(r.Start.RSSBytes)},
		named{"artifact.sizeBytes", float64(r.Artifact.SizeBytes)}) {
		if err := x.known(); err != nil {
			return err
		}
	}
	last := named{}
	for _, x := range ascending {
		if x.number <= 0 { // unknown
			continue
		}
		if x.number < last.number {
			return fmt.Errorf("%s ≤ %s: %g, but the latter is %g", last.name, x.name, last.number,
				x.number)
		}
		last = x
	}
	for _, x := range []named{{"limits.cpus", r.Limits.CPUs},
		{"limits.memoryBytes", float64(r.Limits.MemoryBytes)},
		{"warmup.durationNs", float64(r.Warmup.DurationNs)},
		{"warmup.requests", float64(r.Warmup.Requests)}} {
		if err := x.positive(); err != nil {
			return err
		}
	}
	return nil
}

// named is a number with its name in the record.
type named struct {
	name   string
	number float64
}

// positive returns an error unless the number is at least 0.
func (x named) positive() error {
	if x.number < 0 {
		return fmt.Errorf("%s is %g: must be at least 0", x.name, x.number)
	}
	return nil
}

// known returns an error unless the number is at least 0, or -1, which stands for unknown.
func (x named) known() error {
	if x.number < 0 && x.number != -1 {
		return fmt.Errorf("%s is %g: must be at least 0, or -1 if it is unknown", x.name, x.number)
	}
	return nil
}

// Check returns an error that names the first identity that a load violates.
func (l *Load) Check() error {
	if err := measurable(reflect.ValueOf(l)); err != nil {
		return err
	}
	for _, check := range []func() error{l.checkCounts, l.checkTimes, l.checkService,
		l.Slices.check} {
		if err := check(); err != nil {
			return err
		}
	}
	if l.WindowNs <= 0 {
		return fmt.Errorf("windowNs is %d: must be greater than 0", l.WindowNs)
	}
	if l.Driver != "" {
		return l.Series.check(l)
	}
	failed := l.Errors.Requests()
	switch perS := float64(l.Done) / (float64(l.WindowNs) / 1e9); {
	case math.Abs(l.ThroughputPerS-perS) > rounded*perS:
		return fmt.Errorf("done / windowNs = throughputPerS: %g, but throughputPerS is %g", perS,
			l.ThroughputPerS)
	case l.Sent > l.Scheduled:
		return fmt.Errorf("scheduled ≥ sent: %d, but sent is %d", l.Scheduled, l.Sent)
	case l.Answered+failed > l.Scheduled:
		return fmt.Errorf("scheduled ≥ answered + failed: %d, but these are %d + %d", l.Scheduled,
			l.Answered, failed)
	case l.ResponseTime.Count > l.Answered+l.Errors.Timeout:
		return fmt.Errorf("responseTime.count ≤ answered + errors.timeout: %d, but these are "+
			"%d + %d", l.ResponseTime.Count, l.Answered, l.Errors.Timeout)
	// In a closed load, requests that timed out before they were sent have no response time.
	case l.ResponseTime.Count != l.Answered+l.Errors.Timeout && l.Model == Open:
		return fmt.Errorf("responseTime.count = answered + errors.timeout: %d, but these are "+
			"%d + %d", l.ResponseTime.Count, l.Answered, l.Errors.Timeout)
	}
	return l.Series.check(l)
}

// checkCounts returns an error that names the first count or rate of a load that nothing can be.
func (l *Load) checkCounts() error {
	e := &l.Errors
	for _, x := range []named{
		{"scheduled", float64(l.Scheduled)}, {"sent", float64(l.Sent)},
		{"done", float64(l.Done)}, {"answered", float64(l.Answered)},
		{"censored", float64(l.Censored)}, {"bytesIn", float64(l.BytesIn)},
		{"bytesOut", float64(l.BytesOut)}, {"connections", float64(l.Connections)},
		{"threads", float64(l.Threads)}, {"inFlightMean", l.InFlightMean},
		{"throughputPerS", l.ThroughputPerS},
		{"ratePerS", l.RatePerS}, {"reconnects", float64(l.Reconnects)},
		{"waited", float64(l.Waited)}, {"retried", float64(l.Retried)},
		{"early", float64(l.Early)}, {"errors.connect", float64(e.Connect)},
		{"errors.write", float64(e.Write)}, {"errors.read", float64(e.Read)},
		{"errors.timeout", float64(e.Timeout)}, {"errors.parse", float64(e.Parse)},
		{"errors.status", float64(e.Status)}, {"errors.body", float64(e.Body)},
		{"errors.closed", float64(e.Closed)}, {"errors.unsolicited", float64(e.Unsolicited)},
	} {
		if err := x.positive(); err != nil {
			return err
		}
		if x.number >= exact {
			return fmt.Errorf("%s is %.0f: must be less than 2^53", x.name, x.number)
		}
	}
	return nil
}

// checkTimes returns an error that names the first identity that a distribution of a load violates.
func (l *Load) checkTimes() error {
	for _, x := range []struct {
		name string
		dist *Dist
	}{{"responseTime", &l.ResponseTime}, {"serviceTime", &l.ServiceTime},
		{"firstByte", &l.FirstByte}, {"lag", &l.Lag}, {"ownLag", &l.OwnLag},
		{"errorTime", &l.ErrorTime}, {"connectTime", &l.ConnectTime}, {"flowTime", &l.FlowTime}} {
		if err := x.dist.check(); err != nil {
			return fmt.Errorf("%s.%w", x.name, err)
		}
	}
	return nil
}

// checkService returns the first identity that a service's use of resources violates. The window of
// its readings contains the load's, and its requests are counted in proportion.
func (l *Load) checkService() error {
	u := &l.Service
	for _, x := range []named{{"cpuNs", float64(u.CPUNs)}, {"userNs", float64(u.UserNs)},
		{"systemNs", float64(u.SystemNs)}, {"cpuPerRequestNs", u.CPUPerRequestNs},
		{"rssMaxBytes", float64(u.RSSMaxBytes)}, {"rssEndBytes", float64(u.RSSEndBytes)},
		{"pssEndBytes", float64(u.PSSEndBytes)}, {"windowNs", float64(u.WindowNs)}} {
		if err := x.known(); err != nil {
			return fmt.Errorf("service.%w", err)
		}
	}
	if l.Disturbed < 0 {
		return fmt.Errorf("disturbedWindows is %d: must not be negative", l.Disturbed)
	}
	for _, x := range l.IdleTargets {
		if x.CPUNs < 0 {
			return fmt.Errorf("idleTargets.cpuNs is %d: must not be negative", x.CPUNs)
		}
	}
	if u.CPUPerRequestNs <= 0 || u.WindowNs <= 0 || l.WindowNs <= 0 {
		return nil
	}
	requests := float64(u.CPUNs) / u.CPUPerRequestNs
	want := float64(l.Done+l.Errors.Total()) * float64(u.WindowNs) / float64(l.WindowNs)
	if math.Abs(requests-want) > 1+scaled*want {
		return fmt.Errorf("service.cpuNs / cpuPerRequestNs ≈ (done + errors) × service.windowNs / "+
			"windowNs: %.0f requests, but the latter is %.0f", requests, want)
	}
	return nil
}

// check returns the first identity that sums over slices violate.
func (s *Sliced) check() error {
	if s == nil {
		return nil
	}
	for _, x := range []named{{"slices", float64(s.Slices)}, {"requests", float64(s.Requests)},
		{"failed", float64(s.Failed)}, {"timeNs", float64(s.TimeNs)}, {"ratePerS", s.RatePerS},
		{"loadCPUNs", float64(s.LoadCPUNs)}} {
		if err := x.positive(); err != nil {
			return fmt.Errorf("slices.%w", err)
		}
	}
	for _, x := range []named{{"cpuNs", float64(s.CPUNs)}, {"idleCPUNs", float64(s.IdleCPUNs)},
		{"idleTimeNs", float64(s.IdleTimeNs)}, {"starvedNs", float64(s.StarvedNs)}} {
		if err := x.known(); err != nil {
			return fmt.Errorf("slices.%w", err)
		}
	}
	if s.TimeNs == 0 && s.Requests > 0 {
		return fmt.Errorf("slices.requests is %d, but slices.timeNs is 0", s.Requests)
	}
	for _, d := range []*Dist{&s.ResponseTime, &s.PunctualTime} {
		if err := d.check(); err != nil {
			return fmt.Errorf("slices.%w", err)
		}
	}
	return nil
}

// check returns the first identity that a distribution violates. Some tools leave percentiles out,
// which are then 0.
func (d *Dist) check() error {
	if d.Count < 0 {
		return fmt.Errorf("count is %d: must be at least 0", d.Count)
	}
	last := named{"minNs", float64(d.MinNs)}
	for _, x := range []named{last, {"p50Ns", float64(d.P50Ns)}, {"p90Ns", float64(d.P90Ns)},
		{"p99Ns", float64(d.P99Ns)}, {"p999Ns", float64(d.P999Ns)}, {"maxNs", float64(d.MaxNs)}} {
		switch {
		case x.number < 0:
			return fmt.Errorf("%s is %g: must be at least 0", x.name, x.number)
		case x.number == 0:
			continue
		case x.number < last.number*(1-rounded):
			return fmt.Errorf("%s ≤ %s: %.0f, but the latter is %.0f", last.name, x.name,
				last.number, x.number)
		}
		last = x
	}
	if d.MeanNs < 0 || d.MaxNs > 0 && d.MeanNs > float64(d.MaxNs)*(1+rounded) ||
		d.MeanNs > 0 && d.MeanNs < float64(d.MinNs)*(1-rounded) {
		return fmt.Errorf("minNs ≤ meanNs ≤ maxNs: meanNs is %g, not in %d to %d", d.MeanNs,
			d.MinNs, d.MaxNs)
	}
	return nil
}

// check returns the first identity that a series violates. Earlier versions left out a last
// interval that is shorter than half of the others.
func (s *Series) check(l *Load) error {
	if s.IntervalNs < 0 || s.IntervalNs == 0 && len(s.Done) > 0 {
		return fmt.Errorf("series.intervalNs is %d: must be greater than 0", s.IntervalNs)
	}
	if s.IntervalNs == 0 {
		return nil
	}
	if most := (l.WindowNs + s.IntervalNs - 1) / s.IntervalNs; int64(len(s.Done)) > most {
		return fmt.Errorf("series has %d intervals of %d ns, more than windowNs %d", len(s.Done),
			s.IntervalNs, l.WindowNs)
	}
	var done int64
	for name, column := range map[string][]int64{"scheduled": s.Scheduled, "sent": s.Sent,
		"done": s.Done, "failed": s.Failed, "p50Ns": s.P50Ns, "p99Ns": s.P99Ns, "maxNs": s.MaxNs} {
		if i := slices.IndexFunc(column, func(n int64) bool { return n < 0 }); i >= 0 {
			return fmt.Errorf("series.%s[%d] is %d: must be at least 0", name, i, column[i])
		}
		if len(column) != 0 && len(column) != len(s.Done) {
			return fmt.Errorf("series.%s has %d intervals, series.done %d", name, len(column),
				len(s.Done))
		}
	}
	for _, n := range s.Done {
		done += n
	}
	complete := int64(len(s.Done))*s.IntervalNs >= l.WindowNs
	if done > l.Done || complete && done != l.Done {
		return fmt.Errorf("done = sum of series.done: %d, but the sum is %d", l.Done, done)
	}
	return nil
}
