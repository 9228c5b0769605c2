package verdict_test

import "slices"

var driftRows = []row{
	// Half the difference is 3 % of the mean: 5,309 after 5,000. Three deviations of it are
	// permitted: 3·√(5,000 + 4,705) = 295.5.
	{"drift", peak, noted, halves(5000, 5309)},
	{"drift", peak, suspect, halves(5000, 5310)},
	{"drift", peak, valid, halves(5000, 4705)},
	{"drift", peak, suspect, halves(5000, 4704)},
	// A million, with negligible randomness.
	{"drift", peak, noted, halves(1e6, 1061855)},
	{"drift", peak, suspect, halves(1e6, 1061860)},
	// None at first: 9 = 3·√9 may be chance, 10 > 3·√10 = 9.5 may not.
	{"drift", peak, valid, halves(0, 0)},
	{"drift", peak, valid, halves(0, 9)},
	{"drift", peak, suspect, halves(0, 10)},
	{"drift", peak, suspect, halves(5000, 0)},
	// The schedule makes the rate of the open model.
	{"drift", half, valid, halves(5000, 2500)},
	// The number of users changes as requested.
	{"drift", peak, valid, users("ramp 1..64 in 10s")},
	{"drift", peak, valid, users("1 for 5s, 64")},
	{"drift", peak, suspect, users("64")},
	{"drift", peak, suspect, users("64 for 10s")},
	// With less than four intervals per half there is no result.
	{"drift", peak, valid, steps(100, 100, 100, 0, 900, 900, 900)},
	{"drift", peak, suspect, steps(100, 100, 100, 100, 900, 900, 900, 900)},
	// The middle one of an odd number belongs to no half.
	{"drift", peak, valid, steps(100, 100, 100, 100, 9000, 100, 100, 100, 100)},
	// 10.526 intervals in the window: the last is short, so its 52,600 are no slowing down.
	{"drift", peak, valid, func(_ rec, l ld) {
		l.Series.Done = append(slices.Repeat([]int64{100000}, 10), 52600)
		l.Series.IntervalNs = 950 * ms
	}},
}

// users make twice as many requests in the second half.
func users(number string) func(rec, ld) {
	return func(r rec, l ld) {
		l.Users = number
		halves(5000, 10000)(r, l)
	}
}

// halves puts the counts into the first and the last of 40 intervals.
func halves(first, second int64) func(rec, ld) {
	return func(_ rec, l ld) {
		l.Series.Done = make([]int64, 40)
		l.Series.Done[0], l.Series.Done[39] = first, second
	}
}

func steps(done ...int64) func(rec, ld) {
	return func(_ rec, l ld) { l.Series.Done = done }
}

func stolen(share float64) func(rec, ld) {
	return func(r rec, l ld) { r.Provenance.Cores, l.Host.StealShare = 2, share }
}

func throttled(windowNs, ns int64) func(rec, ld) {
	return func(_ rec, l ld) { l.Service.WindowNs, l.Service.ThrottledNs = windowNs, ns }
}
