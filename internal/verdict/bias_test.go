package verdict_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony/internal/result"
	"prony/internal/verdict"
)

// pauses are stretches in which nothing moves, in order: each begins and ends so many ns from the
// start.
type pauses [][2]int64

// over is when what is to happen at a moment happens.
func (p pauses) over(at int64) int64 {
	i, _ := slices.BinarySearchFunc(p, at, func(s [2]int64, at int64) int {
		if s[1] <= at {
			return -1
		}
		return 1
	})
	if i < len(p) && p[i][0] <= at {
		return p[i][1]
	}
	return at
}

// pausing is pauses of d each, about so long apart, at random.
func pausing(r *rand.Rand, d, apart, end int64) (p pauses) {
	if d == 0 {
		return nil
	}
	for at := int64(r.ExpFloat64() * float64(apart)); at < end; {
		p = append(p, [2]int64{at, at + d})
		at += d + int64(r.ExpFloat64()*float64(apart))
	}
	return p
}

// served is 40,000 Poisson arrivals at half of a server's capacity, whose times are exponential
// with a mean of 1 ms (M/M/1), from a generator and by a server that pause.
func served(seed uint64, sender, server pauses) (responses, lags []int64) {
	r := rand.New(rand.NewPCG(seed, 1))
	due, free := 0.0, int64(0)
	for range 40000 {
		due += r.ExpFloat64() * 2 * ms
		sent := sender.over(int64(due))
		begin := max(sent, free)
		work := int64(r.ExpFloat64() * ms)
		for at := begin; ; { // the server works between its pauses
			at = server.over(at)
			i, _ := slices.BinarySearchFunc(server, at, func(s [2]int64, at int64) int {
				if s[0] < at {
					return -1
				}
				return 1
			})
			if i == len(server) || at+work <= server[i][0] {
				free = at + work
				break
			}
			work -= server[i][0] - at
			at = server[i][0]
		}
		responses = append(responses, free-int64(due)+50e3) // the network's share
		lags = append(lags, max(sent-int64(due), 1))
	}
	return responses, lags
}

func distribution(t *testing.T, values []int64) result.Dist {
	t.Helper()
	h := hdrhistogram.New(1, 100*sec, 3)
	for _, v := range values {
		if err := h.RecordValue(v); err != nil {
			t.Fatal(err)
		}
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	at := h.ValueAtPercentile
	return result.Dist{Count: h.TotalCount(), MinNs: h.Min(), MeanNs: h.Mean(), P50Ns: at(50),
		P90Ns: at(90), P99Ns: at(99), P999Ns: at(99.9), MaxNs: h.Max(), HDR: string(text)}
}

// disturbed compares what was measured with what the same requests would have been without a
// disturbance: no number may have moved by more than the rule says. It tells how the load is graded
// and the largest share that p99 moved by.
func disturbed(t *testing.T, rule string, sender, server func(*rand.Rand) pauses,
	share func(pauses, pauses) float64) (grade string, moved float64) {
	t.Helper()
	const end = 80 * sec
	grade = valid
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 2))
		from, by := sender(r), server(r)
		want, _ := served(seed, nil, nil)
		have, lags := served(seed, from, by)
		rec := healthy()
		rec.Loads = rec.Loads[:1]
		l := &rec.Loads[0]
		l.ResponseTime, l.OwnLag = distribution(t, have), distribution(t, lags)
		l.Lag = result.Dist{}
		l.Scheduled, l.Sent, l.Done, l.Answered = 40000, 40000, 40000, 40000
		l.WindowNs, l.Host = end, result.Host{StealShare: share(from, by)}
		l.ServiceTime, l.InFlightMean = result.Dist{}, 0
		v := verdict.Judge(rec)
		bound := map[string]float64{}
		for _, f := range v.Findings {
			if f.Rule == rule {
				for _, m := range f.Moves {
					bound[m.Number] = m.By
				}
				if f.Grade != valid {
					grade = f.Grade
				}
			}
		}
		truth := distribution(t, want)
		for number, ns := range map[string][2]int64{
			"p50": {l.ResponseTime.P50Ns, truth.P50Ns}, "p90": {l.ResponseTime.P90Ns, truth.P90Ns},
			"p99": {l.ResponseTime.P99Ns, truth.P99Ns},
		} {
			off := float64(ns[0]-ns[1]) / float64(ns[0])
			// A histogram has three digits, and what moves less than a bound worth telling is not.
			if max(off, -off) > bound[number]+0.004 {
				t.Errorf("seed %d, %s: %s moved by %.4f, bound %.4f", seed, rule, number, off,
					bound[number])
			}
			if number == "p99" {
				moved = max(moved, off)
			}
		}
	}
	return grade, moved
}

// What the generator was late by is never more than the bound of lag, and a lag of microseconds
// beside milliseconds is no doubt.
func TestLagIsBounded(t *testing.T) {
	check := func(d, apart int64, want string) {
		t.Helper()
		grade, moved := disturbed(t, "lag",
			func(r *rand.Rand) pauses { return pausing(r, d, apart, 80*sec) },
			func(*rand.Rand) pauses { return nil }, func(pauses, pauses) float64 { return 0 })
		if grade != want {
			t.Errorf("pauses of %d ns every %d: %s, want %s; p99 moved by %.4f", d, apart, grade,
				want, moved)
		}
	}
	check(0, 0, valid)
	check(0.02*ms, 10*ms, valid)       // one of 500 late by 20 µs
	check(0.1*ms, 100*ms, valid)       // one of a thousand by 100 µs
	check(10*ms, 100*ms, suspect)      // a tenth by 10 ms
	check(100*ms, 10*1000*ms, suspect) // one of a hundred by 100 ms
}

// What a server stood still for is never more than the bound of steal.
func TestStealIsBounded(t *testing.T) {
	check := func(d, apart int64, want string) {
		t.Helper()
		grade, moved := disturbed(t, "steal", func(*rand.Rand) pauses { return nil },
			func(r *rand.Rand) pauses { return pausing(r, d, apart, 80*sec) },
			func(_, server pauses) (share float64) {
				for _, p := range server {
					share += float64(p[1]-p[0]) / (80 * sec)
				}
				return share
			})
		if grade != want {
			t.Errorf("stolen for %d ns every %d: %s, want %s; p99 moved by %.4f", d, apart, grade,
				want, moved)
		}
	}
	check(0.02*ms, 500*ms, valid)
	check(10*ms, 1000*ms, suspect)
	check(4*ms, 100*ms, suspect)
	check(100*ms, 4000*ms, suspect)
}
