package verdict

import (
	"cmp"
	"math"
	"slices"

	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/record/slo"
	"prony.example/stats"
)

const (
	// least is the share of the resolution below which a bound is not reported.
	least = 0.1
	// most caps a bound: beyond ten times the number, a larger bound changes nothing.
	most = 10
	// confidence is the confidence level of the intervals of a trial's own percentiles.
	confidence = 0.95
)

// bounded returns a finding with the bounds of its effect on numbers, or nil without a bound. weigh
// decides whether they count when all bounds are known, and worthTelling whether they are reported
// when the resolution is known.
func bounded(f record.Finding, moves []record.Bias) *record.Finding {
	if len(moves) == 0 {
		return nil
	}
	return orCause(f, moves)
}

// cause returns a finding that moves no number by itself, because another rule bounds its effect.
func cause(f record.Finding) *record.Finding { return graded(record.Valid, f) }

// remark returns a finding about the service that leaves its measured numbers valid.
func remark(f record.Finding) *record.Finding {
	f.Note = true
	return cause(f)
}

// orCause returns a finding that its rule reports even if the effect may be too small to count.
func orCause(f record.Finding, moves []record.Bias) *record.Finding {
	f.PossibleBias = moves
	return cause(f)
}

// worthTelling drops a bound that is small compared with the resolution of the suite. If small is
// true, it drops only the bound and keeps the finding as a cause.
func worthTelling(f *record.Finding, small bool, resolves float64) *record.Finding {
	switch {
	case f == nil || f.PossibleBias == nil:
		return f
	case slices.ContainsFunc(f.PossibleBias,
		func(m record.Bias) bool { return m.Share >= least*resolves }):
		return f
	case !small:
		return nil
	}
	f.PossibleBias = nil
	return f
}

// moves returns bounds for the numbers of a load: the throughput of a closed load, the capacity of
// a search, and the response times. The throughput of an open load is its offered rate.
func moves(l *record.Load, throughput float64, time func(q float64) float64) []record.Bias {
	var out []record.Bias
	add := func(number string, amount float64) {
		if amount > 0 {
			out = append(
				out,
				record.Bias{Metric: number, Share: math.Ceil(1e4*min(amount, most)) / 1e4},
			)
		}
	}
	if l.Model == record.Closed {
		add(metric.Throughput, throughput)
	}
	if l.Search != nil {
		add(metric.Capacity, max(throughput, heldBy(l, time)))
	}
	mean := 0.0
	for _, p := range metric.Percentiles() {
		amount := time(p.Quantile)
		mean = max(mean, amount)
		add(p.Name, amount)
	}
	add("mean", mean)
	return out
}

// heldBy bounds the effect on a capacity by that on the times of the search's objectives: near its
// capacity a response time grows at least as fast as the rate does, by ρ/(1−ρ) for the queues of
// docs/capacity.md, which is 1 at half load.
func heldBy(l *record.Load, time func(q float64) float64) (amount float64) {
	objectives, err := slo.Parse(l.Search.SLO)
	for _, o := range objectives {
		if o.Quantile > 0 {
			amount = max(amount, time(o.Quantile))
			continue
		}
		for _, p := range metric.Percentiles() { // a mean moves at most as much as the percentiles
			amount = max(amount, time(p.Quantile))
		}
	}
	if err != nil {
		return most
	}
	return amount
}

// evenly bounds throughput and times by the same share, because in a closed loop each is the
// other's inverse.
func evenly(l *record.Load, amount float64) []record.Bias {
	return moves(l, amount, func(float64) float64 { return amount })
}

// taken bounds the effect of a share of the service's time that something else used. A closed load
// lost as much throughput. An open load had delays for requests that came in this time or while the
// service worked off the backlog, which takes at most as long again; without them a percentile
// would have a lower rank. delayed is the minimum share of requests that were delayed.
func taken(l *load, share, delayed float64) []record.Bias {
	share = min(share, 0.9)
	lost := share / (1 - share)
	times := l.times()
	return moves(l.Load, lost, func(q float64) float64 {
		amount := times.below(q, max(2*share, delayed))
		if l.Model == record.Closed {
			amount = max(amount, lost)
		}
		return amount
	})
}

// leftOut adds bounds for percentiles and throughput without stalls: these exclude the effect of
// the machine, so that their bound is 0.
func leftOut(l *load, all []record.Bias) []record.Bias {
	if l.Stalls == nil || l.Stalls.Way == "" { // no stalls were recorded
		return all
	}
	i := slices.IndexFunc(all, func(b record.Bias) bool { return b.Metric == metric.Throughput })
	if x := l.WithoutStalls; i >= 0 && x != nil && x.Unknown == "" {
		all[i].StallFree = new(float64)
	}
	return stallFree(l.StallFree, all, func(*record.StallFree) float64 { return 0 })
}

