package verdict

import "prony.example/record"

const (
	stealWrong   = 0.10 // of the processors' time; invalid above
	throttledMax = 0.01 // of the window
)

func steal(r *record.Record, l *load) *record.Finding {
	s := l.Host.StealShare
	if s > stealWrong {
		return invalid(share(s, stealWrong))
	}
	return bounded(share(s, stealWrong), leftOut(l, taken(l, onService(r, s), 0)))
}

func throttled(_ *record.Record, l *load) *record.Finding {
	// The probe's window lies around the load's and is a little longer.
	part := float64(l.Service.ThrottledNs) / float64(max(l.Service.WindowNs, l.WindowNs, 1))
	if part <= throttledMax {
		return nil
	}
	return suspect(share(part, throttledMax))
}

// neighbours counts at most the processor time that the service left unused, because other
// processes cannot have taken the rest. Other targets of the start have a rule of their own.
func neighbours(r *record.Record, l *load) *record.Finding {
	share := l.Host.OtherCPUShare
	if n := r.Provenance.Cores; n > 0 && share > 0 {
		share = max(share-idleCores(l)/float64(n), 0)
	}
	part := onService(r, share)
	if used := l.Service.CPUShare; used > 0 {
		part = min(part, max(1-used, 0))
	}
	return bounded(record.Finding{Value: share, Unit: record.UnitShare},
		leftOut(l, taken(l, part, 0)))
}

// idleTargets bounds the effect of other targets that used the service's cores in a window: targets
// that are never stopped, and stopped ones that ran for a moment in a long window.
func idleTargets(r *record.Record, l *load) *record.Finding {
	if len(l.IdleTargets) == 0 {
		return nil
	}
	used, first := idleCores(l), l.IdleTargets[0]
	f := record.Finding{Value: used, Unit: record.UnitShare, Facts: record.Facts{
		Name: first.Target, Subject: first.Freeze, Count: int64(len(l.IdleTargets)),
		Others: float64(first.CPUNs) / float64(max(l.WindowNs, 1))}}
	return bounded(f, leftOut(l, taken(l, used/coresOf(r), 0)))
}

// idleCores returns how many cores other targets of the start used in a window, on average.
func idleCores(l *load) float64 {
	ns := int64(0)
	for _, x := range l.IdleTargets {
		ns += x.CPUNs
	}
	return float64(ns) / float64(max(l.WindowNs, 1))
}

func memory(_ *record.Record, l *load) *record.Finding {
	return bounded(record.Finding{Value: l.Host.PressureMemory, Unit: record.UnitShare},
		taken(l, l.Host.PressureMemory, 0))
}
