package verdict_test

import (
	"math"
	"slices"

	"prony/internal/result"
)

// In the rows, r is the record and l its load, the open one (half) or the closed one (peak). Both
// have 10,000 requests in 10 s, of 2 ms and 64 ms, so that 2 and 64 of them are under way.
var rows = slices.Concat(trialRows, openRows, generatorRows, littleRows, orderRows, answerRows,
	driftRows, machineRows)

type (
	rec = *result.Record
	ld  = *result.Load
)

var trialRows = []row{
	{"failed", trial, valid, func(r rec, _ ld) { r.Outcome = "measured" }},
	{"failed", trial, invalid, func(r rec, _ ld) { r.Outcome = "failed" }},

	{"warm-up", trial, valid, func(r rec, _ ld) { r.Warmup.SteadyAtNs = 14 * sec }},
	{"warm-up", trial, suspect, func(r rec, _ ld) { r.Warmup.Steady = false }},

	{"limits", trial, valid, func(r rec, _ ld) { r.Limits.InForce = []string{"affinity 1"} }},
	{"limits", trial, suspect, func(r rec, _ ld) { r.Limits.Missing = []string{"0.5 CPUs"} }},

	{"cores", trial, valid, cores([]int{2, 3}, []int{0, 1})},
	{"cores", trial, suspect, cores([]int{1, 2}, []int{0, 1})}, // both on 1
	{"cores", trial, suspect, cores([]int{0}, []int{0})},
	{"cores", trial, valid, cores(nil, []int{0})}, // not known
	{"cores", trial, valid, cores([]int{0}, nil)},
}

func cores(service, generator []int) func(rec, ld) {
	return func(r rec, _ ld) {
		r.Limits.ServiceCores, r.Limits.LoadCores = service, generator
	}
}

var openRows = []row{
	// 1 % of 10,000 may be unsent: 100.
	{"delivered", half, valid, func(_ rec, l ld) { l.Sent = 9900 }},
	{"delivered", half, invalid, func(_ rec, l ld) { l.Sent = 9899 }},
	// Of 100 five may, whatever their share, since some wait when any window closes.
	{"delivered", half, valid, func(_ rec, l ld) { l.Scheduled, l.Sent = 100, 95 }},
	{"delivered", half, invalid, func(_ rec, l ld) { l.Scheduled, l.Sent = 100, 94 }},
	{"delivered", half, valid, func(_ rec, l ld) { l.Scheduled, l.Sent = 0, 0 }},
	{"delivered", peak, valid, func(_ rec, l ld) { l.Sent = 0 }},

	// 1 % of 1,000/s: 10/s.
	{"capacity", half, valid, backlog(10, 1000, 2)},
	{"capacity", half, invalid, backlog(10.01, 1000, 2)},
	// At 40/s 1 % is 0.4/s, and randomness alone makes (5 + 3·√2)/10 s = 0.924/s.
	{"capacity", half, valid, backlog(0.92, 40, 2)},
	{"capacity", half, invalid, backlog(0.93, 40, 2)},
	// With 100 under way it makes (5 + 3·√100)/10 s = 3.5/s.
	{"capacity", half, valid, backlog(3.5, 40, 100)},
	{"capacity", half, invalid, backlog(3.51, 40, 100)},
	{"capacity", half, valid, backlog(-500, 1000, 2)}, // works off an old one
	{"capacity", peak, valid, backlog(500, 1000, 64)}, // has no schedule

	// The response time's p99 is 2 ms, of which 5 % are 100 µs.
	{"lag", half, valid, func(_ rec, l ld) { l.OwnLag = flat(10000, 0.1*ms) }},
	{"lag", half, suspect, func(_ rec, l ld) { l.OwnLag = flat(10000, 0.1*ms+1) }},
	// Of 0.9 ms it would be 45 µs, but 50 µs are granted.
	{"lag", half, valid, func(_ rec, l ld) {
		l.ResponseTime, l.OwnLag = flat(10000, 0.9*ms), flat(10000, 0.05*ms)
	}},
	{"lag", half, suspect, func(_ rec, l ld) {
		l.ResponseTime, l.OwnLag = flat(10000, 0.9*ms), flat(10000, 0.05*ms+1)
	}},
	// The wait for a free connection is the service's doing.
	{"lag", half, valid, func(_ rec, l ld) { l.Lag = flat(10000, sec) }},
	{"lag", peak, valid, func(_ rec, l ld) { l.OwnLag = flat(10000, sec) }},
}

