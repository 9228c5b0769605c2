package verdict_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// pauses are intervals without progress, in order: each has its beginning and end in ns from the
// start.
type pauses [][2]int64

// over returns when an event planned for a moment happens.
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

// pausing returns pauses of d each, at random distances of apart on average.
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

// station has 40,000 Poisson arrivals at half of a service's capacity, with a mean time of 1 ms for
// each of its servers, from a generator with this number of connections.
type station struct {
	servers, connections int
	heavy                bool // times vary much more than exponential ones (log-normal, σ = 1.5)
	sender, server       pauses
	// late is the generator's lateness beyond its pauses, by the number of requests under way.
	late func(r *rand.Rand, underWay int) int64
}

const served = 40000

// run returns the generator's measurements, with the same accounting as package load.
func (q station) run(seed uint64) (responses, punctual, lags []int64, waited int64) {
	r, noise := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 3))
	busy := make([]int64, q.servers) // until when
	var underWay []request           // by their end
	due, free, held := 0.0, make([]chain, q.connections), int64(0)
	for range served {
		due += r.ExpFloat64() * 2 * ms / float64(q.servers)
		work := int64(r.ExpFloat64() * ms)
		if q.heavy {
			work = int64(math.Exp(1.5*r.NormFloat64()-1.5*1.5/2) * ms)
		}
		at := int64(due)
		ended := func(until int64) {
			for len(underWay) > 0 && underWay[0].end <= until {
				e := underWay[0]
				underWay = underWay[1:]
				free = append(free, chain{e.end, held})
				responses = append(responses, e.end-e.due)
				punctual = append(punctual, max(e.end-e.due-held, 1))
			}
		}
		ended(at)
		if len(free) == 0 {
			ended(underWay[0].end)
		}
		from := free[0]
		free = free[1:]
		sent := max(at, from.since)
		if q.late != nil {
			sent += q.late(noise, len(underWay))
		}
		sent = q.sender.over(sent)
		ended(sent)
		own := sent - max(at, from.since)
		if len(underWay) == 0 {
			held = 0
		}
		lags = append(lags, max(own, 1))
		if from.since > at {
			own += from.held
			waited++
		}
		held = max(held, own)
		first := slices.Index(busy, slices.Min(busy))
		busy[first] = q.server.work(max(sent, busy[first]), work)
		e := request{at, busy[first] + 50e3} // the network's share
		k, _ := slices.BinarySearchFunc(underWay, e, func(a, b request) int {
			return cmp.Compare(a.end, b.end)
		})
		underWay = slices.Insert(underWay, k, e)
	}
	for _, e := range underWay {
		responses = append(responses, e.end-e.due)
		punctual = append(punctual, max(e.end-e.due-held, 1))
	}
	return responses, punctual, lags, waited
}

// truth returns the true response times. Without pauses it runs once for each seed.
func (q station) truth(t *testing.T, seed uint64) record.Dist {
	t.Helper()
	measure := func() record.Dist {
		responses, _, _, _ := q.run(seed)
		return distribution(t, responses)
	}
	if q.sender != nil || q.server != nil || q.late != nil {
		return measure()
	}
	k := calm{q.servers, q.connections, q.heavy, seed}
	if _, known := truths[k]; !known {
		truths[k] = measure()
	}
	return truths[k]
}

var truths = map[calm]record.Dist{}

type calm struct {
	servers, connections int
	heavy                bool
	seed                 uint64
}

type request struct{ due, end int64 }

// chain is a free connection: the time since when it is free, and the largest possible lateness of
// its last response.
type chain struct{ since, held int64 }

// work returns when work that begins at a moment ends: none is done in a pause.
func (p pauses) work(at, work int64) int64 {
	for {
		at = p.over(at)
		i, _ := slices.BinarySearchFunc(p, at, func(s [2]int64, at int64) int {
			return cmp.Compare(s[0], at)
		})
		if i == len(p) || at+work <= p[i][0] {
			return at + work
		}
		work -= p[i][0] - at
		at = p[i][0]
	}
}

func distribution(t *testing.T, values []int64) record.Dist {
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
	return record.Dist{Count: h.TotalCount(), MinNs: h.Min(), MeanNs: h.Mean(), P50Ns: at(50),
		P90Ns: at(90), P99Ns: at(99), P999Ns: at(99.9), MaxNs: h.Max(), HDR: string(text)}
}

