package verdict_test

import (
	"errors"
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/record"
	"prony.example/stats"
)

// In the rows, r is the record and l its load, the open one (half) or the closed one (peak). Both
// have 10,000 requests in 10 s, of 2 ms and 64 ms, so that 2 and 64 of them are under way.
var rows = slices.Concat(trialRows, openRows, generatorRows, littleRows, orderRows, answerRows,
	connectionRows, driftRows, machineRows, arrivalRows, sampleRows, foreignRows, manyRows, askRows,
	slicedRows)

type (
	rec = *record.Record
	ld  = *record.Load
)

var trialRows = []row{
	{"failed", trial, valid, func(r rec, _ ld) { r.Outcome = "measured" }},
	{"failed", trial, invalid, func(r rec, _ ld) { r.Outcome = "failed" }},

	{"warm-up", trial, valid, func(r rec, _ ld) {
		r.Warmup.DurationNs, r.Warmup.SteadyAtNs = 14*sec, 14*sec
	}},
	{"warm-up", trial, suspect, func(r rec, _ ld) { r.Warmup.Steady = false }},
	{"warm-up", trial, suspect, func(r rec, _ ld) {
		r.Warmup.Steady, r.Target.Runtime = false, "jvm"
	}},
	{"warm-up", trial, noted, func(r rec, _ ld) { // nothing compiles: the windows tell
		r.Warmup.Steady, r.Target.Runtime = false, "native"
	}},
	{"warm-up", peak, noted, func(r rec, _ ld) { r.Warmup.Kind = stats.Unsteady }}, // as it ends
	// The last 10 of 40 intervals: 261 of a mean of 252.75, 3.3 %.
	{"warm-up", peak, suspect, func(r rec, l ld) {
		r.Warmup.Kind = stats.Unsteady
		for i := 30; i < 40; i++ {
			l.Series.Done[i] += 11
		}
	}},
	// Compilers that ran for 3 % of the window had 5 % of what the service used: 0.3 s of 6 s.
	// Without them it is 0.3/5.7, 5.3 %, faster; with a tenth of that, 0.53 %.
	{"warm-up", peak, suspect, compilers(0.3*sec, 0, 6*sec)},
	{"warm-up", peak, noted, compilers(0.3*sec, 0, 60*sec)},
	{"warm-up", trial, valid, compilers(0.19*sec, 0.7*sec, 1*sec)}, // silent: 1.9 %, 8.9 %
	// Compilers needed a core half of the time, whether they got it or not.
	{"warm-up", peak, noted, compilers(0.1*sec, 4.8*sec, 10*sec)},  // 4.9 s of 10.1
	{"warm-up", trial, suspect, compilers(0.1*sec, 5*sec, 10*sec)}, // 5.1 s
	// If compilers were idle in the window, earlier compilation does not matter.
	{"warm-up", peak, noted, func(r rec, l ld) {
		compilers(0.1*sec, 0, 10*sec)(r, l)
		r.Warmup.Steady = false
	}},
	{"warm-up", trial, noted, func(r rec, l ld) { // nothing can be held against anything
		compilers(0.1*sec, 0, 10*sec)(r, l)
		r.Warmup.Steady, r.Loads = false, r.Loads[:1]
	}},
	{"warm-up", trial, suspect, func(r rec, l ld) { // they were not
		compilers(0.5*sec, 0, 10*sec)(r, l)
		r.Warmup.Steady, r.Loads = false, r.Loads[:1]
	}},
	{"warm-up", trial, suspect, func(r rec, _ ld) { // V8's workers do not tell what they did
		r.Warmup.Steady, r.Target.Runtime = false, "node"
		r.Loads[1].Service.Roles = &record.Roles{CompilerOrGCNs: 1}
	}},
	{"warm-up", trial, valid, func(r rec, _ ld) { r.Warmup.Kind = stats.Slowed }}, // before it
	{"warm-up", peak, suspect, func(r rec, l ld) { // what came before has no intervals to tell
		r.Warmup.DurationNs, r.Warmup.SteadyAtNs = 6*sec, 6*sec+1
		l.Series.Done[39] += 110
	}},

	{"quiet", trial, valid, func(r rec, _ ld) { r.HostBefore = record.Before{} }}, // nobody looked
	{"quiet", trial, valid, func(r rec, _ ld) {
		r.HostBefore = record.Before{WindowNs: sec, Quiet: true}
	}},
	{"quiet", trial, noted, func(r rec, _ ld) {
		r.HostBefore = record.Before{WindowNs: sec, WaitedNs: 10 * sec, Reason: "others used 30 %"}
	}},

	{"limits", trial, valid, func(r rec, _ ld) {
		r.Limits.InForce = []record.Limit{{Kind: record.LimitCores, By: record.ByAffinity}}
	}},
	{"log", trial, valid, func(r rec, _ ld) { r.LogDroppedBytes = 0 }},
	{"log", trial, noted, func(r rec, _ ld) { r.LogDroppedBytes = 30e6 }},
	{"limits", trial, suspect, func(r rec, _ ld) {
		r.Limits.Missing = []record.Limit{{Kind: record.LimitCPU, By: record.ByNone, Value: 0.5}}
	}},

	{"cores", trial, valid, cores([]int{2, 3}, []int{0, 1})},
	{"cores", trial, suspect, cores([]int{1, 2}, []int{0, 1})}, // both on 1
	{"cores", trial, suspect, cores([]int{0}, []int{0})},
	{"cores", trial, valid, cores(nil, []int{0})}, // not known
	{"cores", trial, valid, cores([]int{0}, nil)},

	{"pod", trial, valid, func(r rec, _ ld) { r.Pod = &record.Pod{Cores: []int{1}} }},
	{"pod", trial, suspect, func(r rec, _ ld) {
		r.Pod = &record.Pod{CoresSharedWith: []string{"pod b may run on cores 0,1"}}
	}},
	{"reader", trial, valid, reader(0, 99e6)}, // of 10 s
	{"reader", trial, suspect, reader(0, 101e6)},
	{"reader", trial, suspect, reader(1, 0)},
	{"cluster", trial, valid, func(r rec, _ ld) { r.Pod = &record.Pod{Cores: []int{1}} }},
	{"cluster", trial, noted, func(r rec, _ ld) {
		r.Pod = &record.Pod{APIOutages: []record.APIOutage{{DurationNs: 30 * sec}}}
	}},
}

