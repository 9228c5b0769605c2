package verdict_test

import "prony.example/record"

var askRows = []row{
	// 10,000 answers want one ask each: 9,895 are 1 % and five fewer. Of a counter that is a second
	// late, a tenth of the 10 s may be missing, too: 8,895.
	{"backend calls", peak, valid, asks(record.BackendCalls{Expected: 10_000, Count: 10_000})},
	{"backend calls", peak, valid, asks(record.BackendCalls{Expected: 10_000, Count: 9895})},
	{"backend calls", peak, invalid, asks(record.BackendCalls{Expected: 10_000, Count: 9894})},
	{"backend calls", half, invalid, asks(record.BackendCalls{Expected: 10_000})},
	{"backend calls", peak, valid, asks(record.BackendCalls{Expected: 10_000, Count: 20_000})},
	{"backend calls", peak, valid, asks(record.BackendCalls{Count: 0})}, // nothing is wanted of it
	{"backend calls", peak, valid, asks(record.BackendCalls{Expected: 10_000, Count: 8895,
		DelayNs: sec})},
	{"backend calls", peak, invalid, asks(record.BackendCalls{Expected: 10_000, Count: 8894,
		DelayNs: sec})},
	// too short
	{"backend calls", peak, noted, asks(record.BackendCalls{Expected: 10_000, DelayNs: 10 * sec})},
	{"backend calls", peak, noted, asks(record.BackendCalls{Expected: 10_000,
		Error: "connection refused"})},
	{"backend calls", peak, invalid, asks(record.BackendCalls{Expected: 10_000,
		Error: "connection refused"},
		record.BackendCalls{Expected: 10_000})}, // the worst of several
	// A counter that was first read when 2 of the 10 s were over has 8,000 of them at most: four
	// fifths of 9,895 are 7,916.
	{"backend calls", peak, valid, readLate(record.BackendCalls{Expected: 10_000, Count: 7916})},
	{"backend calls", peak, invalid, readLate(record.BackendCalls{Expected: 10_000, Count: 7915})},
	// 11 a second are 110 in 10 s, 1.1 %; beside 9,999 they may hide that 9,889 are too few.
	{"backend calls", peak, noted, asks(record.BackendCalls{Expected: 10_000, Count: 10_010,
		IdlePerS: 11})},
	{"backend calls", peak, suspect, asks(record.BackendCalls{Expected: 10_000, Count: 9999,
		IdlePerS: 11})},
	{"backend calls", peak, valid, asks(record.BackendCalls{Expected: 10_000, Count: 9999,
		IdlePerS: 9})},
	{"backend calls", peak, valid, asks(record.BackendCalls{Expected: 10_000, Count: 10_000,
		IdlePerS: 10})}, // 1 %
}

// readLate has counters that responded when a fifth of the window was over.
func readLate(of ...record.BackendCalls) func(rec, ld) {
	return func(r rec, l ld) {
		asks(of...)(r, l)
		for i := range l.BackendCalls {
			l.BackendCalls[i].IntervalNs = l.WindowNs / 5 * 4
		}
	}
}

// asks has counters that were read at both edges of the window.
func asks(of ...record.BackendCalls) func(rec, ld) {
	return func(_ rec, l ld) {
		for i := range of {
			of[i].Counter, of[i].Unit, of[i].IntervalNs = "database", "statements", l.WindowNs
		}
		l.BackendCalls = of
	}
}
