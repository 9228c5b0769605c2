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
	// least is the part of the resolution below which a bound is not worth a finding.
	least = 0.1
	// most is where a bound ends: ten times the number is as good as any.
	most = 10
	// confidence is that of the intervals of a trial's own percentiles.
	confidence = 0.95
)

// bounded is a finding of which is known how far it can move which numbers. Whether that counts is
// decided when all bounds are known (see weigh), and whether it is told where it is known what is
// asked for (see worthTelling). Without a move it is nothing.
func bounded(f record.Finding, moves []record.Bias) *record.Finding {
	if len(moves) == 0 {
		return nil
	}
	return orCause(f, moves)
}

// cause is a finding that moves no number by itself: what it does to one, another rule bounds.
func cause(f record.Finding) *record.Finding { return graded(record.Valid, f) }

// remark is of the service, and no doubt about what was measured of it.
func remark(f record.Finding) *record.Finding {
	f.Note = true
	return cause(f)
}

// orCause is worth telling though it may be too little to count, by a rule that keeps such.
func orCause(f record.Finding, moves []record.Bias) *record.Finding {
	f.PossibleBias = moves
	return cause(f)
}

// worthTelling drops a bound that is small beside what the suite asks for: the bound alone where
// small ones are kept, as a cause, else the finding.
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

// moves are bounds of what a load has for numbers: of the throughput of a closed one, and of the
// response times. An open load's throughput is what was offered.
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

// heldBy bounds what moves a capacity: what moves the times that the deciding step was held by, for
// near its capacity a response time grows at least as fast as the rate does, by ρ/(1−ρ) for the
// queues of docs/capacity.md, which is 1 at half load.
func heldBy(l *record.Load, time func(q float64) float64) (amount float64) {
	objectives, err := slo.Parse(l.Search.SLO)
	for _, o := range objectives {
		if o.Quantile > 0 {
			amount = max(amount, time(o.Quantile))
			continue
		}
		for _, p := range metric.Percentiles() { // a mean is moved as they are, at most
			amount = max(amount, time(p.Quantile))
		}
	}
	if err != nil {
		return most
	}
	return amount
}

// evenly moves throughput and times by the same share: in a closed loop one is the other's inverse.
func evenly(l *record.Load, amount float64) []record.Bias {
	return moves(l, amount, func(float64) float64 { return amount })
}

// taken bounds what a share of the service's time can have done that somebody else had. A closed
// load lost as much throughput. Of an open one's requests those were delayed that came then or
// while what they left was worked off, at most as long again; without them a percentile would be
// one of a lower rank. At least so many were delayed, as a share.
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

// leftOut are bounds of what the machine did to a load. Percentiles without stalls leave that out.
func leftOut(l *load, all []record.Bias) []record.Bias {
	if l.Stalls == nil || l.Stalls.Way == "" { // none were recorded
		return all
	}
	return stallFree(l.StallFree, all, func(*record.StallFree) float64 { return 0 })
}

// lateness bounds by how much a percentile without stalls is too high because requests left late.
func lateness(x *record.StallFree) float64 {
	if x.Ns <= 0 {
		return 0
	}
	return max(float64(x.Ns-x.PunctualNs)/float64(x.Ns), 0)
}

// stallFree adds the bounds of percentiles without stalls, where these are known, or may be if the
// stalls that are too short to be recorded are estimated from all trials.
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

// onService is a share of the machine's time as one of the service's cores, if all of it was there.
func onService(r *record.Record, share float64) float64 {
	if n := len(r.Limits.ServiceCores); n > 0 && r.Provenance.Cores > n {
		return share * float64(r.Provenance.Cores) / float64(n)
	}
	return share
}

// room is how much faster the service could be at most with the processor time that it left unused;
// false where nobody looked.
func room(l *record.Load) (float64, bool) {
	used := l.Service.CPUShare
	if used <= 0 {
		return 0, false
	}
	return max(1/used-1, 0), true
}

// weigh decides which bounds count: a number's findings are SUSPECT, largest first, until what the
// others can have moved it by is less than what the number is uncertain by itself.
func weigh(v *record.Verdict, l *load) {
	for _, number := range numbersOf(l.Load) {
		weighPhase(v, l.Name, number, tolerance(v, l, number), func(f record.Finding) bool {
			return f.Phase != record.PhaseSlices
		})
	}
}

// weighPhase weighs the findings of a phase of a load on one of its numbers against a limit.
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

// numbersOf are those of a load that a table shows.
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

// withheldIn tells whether a percentile is not to be quoted of this trial: too few answers, or one
// that was not answered. That is enough.
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

// tolerance is by how much a number of a trial is uncertain anyway, as a share: the resolution, or
// half the width of a percentile's own interval.
func tolerance(v *record.Verdict, l *load, number string) float64 {
	limit := v.Resolves()
	q, d := metric.Named(number, "").Quantile, &l.ResponseTime
	if q == 0 || d.HDR == "" {
		return limit
	}
	share, _ := l.Autocorrelation.Worth()
	lo, hi, ok := stats.QuantileRanks(d.Count, share, q, confidence)
	r := l.times()
	if v := r.at(q); ok && v > 0 && d.Count > 0 {
		n := float64(d.Count)
		return max(limit, (r.at(float64(hi)/n)-r.at(float64(lo)/n))/2/v)
	}
	return limit
}
