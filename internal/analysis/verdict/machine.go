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
// processes cannot have taken the rest.
func neighbours(r *record.Record, l *load) *record.Finding {
	part := onService(r, l.Host.OtherCPUShare)
	if used := l.Service.CPUShare; used > 0 {
		part = min(part, max(1-used, 0))
	}
	return bounded(record.Finding{Value: l.Host.OtherCPUShare, Unit: record.UnitShare},
		leftOut(l, taken(l, part, 0)))
}

func memory(_ *record.Record, l *load) *record.Finding {
	return bounded(record.Finding{Value: l.Host.PressureMemory, Unit: record.UnitShare},
		taken(l, l.Host.PressureMemory, 0))
}
