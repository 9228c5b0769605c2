package verdict

import (
	"prony.example/record"
	"prony.example/record/metric"
)

const (
	unaskedMax = 0.01 // of the expected calls
	unaskedFew = 5    // calls at the window's edges, beyond that share
	othersMax  = 0.01 // of the counted calls, by other clients
)

// unasked compares the calls that a database or an upstream counted with the responses. A service
// with fewer calls than its requests need takes responses from elsewhere, for example from a cache
// of complete responses. If there are several counters, unasked returns the worst finding.
func unasked(_ *record.Record, l *load) (worst *record.Finding) {
	for _, a := range l.BackendCalls {
		f := asksOf(a, l.Load)
		if f != nil && (worst == nil || worse(worst.Grade, f.Grade) != worst.Grade) {
			worst = f
		}
	}
	return worst
}

func asksOf(a record.BackendCalls, l *record.Load) *record.Finding {
	late := float64(a.DelayNs) / float64(max(a.IntervalNs, 1))
	switch {
	case a.Error != "":
		return remark(in("not read", with(record.Facts{Name: a.Counter, Messages: said(a.Error)},
			record.Finding{})))
	case l.Done == 0 || a.Expected == 0:
		return nil
	case late >= 1:
		return remark(in("late", record.Finding{Value: float64(a.DelayNs), Unit: record.UnitNs,
			Facts: record.Facts{Name: a.Counter, Subject: a.Unit}}))
	}
	least := a.Expected*(1-unaskedMax-late) - unaskedFew
	if a.IntervalNs < l.WindowNs { // the first reading was in the window: only the rest counts
		least *= float64(a.IntervalNs) / float64(l.WindowNs)
	}
	perItem, want := metric.AsksEach(a, l), a.Expected/float64(l.Done)
	f := record.Finding{Value: perItem, Limit: want, Unit: record.UnitCount, Side: record.Below,
		Facts: record.Facts{Name: a.Counter, Subject: a.Unit}}
	othersShare := a.IdlePerS * float64(a.IntervalNs) / 1e9
	switch {
	case a.Count < least:
		return invalid(in("cached", f))
	case a.Count-othersShare < least:
		f.Facts.Others = othersShare / max(a.Count, 1)
		return suspect(in("shared", f))
	case othersShare > othersMax*a.Count:
		return remark(in("others", record.Finding{Value: a.IdlePerS, Unit: record.UnitPerS,
			Facts: f.Facts}))
	}
	return nil
}