// backlog sets its growth, the rate, and how many are under way, with the service time that goes
// with so many of 1,000 requests a second.
func backlog(growth, rate, inFlight float64) func(rec, ld) {
	return func(_ rec, l ld) {
		l.BacklogPerS, l.RatePerS, l.InFlightMean = growth, rate, inFlight
		l.ServiceTime = flat(10000, int64(inFlight*ms))
	}
}

var generatorRows = []row{
	{"generator", peak, valid, func(_ rec, l ld) { l.Generator.CPUShare = 0.8 }},
	{"generator", peak, suspect, func(_ rec, l ld) { l.Generator.CPUShare = 0.8001 }},

	// 5 % of 10 s on one thread: 500 ms; on two threads 1 s between them.
	{"run delay", half, valid, delay(1, 500*ms)},
	{"run delay", half, suspect, delay(1, 500.1*ms)},
	{"run delay", peak, valid, delay(2, 1000*ms)},
	{"run delay", peak, suspect, delay(2, 1000.1*ms)},
	{"run delay", peak, valid, delay(0, 1000*ms)}, // another generator's

	// The throughput is 1,000/s: 69.9 % of 1,430 and 70.03 % of 1,428.
	{"ceiling", peak, valid, func(_ rec, l ld) { l.CeilingPerS = 1430 }},
	{"ceiling", peak, suspect, func(_ rec, l ld) { l.CeilingPerS = 1428 }},
	{"ceiling", peak, valid, func(_ rec, l ld) { l.CeilingPerS = 0 }},
}

func delay(threads int, ns int64) func(rec, ld) {
	return func(_ rec, l ld) { l.Threads, l.Generator.RunDelayNs = threads, ns }
}

var littleRows = []row{
	// 10,000 requests of 2 ms in 10 s: 2 under way. The error is relative to what was counted.
	{"little", half, valid, underWay(2.105)},   // 0.105/2.105 = 4.99 %
	{"little", half, suspect, underWay(2.106)}, // 0.106/2.106 = 5.03 %
	{"little", half, valid, underWay(1.905)},   // 0.095/1.905 = 4.99 %
	{"little", half, suspect, underWay(1.904)}, // 0.096/1.904 = 5.04 %
	{"little", half, suspect, underWay(2.499)}, // 0.499/2.499 = 19.97 %
	{"little", half, invalid, underWay(2.501)}, // 0.501/2.501 = 20.03 %
	{"little", half, suspect, underWay(1.667)}, // 0.333/1.667 = 19.98 %
	{"little", half, invalid, underWay(1.666)}, // 0.334/1.666 = 20.05 %
	{"little", peak, invalid, underWay(128)},   // half of them lost
	{"little", peak, valid, underWay(0)},       // not counted
	// A mean of fewer than 100 says nothing.
	{"little", half, valid, func(_ rec, l ld) { l.ServiceTime.Count = 99 }},
	{"little", half, invalid, func(_ rec, l ld) { l.ServiceTime.Count = 100 }},
	// 10 failed requests of 1 s may have held a connection for 10 s or for less: 2 to 3 under way.
	{"little", half, valid, wrong(3, 10, result.Errors{Read: 10})},
	{"little", half, valid, wrong(2, 10, result.Errors{Read: 10})},
	{"little", half, suspect, // 0.2/3.2 = 6.25 %
		wrong(3.2, 10, result.Errors{Read: 10})},
	// Timeouts stand in both distributions and count once: 2, whatever their own mean.
	{"little", half, invalid, // 1/3 = 33 %
		wrong(3, 10, result.Errors{Timeout: 10})},
	// A censored request may have held a connection all the time: 2 to 4. 0.3/4.3 = 7 %.
	{"little", half, valid, func(_ rec, l ld) { l.Censored, l.InFlightMean = 2, 4 }},
	{"little", half, suspect, func(_ rec, l ld) { l.Censored, l.InFlightMean = 2, 4.3 }},
	// But no more of them than there are connections: 2 to 2 + 64. 10/76 = 13 %.
	{"little", half, suspect, func(_ rec, l ld) { l.Censored, l.InFlightMean = 100, 76 }},
}

