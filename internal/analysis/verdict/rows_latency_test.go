package verdict_test

import (
	"cmp"
	"slices"
	"testing"

	"prony.example/internal/analysis/verdict"
	"prony.example/record"
)

var arrivalRows = []row{
	// Without punctual times, 50 that waited and the same number again do not count, nor do 150 and
	// the same number: with 250 times of 4 ms p99 is one of them only in the first case.
	{"lag", half, valid, stuck(50)},
	{"lag", half, suspect, stuck(150)},
	// 2 % of 1,000 gaps; of 100 twice 1.957.
	{"arrivals", half, valid, process(10000, record.ArrivalProcess{AndersonDarling: 20})},
	{"arrivals", half, suspect, process(10000, record.ArrivalProcess{AndersonDarling: 20.1})},
	{"arrivals", half, valid, process(100, record.ArrivalProcess{AndersonDarling: 3.914})},
	{"arrivals", half, suspect, process(100, record.ArrivalProcess{AndersonDarling: 3.915})},
	// Of 1,000/s the gap is 1 ms, a tenth of it 0.1 ms; of 100/s it is 1 ms.
	{"arrivals", half, valid, spaced(1000, 0.1*ms)},
	{"arrivals", half, suspect, spaced(1000, 0.1*ms+1)},
	{"arrivals", half, valid, spaced(100, ms)},
	{"arrivals", half, suspect, spaced(100, ms+1)},
	// For 100,000/s it is 1 µs, but 100 µs are permitted: two lags of 50 µs.
	{"arrivals", half, valid, spaced(1e5, 0.1*ms)},
	{"arrivals", half, suspect, spaced(1e5, 0.1*ms+1)},
	// A trace may have any gaps, and the steps of a flow are not arrivals.
	{"arrivals", half, valid, func(_ rec, l ld) {
		l.Arrivals, l.ArrivalProcess = "replay", record.ArrivalProcess{AndersonDarling: 99,
			GapDeviationNs: sec}
	}},
	{"arrivals", half, valid, func(_ rec, l ld) {
		l.FlowTime, l.ArrivalProcess = flat(5000, 6*ms), record.ArrivalProcess{AndersonDarling: 99}
	}},
	// Without a rate there is no gap to compare with, and no number of bins.
	{"arrivals", half, valid, rateless("poisson", record.ArrivalProcess{AndersonDarling: 99})},
	{"arrivals", half, valid, rateless("constant", record.ArrivalProcess{GapDeviationNs: sec})},
	{"bursts", half, valid, rateless("poisson", record.ArrivalProcess{Dispersion1ms: 9})},

	// Of times of 1 and 2 ms the half that is more than the least counts by half of the excess:
	// 12 % make 3 %. 10,000 of 1,000/s lie in 10,000 bins of 1 ms: 4·√(2/9,999) = 5.7 % are chance.
	{"bursts", half, noted, process(10000, record.ArrivalProcess{Dispersion1ms: 1.119})},
	{"bursts", half, suspect, process(10000, record.ArrivalProcess{Dispersion1ms: 1.123})},
	// In 1,000 of 10 ms: 4·√(2/999) = 0.1790.
	{"bursts", half, valid, process(10000, record.ArrivalProcess{Dispersion10ms: 1.178})},
	{"bursts", half, suspect, process(10000, record.ArrivalProcess{Dispersion10ms: 1.180})},
	// In 100 of 100 ms: 4·√(2/99) = 0.5685.
	{"bursts", half, valid, process(10000, record.ArrivalProcess{Dispersion100ms: 1.568})},
	{"bursts", half, suspect, process(10000, record.ArrivalProcess{Dispersion100ms: 1.570})},
	// Too even by less than chance, by 8 % and by more than a quarter.
	{"bursts", half, valid, process(10000, record.ArrivalProcess{Dispersion1ms: 0.95})},
	{"bursts", half, suspect, process(10000, record.ArrivalProcess{Dispersion1ms: 0.92})},
	{"bursts", half, suspect, process(10000, record.ArrivalProcess{Dispersion1ms: 0.01})},
	// Requested equal gaps cause no finding, and a trace may have some.
	{"bursts", half, valid, func(_ rec, l ld) {
		l.Arrivals, l.ArrivalProcess = "constant", record.ArrivalProcess{Samples: 10000}
	}},
	{"bursts", half, valid, func(_ rec, l ld) {
		l.Arrivals, l.ArrivalProcess = "replay", record.ArrivalProcess{Samples: 10000,
			Dispersion1ms: 9}
	}},
	{"bursts", half, valid, func(_ rec, l ld) {
		l.FlowTime, l.ArrivalProcess = flat(5000, 6*ms), record.ArrivalProcess{Samples: 10000,
			Dispersion1ms: 9}
	}},
}