// reader has a reader with this number of lost readings and this largest delay.
func reader(lost int, lateNs int64) func(rec, ld) {
	return func(r rec, _ ld) {
		r.Pod = &record.Pod{Reader: &record.Reader{LateMaxNs: lateNs,
			Lost: make([]string, lost)}}
		for i := range r.Loads {
			r.Loads[i].WindowNs = 10 * sec
		}
	}
}

// compilers sets how long a JVM's compilers ran and waited in all windows, of 10.1 s each, and the
// processor time of the service.
func compilers(runNs, waitNs, usedNs int64) func(rec, ld) {
	return func(r rec, _ ld) {
		r.Target.Runtime = "jvm"
		for i := range r.Loads {
			u := &r.Loads[i].Service
			u.Roles = &record.Roles{CompilerNs: runNs, CompilerWaitNs: waitNs}
			u.CPUNs = usedNs
		}
	}
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
	// A service that stands still at the end of the window, for a quarter of it and for half.
	{"capacity", half, valid, standing(10)},
	{"capacity", half, invalid, standing(20)},
	{"capacity", peak, valid, backlog(500, 1000, 64)}, // has no schedule
	// A rate from 100 to 400 in 250 ms: 1,200/s × 2 ms = 2.4 more under way in the end; times 1.5,
	// (9.24 + 3.6)/10 s = 1.284/s.
	{"capacity", half, valid, ramp(1.28, "ramp 400..1600 in 10s", "poisson")},
	{"capacity", half, invalid, ramp(1.29, "ramp 400..1600 in 10s", "poisson")},
	{"capacity", half, invalid, func(r rec, l ld) { // the last interval is shorter
		ramp(1.29, "ramp 400..1600 in 10s", "poisson")(r, l)
		l.Series.Scheduled = append(l.Series.Scheduled, 0)
	}},
	{"capacity", half, valid, ramp(1.28, "", "replay")},
	{"capacity", half, invalid, ramp(1.29, "", "replay")},
	{"capacity", half, invalid, ramp(1.28, "", "poisson")}, // the rate was to be steady

	// Twice the lag, of 2 ms 3 %: 30 µs.
	{"lag", half, noted, func(_ rec, l ld) { l.OwnLag = flat(10000, 0.03*ms) }},
	{"lag", half, suspect, func(_ rec, l ld) { l.OwnLag = flat(10000, 0.0301*ms) }},
	// A suite with a resolution of 10 % allows 50 µs of 1 ms.
	{"lag", half, noted, resolving(0.1, 0.05*ms)},
	{"lag", half, suspect, resolving(0.1, 0.051*ms)},
	// The service causes the wait for a free connection.
	{"lag", half, valid, func(_ rec, l ld) { l.Lag = flat(10000, sec) }},
	// The end of a user's pause can be late: twice 0.96 ms is 3 % of 64 ms.
	{"lag", half, valid, func(_ rec, l ld) { l.OwnLag = record.Dist{} }},
	{"lag", peak, noted, func(_ rec, l ld) { l.OwnLag = flat(10000, 0.96*ms) }},
	{"lag", peak, suspect, func(_ rec, l ld) { l.OwnLag = flat(10000, 0.97*ms) }},

	// 5 % of 5 ms are 250 µs, and 5 % of 1 ms are less than 100 µs.
	{"network", half, valid, added(5*ms, 5.2*ms)},
	{"network", half, suspect, added(5*ms, 5.3*ms)},
	{"network", half, suspect, added(5*ms, 4.7*ms)},
	{"network", peak, valid, added(ms, 1.08*ms)},
	{"network", peak, suspect, added(ms, 1.2*ms)},

	{"timer", half, valid, func(_ rec, l ld) { l.Generator.Wakeup = flat(100, 5*ms) }},
	{"timer", half, noted, func(_ rec, l ld) { // lag counts
		l.Generator.Wakeup, l.OwnLag = flat(100, 5*ms), flat(10000, 5*ms)
	}},

	// Of 200 times of 4 ms without 50 p99 is one of them, and without 100 one of 2 ms.
	{"waited", half, valid, slowest(200, 4*ms, func(l ld) { l.Waited = 50 })},
	{"waited", half, suspect, slowest(200, 4*ms, func(l ld) {
		l.Waited, l.Lag = 101, flat(10000, ms)
	})},
	{"waited", half, valid, slowest(200, 4*ms, func(l ld) { l.Waited = 101 })}, // but for 2 µs
	{"waited", half, suspect, slowest(200, 4*ms, func(l ld) { // nobody knows how late
		l.Waited, l.Lag = 101, record.Dist{}
	})},
	{"waited", half, suspect, slowest(200, 4*ms, func(l ld) { // for streams
		permitted := 5
		l.Waited, l.Lag, l.StreamsPermitted = 101, flat(10000, ms), &permitted
	})},
	{"waited", half, noted, slowest(200, 4*ms, func(l ld) { // for 30 µs
		l.Waited, l.Lag = 101, flat(10000, 0.03*ms)
	})},
	{"waited", half, valid, func(_ rec, l ld) { l.Waited = 5000 }}, // all alike
	{"waited", peak, valid, func(_ rec, l ld) { l.Waited = 5000 }}, // users

	// 1 % of the second's 1,000 may leave in the next one, and also arrivals that waited.
	{"rate", half, valid, behind(10, 0)},
	{"rate", half, suspect, behind(11, 0)},
	{"rate", half, valid, behind(15, 5)},
	{"rate", half, suspect, behind(16, 5)},
	// Intervals of 2 s are longer than a second, and 1 % of their 2,000 is 20.
	{"rate", half, valid, coarse(20)},
	{"rate", half, suspect, coarse(21)},
	{"rate", half, valid, func(_ rec, l ld) { // of 100/s five are more than 1 %
		l.Series.Scheduled, l.Series.Sent = every(25), every(25)
		l.Series.Sent[39] = 20
	}},
	{"rate", half, valid, func(_ rec, l ld) { // three steps to a flow, the last ones unsent
		l.FlowTime, l.Series.Sent = flat(10000, 6*ms), every(750)
		l.Series.Sent[36], l.Series.Sent[37], l.Series.Sent[38], l.Series.Sent[39] = 9, 9, 9, 9
	}},
}