// disturbed compares measurements with those of the same requests without a disturbance: no number
// may have moved by more than the rule's bound. It returns the load's grade and the largest share
// by which p99 moved. If plain is true, the record does not have the punctual times.
func disturbed(t *testing.T, seeds uint64, rule string, plain bool,
	of func(*rand.Rand) (was, truth station),
	change func(*record.Record, station)) (grade string, moved float64) {
	t.Helper()
	grade = valid
	for seed := range seeds {
		g, m := disturbedOnce(t, seed, rule, plain, of, change)
		if moved = max(moved, m); g != valid {
			grade = g
		}
	}
	return grade, moved
}

// disturbedOnce does the same for one seed.
func disturbedOnce(t *testing.T, seed uint64, rule string, plain bool,
	of func(*rand.Rand) (was, truth station),
	change func(*record.Record, station)) (grade string, moved float64) {
	t.Helper()
	grade = valid
	was, clean := of(rand.New(rand.NewPCG(seed, 2)))
	truth := clean.truth(t, seed)
	have, punctual, lags, waited := was.run(seed)
	rec := healthy()
	rec.Loads = rec.Loads[:1]
	l := &rec.Loads[0]
	l.ResponseTime, l.OwnLag = distribution(t, have), distribution(t, lags)
	if !plain {
		l.PunctualTime = distribution(t, punctual)
	}
	l.Lag = record.Dist{}
	l.Scheduled, l.Sent, l.Done, l.Answered = served, served, served, served
	l.Waited, l.Connections, l.WindowNs = waited, was.connections, end
	l.Host = record.Host{}
	l.ServiceTime, l.InFlightMean = record.Dist{}, 0
	if change != nil {
		change(rec, was)
		l = &rec.Loads[0]
	}
	v := verdict.Judge(rec)
	bound := map[string]float64{}
	for _, f := range v.Findings {
		if f.Rule == rule {
			for _, m := range f.PossibleBias {
				bound[m.Metric] = m.Share
			}
			if f.Grade != valid {
				grade = f.Grade
			}
		}
	}
	for number, ns := range map[string][2]int64{
		"p50": {l.ResponseTime.P50Ns, truth.P50Ns}, "p90": {l.ResponseTime.P90Ns, truth.P90Ns},
		"p99":   {l.ResponseTime.P99Ns, truth.P99Ns},
		"p99.9": {l.ResponseTime.P999Ns, truth.P999Ns},
	} {
		off := float64(ns[0]-ns[1]) / float64(ns[0])
		// A histogram has three digits, and smaller bounds are not reported.
		if max(off, -off) > bound[number]+0.004 {
			t.Errorf("seed %d, %s: %s moved by %.4f, bound %.4f", seed, rule, number, off,
				bound[number])
		}
		if number == "p99" {
			moved = max(moved, off)
		}
	}
	return grade, moved
}

const end = 80 * sec

// single is M/M/1, with enough connections.
var single = station{servers: 1, connections: 1 << 12}

// TestLagIsBounded checks that the effect of the generator's lateness never exceeds the bound of
// lag, and that a lag of microseconds among milliseconds is VALID. With punctual times the bound is
// closer.
func TestLagIsBounded(t *testing.T) {
	testsets.Whole(t, "many simulated loads")
	check := func(d, apart int64, want, plain string) {
		t.Helper()
		of := func(r *rand.Rand) (was, truth station) {
			was = single
			was.sender = pausing(r, d, apart, end)
			return was, single
		}
		for k, want := range []string{want, plain} {
			if grade, moved := disturbed(t, 10, "lag", k == 1, of, nil); grade != want {
				t.Errorf("pauses of %d ns every %d, plain %v: %s, want %s; p99 moved by %.4f", d,
					apart, k == 1, grade, want, moved)
			}
		}
	}
	check(0, 0, valid, valid)
	check(0.02*ms, 10*ms, valid, valid)         // one of 500 late by 20 µs
	check(0.1*ms, 100*ms, valid, valid)         // one of a thousand by 100 µs
	check(10*ms, 100*ms, suspect, suspect)      // a tenth by 10 ms
	check(100*ms, 10*1000*ms, suspect, suspect) // one of a hundred by 100 ms
}

