package selftest

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/base/clock"
	"prony.example/internal/generator/truth"
	"prony.example/load/pace"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// anyway is a limit for numbers that a fault moves on purpose.
const anyway = 100

// Verdicts returns cases with faults, each in strengths from none to far too much; they take about
// a minute. The number without the fault is known, and so is the fault's effect. The verdict must
// doubt a number that moved by more than its uncertainty, and no number if there was no fault.
func Verdicts() []Case {
	var out []Case
	for _, busy := range []time.Duration{0, 2 * ms, 20 * ms, 80 * ms} {
		out = append(out, neighbour(busy))
	}
	for _, connections := range []int{64, 7, 6} {
		out = append(out, crowd(connections))
	}
	for _, cold := range []time.Duration{20 * ms, 25 * ms, 40 * ms} {
		out = append(out, settling(cold))
	}
	return out
}

// neighbour runs another thread on the generator's core for busy of every fifth of a second. The
// generator then sends late, which counts as response time.
func neighbour(busy time.Duration) Case {
	const service, rho, every = 2 * ms, 0.5, 200 * ms
	spec := lead(open(pace.Poisson, rho/service.Seconds(), 256, 6*sec), 500*ms)
	spec.Ahead = false // the neighbor's turns are intended
	return Case{
		Name: fmt.Sprintf("neighbour %v", busy), Kind: "mm1",
		Params: truth.Params{Service: service, Seed: seed},
		Spec:   spec,
		slack:  service / 10, isExtra: func() func() { return spinning(busy, every) },
		Known: fmt.Sprintf("s = %v, ρ = %g: Lindley's recursion; another program uses the "+
			"generator's core for %v of every %v", service, rho, busy, every),
		lines: func(c *Case, m *measured) []Line {
			due := arrivals(&c.Spec)
			want := distribution(lindley(due, truth.Exponential(service, seed))[before(due,
				int64(c.Spec.Lead)):])
			return doubted(c, m, "p99", want.ValueAtQuantile(99), busy > 0)
		},
	}
}

// crowd is a service with unlimited concurrency, loaded over several connections by arrivals that
// keep five of them busy.
func crowd(connections int) Case {
	const service, perS = 10 * ms, 500.0
	return Case{
		Name: fmt.Sprintf("%d connections", connections), Kind: "fixed",
		Params: truth.Params{Service: service},
		Spec:   lead(open(pace.Poisson, perS, connections, 4*sec), 500*ms),
		slack:  service / 50,
		Known: fmt.Sprintf("d = %v, R = %g/s, N = %d connections: d, if there were enough "+
			"connections", service,
			perS, connections),
		lines: func(c *Case, m *measured) []Line {
			return doubted(c, m, "p99", int64(service), connections < 10)
		},
	}
}

// settling is a service during its warm-up: response times fall. From 25 ms on, the halves of the
// window differ by 11 %, which is significant with 32 connections and hardly with 16.
func settling(cold time.Duration) Case {
	const service, connections, window = 20 * ms, 32, 4 * sec
	return Case{
		Name: fmt.Sprintf("from %v", cold), Kind: "warmup",
		Params: truth.Params{Cold: cold, Service: service, After: window},
		Spec:   closed(connections, window), slack: service / 50,
		Known: fmt.Sprintf("the service time A = %v falls to B = %v in %v, N = %d connections: "+
			"N/B at the end", cold, service,
			window, connections),
		lines: func(c *Case, m *measured) []Line {
			return doubted(c, m, metric.Throughput, int64(connections/service.Seconds()),
				cold > service)
		},
	}
}

// doubted compares the verdict on one number with the number's known value.
func doubted(c *Case, m *measured, number string, known int64, fault bool) []Line {
	rec := &record.Record{Outcome: record.Measured, Loads: []record.Load{m.Load},
		Warmup: record.Warmup{Steady: true}}
	actual := 0.0
	if doubts(verdict.Judge(rec), number) {
		actual = 1
	}
	lines := held(m, number, known, fault, actual)
	if c.slack > 0 && m.delayed(c.isExtra == nil) > c.slack {
		lines[1] = lines[1].between(0, 1)
	}
	return lines
}

// delayed returns the machine's mean delay of a request. withLoad includes the load's waiting,
// which some cases provoke.
func (m *measured) delayed(withLoad bool) time.Duration {
	ns := m.machine.serverNs() + float64(m.machine.ServerLateNs)
	if withLoad {
		ns += m.machine.loadNs()
	}
	return time.Duration(ns / float64(max(m.server.Requests, 1)))
}

// held reports how far a number moved, and whether the verdict's doubt, or lack of doubt, is right.
func held(m *measured, number string, known int64, fault bool, actual float64) []Line {
	l := &m.Load
	subject, got, within := PerS, l.ThroughputPerS, record.Resolution
	if number != metric.Throughput {
		subject, got = Ns, float64(l.ResponseTime.P99Ns)
		within = max(within, uncertain(l, 0.99))
	}
	moved := line(number, "without it", subject, float64(known), got, anyway)
	want, free := 0.0, 0.0
	switch {
	case math.Abs(moved.OffBy) > within:
		want = 1
	case fault: // a fault without effect may be doubted
		want, free = 1, 1
	}
	return []Line{moved, line("doubted", fmt.Sprintf("if wrong by > %.1f %%", 100*within), Plain,
		want, actual, free)}
}

// doubts reports whether a verdict doubts a number of its load.
func doubts(v record.Verdict, number string) bool {
	for _, f := range v.Findings {
		about := len(f.PossibleBias) == 0
		for _, m := range f.PossibleBias {
			about = about || m.Metric == number
		}
		if about && f.Grade != record.Valid {
			return true
		}
	}
	return false
}

// uncertain returns half of a percentile's interval, relative to the percentile.
func uncertain(l *record.Load, q float64) float64 {
	share, _ := l.Autocorrelation.Worth()
	lo, hi, ok := stats.QuantileRanks(l.ResponseTime.Count, share, q, 0.95)
	h, err := l.ResponseTime.Histogram()
	if !ok || h == nil || err != nil {
		return 0
	}
	valueAt := func(rank int64) float64 {
		return float64(h.ValueAtQuantile(100 * float64(rank) / float64(h.TotalCount())))
	}
	return (valueAt(hi) - valueAt(lo)) / 2 / max(float64(l.ResponseTime.P99Ns), 1)
}

// spinning keeps a core busy for some of every period, until stop is called, with a thread of this
// process, which is limited to the generator's cores.
func spinning(busy, every time.Duration) (stop func()) {
	if busy == 0 {
		return func() {}
	}
	over := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		runtime.LockOSThread()
		remaining := time.NewTicker(every)
		defer remaining.Stop()
		for {
			for until := clock.Mono() + int64(busy); clock.Mono() < until; {
			}
			select {
			case <-over:
				return
			case <-remaining.C:
			}
		}
	})
	return func() {
		close(over)
		done.Wait()
	}
}