// resolving sets the suite's resolution, and a lag with times of 1 ms.
func resolving(share float64, lag int64) func(rec, ld) {
	return func(r rec, l ld) {
		r.Verdict.Resolution = share
		l.ResponseTime, l.OwnLag = flat(10000, ms), flat(10000, lag)
	}
}

// slowest makes n of the load's times this long.
func slowest(n int64, ns int64, change func(ld)) func(rec, ld) {
	return func(_ rec, l ld) {
		h := hdrhistogram.New(1, sec, 3)
		err := errors.Join(h.RecordValues(l.ResponseTime.P50Ns, 10000-n), h.RecordValues(ns, n))
		text, failed := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err := errors.Join(err, failed); err != nil {
			panic(err)
		}
		at := h.ValueAtPercentile
		l.ResponseTime = record.Dist{Count: 10000, MinNs: h.Min(), MeanNs: h.Mean(), P50Ns: at(50),
			P90Ns: at(90), P99Ns: at(99), P999Ns: at(99.9), MaxNs: h.Max(), HDR: string(text)}
		change(l)
	}
}

// standing has a service that sends no response in the last n intervals of the window.
func standing(n int) func(rec, ld) {
	return func(_ rec, l ld) {
		l.BacklogPerS = 100
		clear(l.Series.Done[40-n:])
	}
}