// TestLagOfOtherQueues checks the same for other services and pauses: no disturbance is missed.
func TestLagOfOtherQueues(t *testing.T) {
	testsets.Whole(t, "many simulated loads")
	jitter := func(mean int64) func(*rand.Rand, int) int64 {
		return func(r *rand.Rand, _ int) int64 { return int64(r.ExpFloat64() * float64(mean)) }
	}
	loaded := func(r *rand.Rand, underWay int) int64 { // on a core that both share
		return int64(r.ExpFloat64() * 0.05 * ms * float64(underWay))
	}
	heavy, several, few := single, single, single
	heavy.heavy, several.servers, few.servers, few.connections = true, 8, 8, 12
	for name, truth := range map[string]station{"M/M/1": single, "M/G/1": heavy, "M/M/8": several,
		"M/M/8 over 12 connections": few} {
		for _, p := range [][2]int64{{0, 0}, {0.2 * ms, 2 * ms}, {30 * ms, 3000 * ms},
			{500 * ms, 30000 * ms}} {
			for kind, late := range map[string]func(*rand.Rand, int) int64{
				"none": nil, "jitter of 5 µs": jitter(0.005 * ms),
				"jitter of 200 µs": jitter(0.2 * ms), "by load": loaded} {
				t.Run(fmt.Sprintf("%s, %d ms every %d, %s", name, p[0]/ms, p[1]/ms, kind),
					func(t *testing.T) {
						disturbed(t, 2, "lag", false, func(r *rand.Rand) (was, clean station) {
							was = truth
							was.sender, was.late = pausing(r, p[0], p[1], end), late
							return was, truth
						}, nil)
					})
			}
		}
	}
}

// TestStealIsBounded checks that the effect of a server's pauses never exceeds the bound of steal.
func TestStealIsBounded(t *testing.T) {
	check := func(d, apart int64, want string) {
		t.Helper()
		grade, moved := disturbed(t, 10, "steal", false, func(r *rand.Rand) (was, truth station) {
			was = single
			was.server = pausing(r, d, apart, end)
			return was, single
		}, func(r *record.Record, was station) {
			for _, p := range was.server {
				r.Loads[0].Host.StealShare += float64(p[1]-p[0]) / end
			}
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

// TestWaitsAreBounded checks that the effect of waits for a connection never exceeds the bound of
// waited: with more connections, requests still wait for a service without unused processor time,
// but not for one with some.
func TestWaitsAreBounded(t *testing.T) {
	testsets.Whole(t, "many simulated loads")
	check := func(servers, connections int, used float64, want string) {
		t.Helper()
		grade, moved := disturbed(t, 10, "waited", false, func(r *rand.Rand) (was, truth station) {
			was = station{servers: servers, connections: connections,
				server: pausing(r, 30*ms, 1000*ms, end)}
			truth = was
			truth.connections = 1 << 12
			return was, truth
		}, func(r *record.Record, was station) {
			closed := healthy().Loads[1]
			closed.Connections, closed.Service.CPUShare = connections, used
			closed.ThroughputPerS = 1000 * float64(min(servers, connections))
			r.Loads[0].RatePerS = 500 * float64(servers)
			r.Loads = append(r.Loads, closed)
		})
		if grade != want {
			t.Errorf("%d servers, %d connections, %v used: %s, want %s; p99 moved by %.4f", servers,
				connections, used, grade, want, moved)
		}
	}
	// One server that always works: the closed load leaves no time unused.
	check(1, 16, 1, valid)
	check(1, 4, 1, valid)
	// Of 32 parallel servers the connections leave one without work.
	check(32, 31, 31./32, suspect)
	// Sixteen parallel servers with connections for ten: they use 10 of 16 cores.
	check(16, 10, 10./16, suspect)
	check(16, 10, 0, suspect) // nobody looked
}

// TestBoundsOfEachLoad sums the bounds of each load's own findings.
func TestBoundsOfEachLoad(t *testing.T) {
	r := healthy()
	slowest(150, 4*ms, func(l ld) { l.Reconnects = 101 })(r, &r.Loads[0])
	l := &r.Loads[1]
	l.Reconnects, l.Connections, l.TLSTime.MeanNs = 101, 100, 28.75e6
	r.Limits.CPUs, l.ConnectTime = 10, record.Dist{}
	var got []string
	for _, f := range verdict.Judge(r).Findings {
		if f.Rule == "connections" {
			got = append(got, f.Load+" "+f.Grade)
		}
	}
	if !slices.Equal(got, []string{half + " " + suspect, peak + " " + suspect}) {
		t.Errorf("%q", got)
	}
}
