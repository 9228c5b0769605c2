package verdict_test

var machineRows = []row{
	// 2.91 % of the time are 2.997 % of what it would have been without.
	{"steal", peak, noted, func(_ rec, l ld) { l.Host.StealShare = 0.0291 }},
	{"steal", peak, suspect, func(_ rec, l ld) { l.Host.StealShare = 0.0292 }},
	{"steal", peak, suspect, func(_ rec, l ld) { l.Host.StealShare = 0.1 }},
	{"steal", peak, invalid, func(_ rec, l ld) { l.Host.StealShare = 0.1001 }},
	// All of it may have been the service's, on one of two cores.
	{"steal", peak, noted, stolen(0.0145)},
	{"steal", peak, suspect, stolen(0.0147)},
	// Of 200 times of 4 ms without 80 p99 is one of them, and without 102 one of 2 ms.
	{"steal", half, valid, slowest(200, 4*ms, func(l ld) { l.Host.StealShare = 0.004 })},
	{"steal", half, suspect, slowest(200, 4*ms, func(l ld) { l.Host.StealShare = 0.0051 })},

	// 1 % of the probe's 10.1 s is 101 ms; without a probe's window, of the load's 10 s.
	{"throttled", peak, valid, throttled(10.1*sec, 101*ms)},
	{"throttled", peak, suspect, throttled(10.1*sec, 101.1*ms)},
	{"throttled", peak, valid, throttled(0, 100*ms)},
	{"throttled", peak, suspect, throttled(0, 100.1*ms)},

	// Each delayed one of 64 connections for at most 64 ms of 10 s: 291 make 2.91 %.
	{"datagrams", peak, noted, lost(291, 200)},
	{"datagrams", peak, suspect, lost(292, 200)},
	// Of 200 times of 4 ms p99 is one of 2 ms without 101 of them: of 10 streams 11 are enough.
	{"datagrams", half, valid, slowest(200, 4*ms, func(l ld) { lost(90, 200)(nil, l) })},
	{"datagrams", half, suspect, slowest(200, 4*ms, func(l ld) { lost(102, 200)(nil, l) })},
	{"datagrams", half, suspect, slowest(200, 4*ms, func(l ld) {
		lost(11, 200)(nil, l)
		l.Streams = 10
	})},
	// Responses of 30 datagrams, 300,000 in all: with 500 lost ones 1.22/√p is 30.0.
	{"datagrams", half, valid, lost(500, 36000)},
	{"datagrams", half, suspect, lost(501, 36000)},

	{"neighbors", peak, valid, func(_ rec, l ld) { l.Host.OtherCPUShare = 0.001 }},
	{"neighbors", peak, noted, func(_ rec, l ld) { l.Host.OtherCPUShare = 0.0291 }},
	{"neighbors", peak, suspect, func(_ rec, l ld) { l.Host.OtherCPUShare = 0.0292 }},
	{"neighbors", peak, noted, func(_ rec, l ld) { // what the service used they had not
		l.Host.OtherCPUShare, l.Service.CPUShare = 0.5, 0.98
	}},

	{"memory", peak, valid, func(_ rec, l ld) { l.Host.PressureMemory = 0.001 }},
	{"memory", peak, noted, func(_ rec, l ld) { l.Host.PressureMemory = 0.0291 }},
	{"memory", peak, suspect, func(_ rec, l ld) { l.Host.PressureMemory = 0.0292 }},
}

// lost sets the number of HTTP/3 datagrams that nobody read in time, with 10,000 responses of this
// many bytes.
func lost(datagrams, bytes int64) func(rec, ld) {
	return func(_ rec, l ld) {
		l.Protocol, l.Generator.DatagramsLost, l.BytesIn = "HTTP/3", datagrams, 10000*bytes
	}
}