// behind moves requests from the third second to the fourth; others wait for a connection.
func behind(n, waited int64) func(rec, ld) {
	return func(_ rec, l ld) {
		l.Series.Sent[11] -= n
		l.Series.Sent[12] += n
		l.Waited = waited
	}
}

// coarse has five intervals of 2 s.
func coarse(behind int64) func(rec, ld) {
	return func(_ rec, l ld) {
		l.Series.IntervalNs = 2 * sec
		l.Series.Scheduled = slices.Repeat([]int64{2000}, 5)
		l.Series.Sent = []int64{2000, 2000 - behind, 2000 + behind, 2000, 2000}
	}
}

// ramp has a growing backlog, and arrivals that grow from 100 per interval to 400.
func ramp(growth float64, shape, arrivals string) func(rec, ld) {
	return func(r rec, l ld) {
		backlog(growth, 40, 2)(r, l)
		l.Shape, l.Arrivals = shape, arrivals
		l.Series.Scheduled[0], l.Series.Scheduled[39] = 100, 400
		l.Series.Sent = l.Series.Scheduled
		l.Series.P50Ns = append(every(3*ms), 0, 2*ms) // the least that is known
	}
}

// backlog sets its growth, the rate, and the requests under way, with the matching service time at
// 1,000 requests a second.
func backlog(growth, rate, inFlight float64) func(rec, ld) {
	return func(_ rec, l ld) {
		l.BacklogPerS, l.RatePerS, l.InFlightMean = growth, rate, inFlight
		l.ServiceTime = flat(10000, int64(inFlight*ms))
		for i := range l.Series.Done {
			at := func(i int) int64 { return int64(growth * 0.25 * float64(i)) }
			l.Series.Done[i] -= at(i+1) - at(i)
		}
	}
}

