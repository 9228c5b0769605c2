package verdict_test

import "prony.example/record"

// renewed closes n of a hundred connections to ten cores, each with these costs.
func renewed(n int64, tlsNs float64, connectNs int64) func(rec, ld) {
	return func(r rec, l ld) {
		l.Reconnects, l.TLSTime.MeanNs, r.Limits.CPUs = n, tlsNs, 10
		l.Connections, l.ConnectTime = 100, record.Dist{}
		if connectNs > 0 {
			l.ConnectTime = flat(n, connectNs)
		}
	}
}

// onHalfCore limits the service to half a core.
func onHalfCore(change func(rec, ld)) func(rec, ld) {
	return func(r rec, l ld) {
		change(r, l)
		r.Limits.CPUs = 0.5
	}
}

// costing sets the service's processor time per request.
func costing(ns float64, change func(rec, ld)) func(rec, ld) {
	return func(r rec, l ld) {
		l.Service.CPUPerRequestNs = ns
		change(r, l)
	}
}

var connectionRows = []row{
	{"connections", peak, valid, func(_ rec, l ld) { l.Reconnects = 100 }},
	{"connections", peak, valid, func(_ rec, l ld) { l.Reconnects = 101 }},
	// 3 % of throughput are 2.913 % of the time: of 10 s on 10 cores 28.838 ms each, 0.1 ms of TCP.
	{"connections", peak, noted, renewed(101, 28.72e6, 0)},
	{"connections", peak, suspect, renewed(101, 28.75e6, 0)},
	{"connections", peak, noted, costing(28.8e6, renewed(101, 0, 0))},
	{"connections", peak, suspect, costing(28.9e6, renewed(101, 0, 0))},
	// Half a core takes twice as long for them: 101 of 1.44 ms are 2.91 % of 10 s.
	{"connections", peak, noted, onHalfCore(costing(1.44e6, renewed(101, 0, 0)))},
	{"connections", peak, suspect, onHalfCore(costing(1.445e6, renewed(101, 0, 0)))},
	// 9,890 are 0.99 % of the service's time, and 1.92 or 1.93 % of that of 100 connections.
	{"connections", peak, noted, renewed(9890, 0, 1940e3)},
	{"connections", peak, suspect, renewed(9890, 0, 1950e3)},
	// A service that closes practically all connections keeps none.
	{"connections", peak, suspect, renewed(9899, 0, 1950e3)},
	{"connections", peak, noted, renewed(9900, 0, 1950e3)},
	// This is the service's own behavior, and its numbers are valid: TestRemarks.
	{"retried", peak, valid, func(_ rec, l ld) { l.Retried = 10 }},
	{"retried", peak, noted, func(_ rec, l ld) { l.Retried = 11 }},
	{"early", peak, valid, func(_ rec, l ld) { l.Early = 10 }},
	{"early", peak, noted, func(_ rec, l ld) { l.Early = 11 }},
	{"delayed ack", peak, valid, func(_ rec, l ld) { pieces(38.9*ms, 0)(l) }},
	{"delayed ack", peak, noted, func(_ rec, l ld) { pieces(39*ms, 10*ms)(l) }},
	{"delayed ack", peak, noted, func(_ rec, l ld) { pieces(51*ms, 0)(l) }},
	{"delayed ack", peak, valid, func(_ rec, l ld) { pieces(51.1*ms, 0)(l) }},
	{"delayed ack", peak, valid, func(_ rec, l ld) { pieces(44*ms, 10.1*ms)(l) }},
	{"unused", peak, valid, func(_ rec, l ld) { l.Service.CPUShare = 0.5 }},
	{"unused", peak, noted, func(_ rec, l ld) { l.Service.CPUShare = 0.49 }},
	// Of 150 times of 4 ms without 101 p99 is one of 2 ms, if all of them were those.
	{"connections", half, valid, slowest(250, 4*ms, func(l ld) { l.Reconnects = 101 })},
	{"connections", half, suspect, slowest(150, 4*ms, func(l ld) { l.Reconnects = 101 })},
}