// lateness bounds the share by which a percentile without stalls is too high because requests left
// late.
func lateness(x *record.StallFree) float64 {
	if x.Ns <= 0 {
		return 0
	}
	return max(float64(x.Ns-x.PunctualNs)/float64(x.Ns), 0)
}

// stallFree adds the bounds of percentiles without stalls if these are known, or can be once all
// trials give an estimate of the stalls that are too short to be recorded.
func stallFree(known []record.StallFree, all []record.Bias, bound func(*record.StallFree) float64,
) []record.Bias {
	for _, p := range metric.Percentiles() {
		x := record.StallFreeOf(known, p.Quantile, stats.UnrecordedStalls)
		i := slices.IndexFunc(all, func(b record.Bias) bool { return b.Metric == p.Name })
		if x != nil && i >= 0 {
			share := min(bound(x), most)
			all[i].StallFree = &share
		}
	}
	return all
}

// onService converts a share of the machine's time to a share of the service's cores, assuming that
// all of it fell on these cores.
func onService(r *record.Record, share float64) float64 {
	if n := len(r.Limits.ServiceCores); n > 0 && r.Provenance.Cores > n {
		return share * float64(r.Provenance.Cores) / float64(n)
	}
	return share
}

// room returns the largest share by which the service could be faster with the processor time that
// it left unused, and false if its processor time was not measured.
func room(l *record.Load) (float64, bool) {
	used := l.Service.CPUShare
	if used <= 0 {
		return 0, false
	}
	return max(1/used-1, 0), true
}

// weigh decides which bounds count. It makes a number's findings SUSPECT, largest first, until the
// sum of the remaining bounds is at most the number's own uncertainty.
func weigh(v *record.Verdict, l *load) {
	for _, number := range numbersOf(l.Load) {
		limit := tolerance(v, l, l.times(), number)
		weighPhase(v, l.Name, number, limit, func(f record.Finding) bool {
			return f.Phase != record.PhaseSlices
		})
	}
}

// weighPhase compares the sum of bounds on one number of a load with a limit, for findings that
// counts selects.
func weighPhase(v *record.Verdict, load, number string, limit float64,
	counts func(record.Finding) bool,
) {
	type part struct {
		finding int
		share   float64
	}
	var parts []part
	sum := 0.0
	for i, f := range v.Findings {
		if f.Load != load || !counts(f) {
			continue
		}
		for _, m := range f.PossibleBias {
			if m.Metric == number {
				parts, sum = append(parts, part{i, m.Bound(true)}), sum+m.Bound(true)
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.share, a.share) })
	for _, p := range parts {
		if sum <= limit {
			break
		}
		sum -= p.share
		f := &v.Findings[p.finding]
		f.Grade = worse(f.Grade, record.Suspect)
	}
}

// numbersOf returns the numbers of a load that tables show.
func numbersOf(l *record.Load) []string {
	names := []string{"p50", "p99", "p99.9"}
	switch {
	case l.Search != nil:
		return []string{metric.Capacity}
	case l.Model == record.Closed:
		names = []string{metric.Throughput, "p50", "p99"}
	}
	return slices.DeleteFunc(names, func(name string) bool { return withheldIn(l, name) })
}

// withheldIn reports whether this trial is too small for a percentile, because of too few responses
// or because of requests without a response in the percentile's tail.
func withheldIn(l *record.Load, name string) bool {
	q := metric.Named(name, "").Quantile
	if q == 0 {
		return false
	}
	if l.Censored > 0 && float64(l.Censored) >= (1-q)*float64(l.ResponseTime.Count+l.Censored) {
		return true
	}
	share, _ := l.Autocorrelation.Worth()
	_, _, ok := stats.QuantileRanks(l.ResponseTime.Count, share, q, confidence)
	return !ok
}

// tolerance returns the uncertainty of a trial's number as a share: the resolution, or half the
// width of a percentile's own interval among these times if this is larger.
func tolerance(v *record.Verdict, l *load, r ranks, number string) float64 {
	limit := v.Resolves()
	q, d := metric.Named(number, "").Quantile, r.d
	if q == 0 || r.h == nil {
		return limit
	}
	share, _ := l.Autocorrelation.Worth()
	lo, hi, ok := stats.QuantileRanks(d.Count, share, q, confidence)
	if v := r.at(q); ok && v > 0 && d.Count > 0 {
		n := float64(d.Count)
		return max(limit, (r.at(float64(hi)/n)-r.at(float64(lo)/n))/2/v)
	}
	return limit
}
