package verdict_test

var machineRows = []row{
	// 2.91 % of the time are 2.997 % of what it would have been without.
	{"steal", peak, valid, func(_ rec, l ld) { l.Host.StealShare = 0.0291 }},
	{"steal", peak, suspect, func(_ rec, l ld) { l.Host.StealShare = 0.0292 }},
	{"steal", peak, suspect, func(_ rec, l ld) { l.Host.StealShare = 0.1 }},
	{"steal", peak, invalid, func(_ rec, l ld) { l.Host.StealShare = 0.1001 }},
	// All of it may have been the service's, on one of two cores.
	{"steal", peak, valid, stolen(0.0145)},
	{"steal", peak, suspect, stolen(0.0147)},
	// Of 200 times of 4 ms without 80 p99 is one of them, and without 102 one of 2 ms.
	{"steal", half, valid, slowest(200, 4*ms, func(l ld) { l.Host.StealShare = 0.004 })},
	{"steal", half, suspect, slowest(200, 4*ms, func(l ld) { l.Host.StealShare = 0.0051 })},

	// 1 % of the probe's 10.1 s is 101 ms; without a probe's window, of the load's 10 s.
	{"throttled", peak, valid, throttled(10.1*sec, 101*ms)},
	{"throttled", peak, suspect, throttled(10.1*sec, 101.1*ms)},
	{"throttled", peak, valid, throttled(0, 100*ms)},
	{"throttled", peak, suspect, throttled(0, 100.1*ms)},

	{"neighbours", peak, valid, func(_ rec, l ld) { l.Host.OtherCPUShare = 0.0291 }},
	{"neighbours", peak, suspect, func(_ rec, l ld) { l.Host.OtherCPUShare = 0.0292 }},
	{"neighbours", peak, valid, func(_ rec, l ld) { // what the service used they had not
		l.Host.OtherCPUShare, l.Service.CPUShare = 0.5, 0.98
	}},

	{"memory", peak, valid, func(_ rec, l ld) { l.Host.PressureMemory = 0.0291 }},
	{"memory", peak, suspect, func(_ rec, l ld) { l.Host.PressureMemory = 0.0292 }},
}
