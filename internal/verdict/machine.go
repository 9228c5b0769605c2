package verdict

import "prony/internal/result"

const (
	stealMax     = 0.01 // of the processors' time; suspect above
	stealWrong   = 0.10 // invalid above
	throttledMax = 0.01 // of the window
	othersMax    = 0.05 // of the machine
	memoryMax    = 0.01 // of the window
)

func steal(_ *result.Record, l *result.Load) *result.Finding {
	observed := beside(l.Host.StealShare, stealMax) + " stolen by the hypervisor"
	hint := "the machine's own host is busy: run again, or elsewhere"
	switch s := l.Host.StealShare; {
	case s > stealWrong:
		return invalid(observed, percent(stealMax), hint)
	case s > stealMax:
		return suspect(observed, percent(stealMax), hint)
	}
	return nil
}

func throttled(_ *result.Record, l *result.Load) *result.Finding {
	// The probe's window lies around the load's and is a little longer.
	share := float64(l.Service.ThrottledNs) / float64(max(l.Service.WindowNs, l.WindowNs, 1))
	if share <= throttledMax {
		return nil
	}
	return suspect(beside(share, throttledMax)+" of the window", percent(throttledMax),
		"its quota cut the service off: give it whole cores")
}

func neighbours(_ *result.Record, l *result.Load) *result.Finding {
	if l.Host.OtherCPUShare <= othersMax {
		return nil
	}
	return suspect(beside(l.Host.OtherCPUShare, othersMax)+" of the machine", percent(othersMax),
		"end what else is running")
}

func memory(_ *result.Record, l *result.Load) *result.Finding {
	if l.Host.PressureMemory <= memoryMax {
		return nil
	}
	return suspect(beside(l.Host.PressureMemory, memoryMax)+" of the window", percent(memoryMax),
		"memory is short: raise limits.memory, or free some")
}