func still(ns, delay int64, resolution float64) func(rec, ld) {
	return func(r rec, l ld) {
		l.Generator.StallMaxNs, l.Generator.RunDelayNs, l.Threads = ns, delay, 2
		r.Verdict.Resolution = resolution
	}
}

var generatorRows = []row{
	// 0.28 s of 10 s are 2.9 % of the rest, 0.3 s 3.1 %.
	{"stalled", peak, noted, still(0.28*sec, 0, 0)},
	{"stalled", peak, suspect, still(0.3*sec, 0, 0)},
	// The wait for a processor is run delay: 1 % of each of two.
	{"stalled", peak, noted, still(0.38*sec, 0.2*sec, 0.04)},
	{"stalled", peak, suspect, still(0.42*sec, 0.2*sec, 0.04)},
	{"stalled", peak, valid, still(0.0999*sec, 0, 0.005)}, // as any machine may
	{"stalled", peak, suspect, still(0.1*sec, 0, 0.005)},
	{"stalled", half, valid, func(_ rec, l ld) { l.Generator.StallMaxNs = 0.4999 * sec }},
	{"stalled", half, invalid, func(_ rec, l ld) { l.Generator.StallMaxNs = 0.5 * sec }},
	{"stalled", peak, invalid, func(_ rec, l ld) { l.Generator.StallMaxNs = 0.5 * sec }},

	{"generator", peak, valid, func(_ rec, l ld) { l.Generator.CPUShare = 0.8 }},
	{"generator", peak, suspect, func(_ rec, l ld) { l.Generator.CPUShare = 0.8001 }},
	// A service with 2 % of unused time would have served 2.04 % more, one with 4 % 4.2 % more.
	{"generator", peak, noted, func(_ rec, l ld) {
		l.Generator.CPUShare, l.Service.CPUShare = 0.99, 0.98
	}},
	{"generator", peak, suspect, func(_ rec, l ld) {
		l.Generator.CPUShare, l.Service.CPUShare = 0.99, 0.96
	}},
	// Polling is not work: 1.5 s of 10 s on one thread, 3 s on two.
	{"generator", half, valid, polling(0.95, 1, 1.5*sec)},
	{"generator", half, suspect, polling(0.951, 1, 1.5*sec)},
	{"generator", half, valid, polling(0.95, 2, 3*sec)},
	{"generator", half, suspect, polling(0.951, 2, 3*sec)},

	// 2.91 % of the time are 2.997 % of what it would have been without; two threads have 20 s.
	{"run delay", peak, noted, delay(1, 291*ms)},
	{"run delay", peak, suspect, delay(1, 292*ms)},
	{"run delay", peak, noted, delay(2, 582*ms)},
	{"run delay", peak, suspect, delay(2, 584*ms)},
	{"run delay", half, noted, delay(1, 5000*ms)}, // what it did is lag
	{"run delay", peak, noted, func(_ rec, l ld) { // the service had not more to give
		l.Generator.RunDelayNs, l.Service.CPUShare = 5000*ms, 0.98
	}},
	{"run delay", peak, valid, delay(0, 1000*ms)}, // another generator's

	// The throughput is 1,000/s: 69.9 % of 1,430 and 70.03 % of 1,428.
	{"ceiling", peak, valid, func(_ rec, l ld) { l.CeilingPerS = 1430 }},
	{"ceiling", peak, suspect, func(_ rec, l ld) { l.CeilingPerS = 1428 }},
	{"ceiling", peak, valid, func(_ rec, l ld) { l.CeilingPerS = 0 }},
	{"ceiling", peak, noted, func(_ rec, l ld) { l.CeilingPerS, l.Service.CPUShare = 1001, 0.98 }},

	// 10,000 responses in 313 turns are 31.9 each, in 312 turns 32.1.
	{"batch", half, valid, func(_ rec, l ld) { l.Generator.Iterations = 313 }},
	{"batch", half, suspect, func(_ rec, l ld) { l.Generator.Iterations = 312 }},
	{"batch", half, valid, func(_ rec, l ld) { l.Generator.Iterations = 0 }}, // not counted
	// 1 % of 10,000 are 100; of 1,000 they are 10, but 32 are permitted.
	{"batch", half, valid, func(_ rec, l ld) { l.Generator.BatchMax = 100 }},
	{"batch", half, suspect, func(_ rec, l ld) { l.Generator.BatchMax = 101 }},
	{"batch", half, valid, func(_ rec, l ld) { l.Done, l.Generator.BatchMax = 1000, 32 }},
	{"batch", half, suspect, func(_ rec, l ld) { l.Done, l.Generator.BatchMax = 1000, 33 }},
	{"batch", peak, valid, func(_ rec, l ld) {
		l.Generator.Iterations, l.Generator.BatchMax = 1,
			9e3
	}},
}