// rateless is an open load of which no rate is known.
func rateless(arrivals string, p record.ArrivalProcess) func(rec, ld) {
	return func(r rec, l ld) {
		process(10000, p)(r, l)
		l.RatePerS, l.Arrivals = 0, arrivals
	}
}

// TestLagWithoutResponses checks that lag is no part of response times that do not exist.
func TestLagWithoutResponses(t *testing.T) {
	for i := range healthy().Loads {
		r := healthy()
		l := &r.Loads[i]
		l.OwnLag, l.Answered = flat(10000, sec), 0
		l.ResponseTime, l.ServiceTime = record.Dist{}, record.Dist{}
		for _, f := range verdict.Judge(r).Findings {
			if f.Rule == "lag" {
				t.Errorf("%s: %+v", l.Name, f)
			}
		}
	}
}

// process has this number of arrivals, the fastest of which took half as long as the others.
func process(samples int64, p record.ArrivalProcess) func(rec, ld) {
	return func(r rec, l ld) {
		l.ResponseTime = flat(10000, ms)
		slowest(9900, 2*ms, func(l ld) {
			for _, index := range []*float64{
				&p.Dispersion1ms, &p.Dispersion10ms, &p.Dispersion100ms,
			} {
				*index = cmp.Or(*index, 1)
			}
			l.ArrivalProcess = p
			l.ArrivalProcess.Samples = samples
		})(r, l)
	}
}

// spaced has constant arrivals whose gaps are off.
func spaced(rate float64, offNs int64) func(rec, ld) {
	return func(_ rec, l ld) {
		l.Arrivals, l.RatePerS = "constant", rate
		l.ArrivalProcess = record.ArrivalProcess{Samples: 10000, GapDeviationNs: offNs}
	}
}

