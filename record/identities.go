package record

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// A record proves a result only if its numbers agree with each other. Read leaves out records that
// violate one of the identities below, which hold for records of all versions. Those that need
// Prony's own counting hold only for its own loads; other tools define their numbers themselves.

// rounded bounds the relative difference of numbers that were rounded or quantized by a histogram
// of three digits.
const rounded = 0.002

// Check returns an error that names the first identity that a record violates; nil if it proves
// its results. It does not check loads of failed trials, because they ended anywhere.
func (r *Record) Check() error {
	switch {
	case r.Block < 0 || r.Order < 0:
		return fmt.Errorf("block %d, order %d: both must be at least 0", r.Block, r.Order)
	case r.Outcome != Measured && r.Outcome != Failed:
		return fmt.Errorf("outcome %q is neither %s nor %s", r.Outcome, Measured, Failed)
	case r.Outcome == Failed:
		return nil
	case !slices.Contains([]string{Valid, Suspect, Invalid}, r.Verdict.Grade):
		return fmt.Errorf("verdict.grade %q is none of %s, %s and %s", r.Verdict.Grade, Valid,
			Suspect, Invalid)
	case len(r.Loads) == 0:
		return errors.New("loads: it has none, and its outcome is measured")
	}
	for i := range r.Loads {
		if err := r.Loads[i].check(); err != nil {
			return fmt.Errorf("load %s: %w", r.Loads[i].Name, err)
		}
	}
	return nil
}

// named is a number with its name in the record.
type named struct {
	name   string
	number float64
}

// check returns the first identity that a load violates.
func (l *Load) check() error {
	failed := l.Errors.Requests()
	for _, x := range []named{
		{"scheduled", float64(l.Scheduled)}, {"sent", float64(l.Sent)},
		{"done", float64(l.Done)}, {"answered", float64(l.Answered)},
		{"censored", float64(l.Censored)}, {"bytesIn", float64(l.BytesIn)},
		{"bytesOut", float64(l.BytesOut)}, {"throughputPerS", l.ThroughputPerS},
		{"ratePerS", l.RatePerS}, {"reconnects", float64(l.Reconnects)},
		{"waited", float64(l.Waited)}, {"retried", float64(l.Retried)},
		{"errors.connect", float64(l.Errors.Connect)}, {"errors.write", float64(l.Errors.Write)},
		{"errors.read", float64(l.Errors.Read)}, {"errors.timeout", float64(l.Errors.Timeout)},
		{"errors.parse", float64(l.Errors.Parse)}, {"errors.status", float64(l.Errors.Status)},
		{"errors.body", float64(l.Errors.Body)}, {"errors.closed", float64(l.Errors.Closed)},
		{"errors.unsolicited", float64(l.Errors.Unsolicited)},
	} {
		if x.number < 0 {
			return fmt.Errorf("%s is %g: must be at least 0", x.name, x.number)
		}
	}
	for name, d := range map[string]*Dist{"responseTime": &l.ResponseTime,
		"serviceTime": &l.ServiceTime, "firstByte": &l.FirstByte, "lag": &l.Lag,
		"ownLag": &l.OwnLag, "errorTime": &l.ErrorTime, "connectTime": &l.ConnectTime,
		"flowTime": &l.FlowTime} {
		if err := d.check(); err != nil {
			return fmt.Errorf("%s.%w", name, err)
		}
	}
	if l.WindowNs <= 0 {
		return fmt.Errorf("windowNs is %d: must be greater than 0", l.WindowNs)
	}
	if l.Driver != "" {
		return l.Series.check(l)
	}
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
	}
	return l.Series.check(l)
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
