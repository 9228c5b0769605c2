package verdict_test

import "prony.example/record"

var askRows = []row{
	// 10,000 answers want one ask each: 9,895 are 1 % and five fewer. Of a counter that is a second
	// late, a tenth of the 10 s may be missing, too: 8,895.
	{"unasked", peak, valid, asks(record.Asks{Wanted: 10_000, Count: 10_000})},
	{"unasked", peak, valid, asks(record.Asks{Wanted: 10_000, Count: 9895})},
	{"unasked", peak, invalid, asks(record.Asks{Wanted: 10_000, Count: 9894})},
	{"unasked", half, invalid, asks(record.Asks{Wanted: 10_000})},
	{"unasked", peak, valid, asks(record.Asks{Wanted: 10_000, Count: 20_000})},
	{"unasked", peak, valid, asks(record.Asks{Count: 0})}, // nothing is wanted of it
	{"unasked", peak, valid, asks(record.Asks{Wanted: 10_000, Count: 8895, LateNs: sec})},
	{"unasked", peak, invalid, asks(record.Asks{Wanted: 10_000, Count: 8894, LateNs: sec})},
	{"unasked", peak, valid, asks(record.Asks{Wanted: 10_000, LateNs: 10 * sec})}, // too short
	{"unasked", peak, valid, asks(record.Asks{Wanted: 10_000, Error: "connection refused"})},
	{"unasked", peak, invalid, asks(record.Asks{Wanted: 10_000, Error: "connection refused"},
		record.Asks{Wanted: 10_000})}, // the worst of several
	// A counter that was first read when 2 of the 10 s were over has 8,000 of them at most: four
	// fifths of 9,895 are 7,916.
	{"unasked", peak, valid, readLate(record.Asks{Wanted: 10_000, Count: 7916})},
	{"unasked", peak, invalid, readLate(record.Asks{Wanted: 10_000, Count: 7915})},
	// 11 a second are 110 in 10 s, 1.1 %; beside 9,999 they may hide that 9,889 are too few.
	{"unasked", peak, valid, asks(record.Asks{Wanted: 10_000, Count: 10_010, RestPerS: 11})},
	{"unasked", peak, suspect, asks(record.Asks{Wanted: 10_000, Count: 9999, RestPerS: 11})},
	{"unasked", peak, valid, asks(record.Asks{Wanted: 10_000, Count: 9999, RestPerS: 9})},
}

// readLate are of counters that answered when a fifth of the window was over.
func readLate(of ...record.Asks) func(rec, ld) {
	return func(r rec, l ld) {
		asks(of...)(r, l)
		for i := range l.Asks {
			l.Asks[i].BetweenNs = l.WindowNs / 5 * 4
		}
	}
}

// asks are of counters that were read at both edges of the window.
func asks(of ...record.Asks) func(rec, ld) {
	return func(_ rec, l ld) {
		for i := range of {
			of[i].Of, of[i].What, of[i].BetweenNs = "database", "statements", l.WindowNs
		}
		l.Asks = of
	}
}