var sampleRows = []row{
	// An interval of p99 needs n(1 - 0.99) >= 1.96²·0.99: n >= 380.3.
	{"samples", half, valid, answered(381, 0)}, // what they are worth is not known
	{"samples", half, noted, answered(380, 0)},
	{"samples", peak, noted, answered(380, 1)},
	// 10,000 × 0.0381 = 381.
	{"samples", half, valid, answered(10000, 0.0381)},
	{"samples", half, noted, answered(10000, 0.038)},
	// 600 × 0.5 = 300, but a share of half may be chance; 600 × 0.49 = 294.
	{"samples", half, valid, answered(600, 0.5)},
	{"samples", half, noted, answered(600, 0.49)},

	// Half the difference of 2 ms and 2.1237 is 3 % of their mean.
	{"settled", half, noted, medians(2*ms, 2.1237*ms, 20)},
	{"settled", half, suspect, medians(2*ms, 2.124*ms, 20)},
	{"settled", half, noted, medians(2.1237*ms, 2*ms, 20)},
	{"settled", half, suspect, medians(2.124*ms, 2*ms, 20)},
	// 7 intervals a half are too few.
	{"settled", half, valid, medians(2*ms, 9*ms, 7)},
	{"settled", half, suspect, medians(2*ms, 9*ms, 8)},
	// 18 of 20 of the second half are slower than each of the first: 9 pairs of 10; then 17.
	{"settled", half, suspect, mixed(18)},
	{"settled", half, valid, mixed(17)},
	// If intervals have no response, the others decide: 5 of 5.
	{"settled", half, suspect, func(_ rec, l ld) {
		medians(2*ms, 9*ms, 20)(nil, l)
		clear(l.Series.P50Ns[25:30])
	}},
	// They are no times of 0: 2 ms in 9 of 20 intervals, then 2.1, is off by 2.4 %. 7 are too few.
	{"settled", half, noted, func(_ rec, l ld) {
		medians(2*ms, 2.1*ms, 20)(nil, l)
		clear(l.Series.P50Ns[:11])
	}},
	{"settled", half, valid, func(_ rec, l ld) {
		medians(2*ms, 9*ms, 20)(nil, l)
		clear(l.Series.P50Ns[:13])
	}},
	{"settled", half, valid, func(_ rec, l ld) { clear(l.Series.P50Ns) }},
	{"settled", half, valid, func(_ rec, l ld) { clear(l.Series.P50Ns[:20]) }},
	// If the rate changes, the times may change; in the closed model drift checks throughput.
	{"settled", half, valid, func(_ rec, l ld) {
		medians(2*ms, 9*ms, 20)(nil, l)
		l.Shape = "ramp 500..1500 in 10s"
	}},
	{"settled", half, valid, func(_ rec, l ld) {
		medians(2*ms, 9*ms, 20)(nil, l)
		l.Arrivals = "replay"
	}},
	{"settled", peak, valid, medians(2*ms, 9*ms, 20)},
}

// answered has n responses, of which a share counts as independent.
func answered(n int64, effective float64) func(rec, ld) {
	return func(_ rec, l ld) {
		l.ResponseTime.Count, l.Answered, l.Autocorrelation.EffectiveShare = n, n, effective
	}
}

// TestSamplesAreEnough checks from how many responses, and from which worth of them, a record has
// no note on samples.
func TestSamplesAreEnough(t *testing.T) {
	check := func(n int64, effective float64, driver string, want bool) {
		t.Helper()
		r := healthy()
		l := &r.Loads[0]
		answered(n, effective)(r, l)
		l.Driver = driver
		noted := slices.ContainsFunc(verdict.Judge(r).Findings, func(f record.Finding) bool {
			return f.Rule == "samples" && f.Load == l.Name
		})
		if noted != want {
			t.Errorf("%d responses, %v of them by %q: noted %v, want %v", n, effective, driver,
				noted, want)
		}
	}
	check(381, 0, "", false)
	check(380, 0, "", true)
	check(380, 1, "", true)
	check(10000, 0.0381, "", false)
	check(10000, 0.038, "", true)
	check(600, 0.5, "", false)
	check(600, 0.49, "", true)
	check(0, 0, "", true)
	check(0, 0, "wrk 4.2.0", false) // it counts none
	check(1, 0, "wrk 4.2.0", true)
}

// medians sets the medians of the intervals of both halves.
func medians(first, second int64, half int) func(rec, ld) {
	return func(_ rec, l ld) {
		l.Series.P50Ns = slices.Concat(slices.Repeat([]int64{first}, half),
			slices.Repeat([]int64{second}, half))
	}
}

// mixed has n slow intervals in the second half and faster ones than any before.
func mixed(n int) func(rec, ld) {
	return func(_ rec, l ld) {
		medians(2*ms, ms, 20)(nil, l)
		for i := range n {
			l.Series.P50Ns[20+i] = 9 * ms
		}
	}
}