func underWay(n float64) func(rec, ld) {
	return func(_ rec, l ld) { l.InFlightMean = n }
}

// wrong makes n of the requests failed ones of 1 s.
func wrong(inFlight float64, n int64, e result.Errors) func(rec, ld) {
	return func(_ rec, l ld) {
		l.InFlightMean, l.Errors, l.ErrorTime = inFlight, e, flat(n, sec)
	}
}

var orderRows = slices.Concat(
	ordered(func(l ld) *result.Dist { return &l.ResponseTime }),
	ordered(func(l ld) *result.Dist { return &l.ServiceTime }),
	ordered(func(l ld) *result.Dist { return &l.FirstByte }),
	ordered(func(l ld) *result.Dist { return &l.Lag }),
	ordered(func(l ld) *result.Dist { return &l.OwnLag }),
	ordered(func(l ld) *result.Dist { return &l.ErrorTime }),
	ordered(func(l ld) *result.Dist { return &l.ConnectTime }),
	[]row{{"order", half, valid, // empty distributions are all zero
		func(_ rec, l ld) { l.OwnLag, l.ErrorTime = result.Dist{}, result.Dist{} }}})

// ordered bends one distribution of the open load in every way. Its values are small, or the lag
// would be found too large, and its count is, so that Little's law is not applied.
func ordered(of func(ld) *result.Dist) []row {
	bend := func(want string, with func(*result.Dist)) row {
		return row{"order", half, want, func(_ rec, l ld) {
			l.InFlightMean = 0
			d := of(l)
			*d = result.Dist{Count: 500, MinNs: 1, MeanNs: 3, P50Ns: 2, P90Ns: 3, P99Ns: 4,
				P999Ns: 5, MaxNs: 6}
			with(d)
		}}
	}
	return []row{
		bend(valid, func(*result.Dist) {}),
		bend(valid, func(d *result.Dist) { *d = flat(500, 1) }), // equal is in order
		bend(invalid, func(d *result.Dist) { d.MinNs = 0 }),     // nothing takes no time
		bend(invalid, func(d *result.Dist) { d.MinNs, d.MeanNs = 3, 4 }),
		bend(invalid, func(d *result.Dist) { d.P50Ns = 4 }),
		bend(invalid, func(d *result.Dist) { d.P90Ns = 5 }),
		bend(invalid, func(d *result.Dist) { d.P99Ns = 6 }),
		bend(invalid, func(d *result.Dist) { d.P999Ns = 7 }),
		bend(invalid, func(d *result.Dist) { d.MaxNs = 4 }),
		bend(invalid, func(d *result.Dist) { d.MeanNs = 0.5 }),
		bend(invalid, func(d *result.Dist) { d.MeanNs = 6.5 }),
		bend(invalid, func(d *result.Dist) { d.MeanNs = math.NaN() }),
	}
}