func polling(share float64, threads int, ns int64) func(rec, ld) {
	return func(_ rec, l ld) {
		l.Generator.CPUShare, l.Threads, l.Generator.SpinNs = share, threads, ns
	}
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
	// Requests that cross the window's edges are recorded: 2 + 1.5 − 0.5.
	{"little", half, valid, carried(3, 1.5, 0.5)},
	{"little", half, invalid, carried(2, 1.5, 0.5)}, // 1/2
	// A mean of fewer than 100 is not reliable.
	{"little", half, valid, func(_ rec, l ld) { l.ServiceTime.Count = 99 }},
	{"little", half, invalid, func(_ rec, l ld) { l.ServiceTime.Count = 100 }},
	// 10 failed requests of 1 s may have held a connection for 10 s or for less: 2 to 3 under way.
	{"little", half, valid, wrong(3, 10, record.Errors{Read: 10})},
	{"little", half, valid, wrong(2, 10, record.Errors{Read: 10})},
	{"little", half, suspect, // 0.2/3.2 = 6.25 %
		wrong(3.2, 10, record.Errors{Read: 10})},
	// Timeouts are in both distributions and count once: 2, whatever their own mean.
	{"little", half, invalid, // 1/3 = 33 %
		wrong(3, 10, record.Errors{Timeout: 10})},
	// A censored request may have held a connection all the time: 2 to 4. 0.3/4.3 = 7 %.
	{"little", half, valid, func(_ rec, l ld) { l.Censored, l.InFlightMean = 2, 4 }},
	{"little", half, suspect, func(_ rec, l ld) { l.Censored, l.InFlightMean = 2, 4.3 }},
	// But no more of them than there are connections: 2 to 2 + 64. 10/76 = 13 %.
	{"little", half, suspect, func(_ rec, l ld) { l.Censored, l.InFlightMean = 100, 76 }},
	// Each of the connections may have ten streams: 2 to 2 + 100.
	{"little", half, valid, func(_ rec, l ld) {
		l.Censored, l.InFlightMean, l.Streams = 100, 102, 10
	}},
	// From 400/s to 1,600/s, of 1 s each, 1,200 more requests are under way, each with up to 1 s of
	// 10 s beyond the window: 1,000 ± 120.
	{"little", half, valid, swelling(1120)},
	{"little", half, valid, swelling(880)},
	{"little", half, valid, swelling(838.1)},  // 41.9/838.1 = 4.999 %
	{"little", half, suspect, swelling(838)},  // 42/838 = 5.01 %
	{"little", half, suspect, swelling(1179)}, // 59/1,179 = 5.004 %
	// 64 users of whom 60 think at any moment: 1,000/s of 4 ms make the 4 that are under way.
	{"little", peak, valid, thinking(4)},
	{"little", peak, invalid, thinking(64)}, // the pauses are counted
}

func carried(underWay, in, out float64) func(rec, ld) {
	return func(_ rec, l ld) {
		l.InFlightMean, l.CarriedInMean, l.CarriedOutMean = underWay, in,
			out
	}
}