var foreignRows = []row{
	{"third-party tool", half, suspect, by("wrk2 4.0.0", nil)},
	{"third-party tool", half, valid, by("Lancet 1", func(l ld) {
		l.OwnLag = flat(10000,
			ms/100)
	})},
	{"third-party tool", half, valid, by("hey 0.1.4", untimed)},
	{"third-party tool", half, suspect, by("k6 1.3.0",
		func(l ld) { l.ResponseTime = record.Dist{} })},
	{"third-party tool", half, suspect, by("vegeta 12", func(l ld) { // percentiles only
		l.ResponseTime, l.ServiceTime = record.Dist{}, record.Dist{P99Ns: 2 * ms}
	})},
	{"third-party tool", peak, valid, by("hey 0.1.4", nil)},
	{"third-party tool", peak, suspect, by("wrk 4.1.0", nil)},
	{"third-party tool", peak, valid, by("wrk 4.1.0", untimed)},
	{"third-party tool", peak, valid, by("wrk2 4.0.0", nil)},
	{"third-party tool", peak, valid, by("wrk 4.1.0",
		func(l ld) { l.ServiceTime.HDR = "restored" })},
	{"third-party tool", half, suspect, by("wrk2 4.0.0",
		func(l ld) { l.ServiceTime.HDR = "some" })},

	// Rules for all loads also apply to tools.
	{"capacity", half, invalid, by("wrk2 4.0.0", func(l ld) { l.BacklogPerS = 10.1 })},

	// 1 % fewer than the responses, 1 % more than responses and errors.
	{"sums", peak, valid, by("hey 0.1.4", func(l ld) { l.Answered = 10101 })},
	{"sums", peak, suspect, by("hey 0.1.4", func(l ld) { l.Answered = 10102 })},
	{"sums", peak, valid, by("oha 1.4", func(l ld) { l.Answered, l.Errors.Read = 9801, 100 })},
	{"sums", peak, suspect, by("oha 1.4", func(l ld) { l.Answered, l.Errors.Read = 9800, 100 })},
	{"sums", peak, valid, by("hey 0.1.4", func(l ld) {
		l.ResponseTime, l.ServiceTime = record.Dist{P99Ns: 70 * ms}, record.Dist{}
	})},
	{"sums", half, suspect, by("k6 1.3.0", func(l ld) { // of service times, where it has no others
		l.ResponseTime, l.ServiceTime.Count = record.Dist{}, 5000
	})},

	{"range", peak, valid, by("JMeter 5.6", func(l ld) { l.ResponseTime.MaxNs = 1 << 41 })},

	// A tool reports some of the values, which must be in order.
	{"order", peak, valid, by("ab 2.3", func(l ld) {
		l.ResponseTime = record.Dist{Count: 10000, MinNs: 2, P50Ns: 3, P99Ns: 4}
	})},
	{"order", peak, valid, by("ab 2.3", func(l ld) {
		l.ResponseTime = record.Dist{Count: 10000, MeanNs: 3, P50Ns: 3, P99Ns: 4}
	})},
	{"order", peak, invalid, by("ab 2.3", func(l ld) {
		l.ResponseTime = record.Dist{Count: 10000, P50Ns: 5, P99Ns: 4}
	})},
	{"order", peak, invalid, by("ab 2.3", func(l ld) {
		l.ResponseTime = record.Dist{Count: 10000, MeanNs: 9, P50Ns: 3, MaxNs: 8}
	})},
}

// untimed has a load that a tool only counted.
func untimed(l ld) { l.ResponseTime, l.ServiceTime = record.Dist{}, record.Dist{} }

// by has a load from a third-party tool, which has only its counts and times.
func by(driver string, change func(ld)) func(rec, ld) {
	return func(_ rec, l ld) {
		*l = record.Load{
			Name: l.Name, Driver: driver, Model: l.Model, Connections: 64, RatePerS: l.RatePerS,
			WindowNs: l.WindowNs, Done: 10000, Answered: 10000, ThroughputPerS: 1000,
			ResponseTime: l.ResponseTime, ServiceTime: l.ServiceTime,
		}
		if change != nil {
			change(l)
		}
	}
}

// stuck has a request under way at every moment, and this number that waited for a connection.
func stuck(waited int64) func(rec, ld) {
	return slowest(250, 4*ms, func(l ld) {
		l.PunctualTime = flat(10000, 1)
		l.OwnLag, l.Waited = flat(10000, 0.001*ms), waited
	})
}