var answerRows = []row{
	{"answers", peak, valid, func(_ rec, l ld) { l.Done, l.Reconnects = 1, 0 }},
	{"answers", peak, invalid, func(_ rec, l ld) { l.Done = 0 }},

	// Each class counts. 10 of 10,010 are 0.0999 %, 11 of 10,011 are 0.1099 %.
	{"errors", half, valid, errors(result.Errors{Example: "words only"})},
	{"errors", half, suspect, errors(result.Errors{Connect: 1})},
	{"errors", half, suspect, errors(result.Errors{Write: 1})},
	{"errors", half, suspect, errors(result.Errors{Read: 1})},
	{"errors", half, suspect, errors(result.Errors{Timeout: 1})},
	{"errors", half, suspect, errors(result.Errors{Parse: 1})},
	{"errors", half, suspect, errors(result.Errors{Status: 1})},
	{"errors", half, suspect, errors(result.Errors{Body: 1})},
	{"errors", half, suspect, errors(result.Errors{Status: 5, Body: 5})},
	{"errors", half, invalid, errors(result.Errors{Status: 5, Body: 6})},

	// 100 of 10,000 are 1 %.
	{"censored", peak, valid, func(_ rec, l ld) { l.Censored = 0 }},
	{"censored", peak, suspect, func(_ rec, l ld) { l.Censored = 1 }},
	{"censored", half, suspect, func(_ rec, l ld) { l.Censored = 100 }},
	{"censored", half, invalid, func(_ rec, l ld) { l.Censored = 101 }},

	{"connections", peak, valid, func(_ rec, l ld) { l.Reconnects = 100 }},
	{"connections", peak, suspect, func(_ rec, l ld) { l.Reconnects = 101 }},

	// An interval of p99 needs n(1 - 0.99) >= 1.96²·0.99: n >= 380.3.
	{"samples", half, valid, func(_ rec, l ld) { l.ResponseTime.Count = 381 }},
	{"samples", half, suspect, func(_ rec, l ld) { l.ResponseTime.Count = 380 }},
}

func errors(e result.Errors) func(rec, ld) {
	return func(_ rec, l ld) { l.Errors = e }
}

var driftRows = []row{
	// 5,000 in the first half: 5 % are 250, and three deviations of the difference are let pass:
	// 250 + 3·√(5,000 + 5,558) = 558.3 faster, 250 + 3·√(5,000 + 4,458) = 541.8 slower.
	{"drift", peak, valid, halves(5000, 5558)},
	{"drift", peak, suspect, halves(5000, 5559)},
	{"drift", peak, valid, halves(5000, 4459)},
	{"drift", peak, suspect, halves(5000, 4458)},
	// A million, where randomness is next to nothing: 50,000 + 3·√2,054,295 = 54,300.
	{"drift", peak, valid, halves(1e6, 1054299)},
	{"drift", peak, suspect, halves(1e6, 1054301)},
	// None at first: 9 = 3·√9 may be chance, 10 > 3·√10 = 9.5 may not.
	{"drift", peak, valid, halves(0, 0)},
	{"drift", peak, valid, halves(0, 9)},
	{"drift", peak, suspect, halves(0, 10)},
	{"drift", peak, suspect, halves(5000, 0)},
	// The schedule makes the rate of the open model.
	{"drift", half, valid, halves(5000, 2500)},
	// Of less than four intervals a half nothing is said.
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

var machineRows = []row{
	{"steal", half, valid, func(_ rec, l ld) { l.Host.StealShare = 0.01 }},
	{"steal", half, suspect, func(_ rec, l ld) { l.Host.StealShare = 0.0101 }},
	{"steal", peak, suspect, func(_ rec, l ld) { l.Host.StealShare = 0.1 }},
	{"steal", peak, invalid, func(_ rec, l ld) { l.Host.StealShare = 0.1001 }},

	// 1 % of the probe's 10.1 s is 101 ms; without a probe's window, of the load's 10 s.
	{"throttled", peak, valid, throttled(10.1*sec, 101*ms)},
	{"throttled", peak, suspect, throttled(10.1*sec, 101.1*ms)},
	{"throttled", peak, valid, throttled(0, 100*ms)},
	{"throttled", peak, suspect, throttled(0, 100.1*ms)},

	{"neighbours", half, valid, func(_ rec, l ld) { l.Host.OtherCPUShare = 0.05 }},
	{"neighbours", half, suspect, func(_ rec, l ld) { l.Host.OtherCPUShare = 0.0501 }},

	{"memory", half, valid, func(_ rec, l ld) { l.Host.PressureMemory = 0.01 }},
	{"memory", half, suspect, func(_ rec, l ld) { l.Host.PressureMemory = 0.0101 }},
}

func throttled(windowNs, ns int64) func(rec, ld) {
	return func(_ rec, l ld) { l.Service.WindowNs, l.Service.ThrottledNs = windowNs, ns }
}