func swelling(underWay float64) func(rec, ld) {
	return func(_ rec, l ld) {
		l.Shape, l.InFlightMean = "ramp 400..1600 in 10s", underWay
		l.ServiceTime, l.ResponseTime = flat(10000, sec), flat(10000, sec)
		l.Series.Scheduled[0], l.Series.Scheduled[39] = 100, 400
		l.Series.Sent, l.Series.P50Ns = l.Series.Scheduled, every(sec)
	}
}

func thinking(underWay float64) func(rec, ld) {
	return func(_ rec, l ld) {
		l.Users, l.Think, l.InFlightMean = "64", "60ms", underWay
		l.ServiceTime, l.ResponseTime = flat(10000, 4*ms), flat(10000, 4*ms)
	}
}

func underWay(n float64) func(rec, ld) {
	return func(_ rec, l ld) { l.InFlightMean = n }
}

// wrong makes n of the requests failed ones of 1 s.
func wrong(inFlight float64, n int64, e record.Errors) func(rec, ld) {
	return func(r rec, l ld) {
		mistakes(e)(r, l)
		l.InFlightMean, l.ErrorTime = inFlight, flat(n, sec)
	}
}

var orderRows = slices.Concat(
	ordered(func(l ld) *record.Dist { return &l.ResponseTime }),
	ordered(func(l ld) *record.Dist { return &l.ServiceTime }),
	ordered(func(l ld) *record.Dist { return &l.FirstByte }),
	ordered(func(l ld) *record.Dist { return &l.Lag }),
	ordered(func(l ld) *record.Dist { return &l.OwnLag }),
	ordered(func(l ld) *record.Dist { return &l.ErrorTime }),
	ordered(func(l ld) *record.Dist { return &l.ConnectTime }),
	ordered(func(l ld) *record.Dist { return &l.TLSTime }),
	ordered(func(l ld) *record.Dist { return &l.FlowTime }),
	ordered(func(l ld) *record.Dist { return &l.Generator.Wakeup }),
	ordered(func(l ld) *record.Dist {
		l.Routes = make([]record.Route, 2)
		return &l.Routes[1].ServiceTime
	}),
	[]row{{"order", half, valid, // empty distributions are all zero
		func(_ rec, l ld) { l.OwnLag, l.ErrorTime = record.Dist{}, record.Dist{} }}})

// ordered changes one distribution of the open load in every way. Its values are small, so that the
// lag stays below its limit; Little's law is not applied.
func ordered(of func(ld) *record.Dist) []row {
	bend := func(want string, with func(*record.Dist)) row {
		return row{"order", half, want, func(_ rec, l ld) {
			l.InFlightMean, l.Host, l.OwnLag = 0, record.Host{}, record.Dist{}
			d := of(l)
			*d = record.Dist{Count: 10000, MinNs: 1, MeanNs: 3, P50Ns: 2, P90Ns: 3, P99Ns: 4,
				P999Ns: 5, MaxNs: 6}
			with(d)
		}}
	}
	return []row{
		bend(valid, func(*record.Dist) {}),
		bend(valid, func(d *record.Dist) { *d = flat(10000, 1) }), // equal is in order
		bend(invalid, func(d *record.Dist) { d.MinNs = 0 }),       // nothing takes no time
		bend(invalid, func(d *record.Dist) { d.MinNs, d.MeanNs = 3, 4 }),
		bend(invalid, func(d *record.Dist) { d.P50Ns = 4 }),
		bend(invalid, func(d *record.Dist) { d.P90Ns = 5 }),
		bend(invalid, func(d *record.Dist) { d.P99Ns = 6 }),
		bend(invalid, func(d *record.Dist) { d.P999Ns = 7 }),
		bend(invalid, func(d *record.Dist) { d.MaxNs = 4 }),
		bend(invalid, func(d *record.Dist) { d.MeanNs = 0.5 }),
		bend(invalid, func(d *record.Dist) { d.MeanNs = 6.5 }),
		bend(invalid, func(d *record.Dist) { d.MeanNs = math.NaN() }),
	}
}

