package verdict

import (
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/record"
)

// soFar lists the rules, besides lag, for which the data of a load under way are sufficient.
var soFar = []string{"capacity", "delivered", "errors"}

// SoFar judges a load under way. l has the counts of its window so far; times are the response
// times and late the send delays in it, nil for a closed load. The verdict on the complete load may
// differ: it applies all rules, and its percentiles exclude stalls of the machine.
func SoFar(l *record.Load, times, late *hdrhistogram.Histogram) record.Verdict {
	v, r := record.Verdict{Grade: record.Valid}, &record.Record{}
	l.ResponseTime.Count = times.TotalCount()
	x := loadOf(l)
	x.times = func() ranks { return ranks{&l.ResponseTime, times} }
	for _, rule := range slices.Concat(boundRules, loadRules) {
		if slices.Contains(soFar, rule.Name) {
			apply(&v, r, x, rule)
		}
	}
	if late != nil && late.TotalCount() > 0 && Withheld(v, l.Name) == nil {
		l.OwnLag = record.Dist{Count: late.TotalCount(), P99Ns: late.ValueAtQuantile(99),
			MaxNs: late.Max()}
		x.lags = func() ranks { return ranks{&l.OwnLag, late} }
		apply(&v, r, x, Rule{Name: "lag", check: lagSoFar})
	}
	weigh(&v, x)
	for _, f := range v.Findings {
		v.Grade = worse(v.Grade, f.Grade)
	}
	return v
}

// lagSoFar estimates the effect of late sending, as lag does, without the delay that each response
// can have inherited: it takes a response to be as late as the request of the same rank.
func lagSoFar(_ *record.Record, l *load) *record.Finding {
	times, late := l.times(), l.lags()
	atMost := lateBy(times, late, 0)
	f := record.Finding{Value: float64(l.OwnLag.P99Ns), Unit: record.UnitNs,
		Facts: record.Facts{MaxNs: l.OwnLag.MaxNs}}
	return bounded(f, moves(l.Load, 0, func(q float64) float64 {
		return min(times.above(q, times.at(q)-late.at(q)), atMost(q))
	}))
}
