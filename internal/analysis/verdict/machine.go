package verdict

import "prony.example/record"

const (
	stealWrong   = 0.10 // of the processors' time; invalid above
	throttledMax = 0.01 // of the window
)

func steal(r *record.Record, l *load) *record.Finding {
	s := l.Host.StealShare
	observed := beside(s, stealWrong) + " stolen by the hypervisor"
	hint := "the machine's own host is busy: run again, or elsewhere"
	if s > stealWrong {
		return invalid(observed, percent(stealWrong), hint)
	}
	return bounded(observed, hint, taken(l, onService(r, s), 0))
}

func throttled(_ *record.Record, l *load) *record.Finding {
	// The probe's window lies around the load's and is a little longer.
	share := float64(l.Service.ThrottledNs) / float64(max(l.Service.WindowNs, l.WindowNs, 1))
	if share <= throttledMax {
		return nil
	}
	return suspect(beside(share, throttledMax)+" of the window", percent(throttledMax),
		"its quota cut the service off: give it whole cores")
}

// neighbours cannot have taken from the service what it used itself.
func neighbours(r *record.Record, l *load) *record.Finding {
	share := onService(r, l.Host.OtherCPUShare)
	if used := l.Service.CPUShare; used > 0 {
		share = min(share, max(1-used, 0))
	}
	return bounded(percent(l.Host.OtherCPUShare)+" of the machine used by others",
		"end what else is running", taken(l, share, 0))
}

func memory(_ *record.Record, l *load) *record.Finding {
	return bounded(percent(l.Host.PressureMemory)+" of the window stalled on memory",
		"memory is short: raise limits.memory, or free some", taken(l, l.Host.PressureMemory, 0))
}