var answerRows = []row{
	{"answers", peak, valid, func(_ rec, l ld) { l.Done, l.Reconnects = 1, 0 }},
	{"answers", peak, invalid, func(_ rec, l ld) { l.Done = 0 }},

	// Each class counts. 10 of 10,010 are 0.0999 %, 11 of 10,011 are 0.1099 %.
	{"errors", half, valid, mistakes(record.Errors{Example: "words only"})},
	{"errors", half, noted, mistakes(record.Errors{Status: 5, Body: 5})},
	{"errors", half, invalid, mistakes(record.Errors{Connect: 11})},
	{"errors", half, invalid, mistakes(record.Errors{Write: 11})},
	{"errors", half, invalid, mistakes(record.Errors{Read: 11})},
	{"errors", half, invalid, mistakes(record.Errors{Timeout: 11})},
	{"errors", half, invalid, mistakes(record.Errors{Parse: 11})},
	{"errors", half, invalid, mistakes(record.Errors{Status: 11})},
	{"errors", half, invalid, mistakes(record.Errors{Status: 5, Body: 6})},
	{"errors", half, invalid, mistakes(record.Errors{Closed: 11})},
	// Ten ranks determine p99.9 with 15 slow requests of 10,000.
	{"errors", half, suspect, slowest(15, 40*ms, func(l ld) {
		l.Errors.Status, l.Host = 10, record.Host{}
	})},

	// 200 connections without a response: 200 of 10,200 are more than all beyond p99. Requests that
	// come into the window and requests that leave it cancel out.
	{"starving", peak, suspect, carried(264, 200, 0)},
	{"starving", peak, valid, carried(64, 32, 32)},
	{"starving", peak, valid, carried(67, 3, 0)}, // 3/67 = 4.5 %
	{"starving", peak, noted, carried(69, 5, 0)}, // 7 %, and five ranks do not move p99.9
	{"starving", half, valid, carried(3, 1.5, 0.5)},

	// 100 of 10,000 are 1 %, which is all that is beyond p99.
	{"censored", peak, valid, func(_ rec, l ld) { l.Censored = 0 }},
	{"censored", peak, noted, func(_ rec, l ld) { l.Censored = 1 }},
	{"censored", half, suspect, func(_ rec, l ld) { l.Censored = 100 }},
	{"censored", half, invalid, func(_ rec, l ld) { l.Censored = 101 }},

	{"sums", half, valid, func(_ rec, l ld) { l.Answered, l.ResponseTime.Count = 9000, 9000 }},
	{"sums", half, invalid, func(_ rec, l ld) { l.Answered = 9999 }},
	{"sums", peak, invalid, func(_ rec, l ld) { l.ResponseTime.Count = 9999 }},
	{"sums", peak, valid, mistakes(record.Errors{Timeout: 3})},
	{"sums", peak, invalid, func(_ rec, l ld) { l.Errors.Timeout = 3 }}, // dropped: survivorship
	{"sums", half, invalid, func(_ rec, l ld) { l.Censored = -1 }},

	{"range", peak, valid, func(_ rec, l ld) { l.ResponseTime.MaxNs = 1<<40 - 1 }},
	{"range", peak, suspect, func(_ rec, l ld) { l.ResponseTime.MaxNs = 1 << 40 }},
	{"range", half, suspect, func(_ rec, l ld) { l.ErrorTime = flat(1, 1<<41) }},
}

// mistakes adds failed requests; timeouts are also among the response times.
func mistakes(e record.Errors) func(rec, ld) {
	return func(_ rec, l ld) {
		l.Errors = e
		l.ResponseTime.Count += e.Timeout
	}
}

// added sets a simulated network, and the delay in ns that was added to all round trips.
func added(delayNs, medianNs float64) func(rec, ld) {
	return func(_ rec, l ld) {
		l.Network = &record.Network{DelayNs: int64(delayNs), Added: flat(10000, int64(medianNs))}
	}
}
