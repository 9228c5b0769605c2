package selftest

import (
	"fmt"
	"math"
	"strings"
	"time"

	"prony.example/internal/generator/truth"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// seed of arrivals, and of service times where there are any.
const seed = 20

// Limits. What takes its time is late by what two wake-ups of a virtual machine cost, some 200 µs
// in all: the times are chosen so that this is half of the limit or less.
const (
	close2  = 0.02
	close3  = 0.03
	close5  = 0.05
	half    = 0.5
	exactly = 0
)

// Cases are about a minute of proof.
func Cases() []Case {
	return []Case{
		stall(), pause(), md1(), mm1(), capacity(), overload(), fixed(), limited(), warmup(),
		wrong(), reset(), silent(), hang(), shed(), keepalive(), drip(), ownLag(), spin(),
	}
}

// open is a load of arrivals on a schedule.
func open(arrivals string, perS float64, connections int, window time.Duration) load.Spec {
	return load.Spec{
		Model: record.Open, Schedule: pace.Schedule{Arrivals: arrivals, Rate: pace.Flat(perS)},
		Connections: connections, Seed: seed, Window: window, Drain: sec, Timeout: 5 * sec,
		Scenario: asking(truth.Body),
	}
}

// closed is a load of connections that always ask.
func closed(connections int, window time.Duration) load.Spec {
	return load.Spec{
		Model: record.Closed, Connections: connections, Seed: seed, Window: window, Drain: sec,
		Timeout: 5 * sec, Scenario: asking(truth.Body),
	}
}

// asking wants a body, byte for byte.
func asking(body string) load.Scenario {
	return load.Scenario{KeyLo: 1, KeyHi: 1, Requests: []load.Request{
		{Method: "GET", Path: "/", Want: body, HasWant: true},
	}}
}

// lead begins the load before its window.
func lead(s load.Spec, d time.Duration) load.Spec {
	s.Lead = d
	return s
}

// stall is what coordinated omission cannot pass (G. Tene, "How NOT to Measure Latency"): a freeze
// of s in a window T leaves the share (s−x)/T of the requests waiting for longer than x.
func stall() Case {
	const freeze, window, perS = sec, 4 * sec, 400.0
	return Case{
		Name: "stall", Kind: "stall", Params: truth.Params{After: 1500 * ms, Stall: freeze},
		Spec: lead(open(pace.Constant, perS, 64, window), 500*ms), slack: freeze / 800,
		Known: "a freeze of s = 1 s in T = 4 s at R = 400/s, with 64 connections",
		lines: func(_ *Case, m *measured) []Line {
			r := &m.ResponseTime
			const above = 50 * ms
			return []Line{
				line("held up > 50 ms", "R·(s−50 ms)", Plain, perS*(freeze-above).Seconds(),
					countAbove(r, above), close2),
				line("mean", "s²/2T", Ns, square(freeze)/(2*float64(window)), r.MeanNs, close2),
				line("p90", "s−0.1·T", Ns, freeze-window/10, r.P90Ns, close2),
				line("p99", "s−0.01·T", Ns, freeze-window/100, r.P99Ns, close2),
				line("longest", "s", Ns, freeze, r.MaxNs, close2),
				line("lag + service", "response", Ns, r.MeanNs, m.Lag.MeanNs+m.ServiceTime.MeanNs,
					close2),
			}
		},
	}
}

func square(d time.Duration) float64 { return float64(d) * float64(d) }

func pause() Case {
	const freeze, period, window, perS = 400 * ms, sec, 4 * sec, 300.0
	return Case{
		Name: "pause", Kind: "pause", Params: truth.Params{Stall: freeze, Every: period},
		Spec: lead(open(pace.Constant, perS, 64, window), 200*ms), slack: freeze / 500,
		Known: "a freeze of d = 400 ms in every P = 1 s, T = 4 s at R = 300/s",
		lines: func(_ *Case, m *measured) []Line {
			r := &m.ResponseTime
			const above = 20 * ms
			return []Line{
				line("held up > 20 ms", "R·T·(d−20 ms)/P", Plain,
					perS*window.Seconds()*float64(freeze-above)/float64(period),
					countAbove(r, above), close2),
				line("mean", "d²/2P", Ns, square(freeze)/(2*float64(period)), r.MeanNs, close2),
				line("p90", "d−0.1·P", Ns, freeze-period/10, r.P90Ns, close2),
				line("longest", "d", Ns, freeze, r.MaxNs, close2),
			}
		},
	}
}

// queue is a single server with Poisson arrivals at a load of rho.
func queue(name, kind string, service time.Duration, rho float64, window time.Duration,
	draw func(int64) time.Duration, textbook float64) Case {
	perS := rho / service.Seconds()
	c := Case{
		Name: name, Kind: kind, Params: truth.Params{Service: service, Seed: seed},
		Spec:  lead(open(pace.Poisson, perS, 256, window), 500*ms),
		slack: time.Duration(close2 / 2 * textbook),
		Known: fmt.Sprintf("s = %v, ρ = %g: Lindley's recursion over the run's own arrivals; the "+
			"mean of all such runs is %v", service, rho,
			time.Duration(textbook).Round(10*time.Microsecond)),
	}
	c.lines = func(c *Case, m *measured) []Line {
		r, due := &m.ResponseTime, arrivals(&c.Spec)
		want := distribution(lindley(due, draw)[before(due, c.Spec.Lead):])
		const of = "Lindley"
		return []Line{
			line("answered", "all that were due", Plain, want.TotalCount(), r.Count, exactly),
			line("mean", of, Ns, want.Mean(), r.MeanNs, close2),
			line("p50", of, Ns, want.ValueAtQuantile(50), r.P50Ns, 2*close2),
			line("p90", of, Ns, want.ValueAtQuantile(90), r.P90Ns, close2),
			line("p99", of, Ns, want.ValueAtQuantile(99), r.P99Ns, close2),
			line("longest", of, Ns, want.Max(), r.MaxNs, close2),
		}
	}
	return c
}

// md1 has the mean of Pollaczek and Khinchine: s + ρ·s/(2(1−ρ)).
func md1() Case {
	const service, rho = 10 * ms, 0.7
	return queue("M/D/1", "md1", service, rho, 7500*ms,
		func(int64) time.Duration { return service },
		float64(service)*(1+rho/(2*(1-rho))))
}

// mm1 has the mean s/(1−ρ).
func mm1() Case {
	const service, rho = 10 * ms, 0.6
	return queue("M/M/1", "mm1", service, rho, 7500*ms, truth.Exponential(service, seed),
		float64(service)/(1-rho))
}

// capacity keeps a queue from ever running empty.
func capacity() Case {
	const service, connections, window = 2 * ms, 8, 2 * sec
	return Case{
		Name: "capacity", Kind: "md1", Params: truth.Params{Service: service},
		Spec: lead(closed(connections, window), 200*ms), slack: 100 * time.Microsecond,
		Known: "one server, d = 2 ms, N = 8 connections that always ask",
		lines: func(_ *Case, m *measured) []Line {
			return []Line{
				line("throughput", "1/d", PerS, 1/service.Seconds(), m.ThroughputPerS, close3),
				line("mean", "N·d", Ns, connections*float64(service), m.ResponseTime.MeanNs,
					close3),
				line("under way", "N", Plain, connections, m.InFlightMean, close3),
			}
		},
	}
}

// overload offers half as much again as a queue can bear.
func overload() Case {
	const service, perS, window = 2 * ms, 750.0, 2 * sec
	spec := lead(open(pace.Constant, perS, 64, window), 500*ms)
	spec.Drain = 100 * ms
	return Case{
		Name: "overload", Kind: "md1", Params: truth.Params{Service: service},
		Spec: spec, slack: 100 * time.Microsecond,
		Known: "one server, d = 2 ms, offered R = 750/s",
		lines: func(_ *Case, m *measured) []Line {
			return []Line{
				line("throughput", "1/d", PerS, 1/service.Seconds(), m.ThroughputPerS, close3),
				line("backlog", "R−1/d", PerS, perS-1/service.Seconds(), m.BacklogPerS, close3),
				line("due", "R·T", Plain, perS*window.Seconds(), m.Scheduled, exactly),
			}
		},
	}
}

func fixed() Case {
	const service, connections, window = 25 * ms, 10, 3 * sec
	return Case{
		Name: "fixed service time", Kind: "fixed", Params: truth.Params{Service: service},
		Spec: lead(closed(connections, window), 200*ms), slack: service / 100,
		Known: "d = 25 ms, any number at once, N = 10 connections that always ask",
		lines: func(_ *Case, m *measured) []Line {
			return []Line{
				line("throughput", "N/d", PerS, connections/service.Seconds(), m.ThroughputPerS,
					close3),
				line("mean", "d", Ns, service, m.ResponseTime.MeanNs, close2),
				line("p99", "d", Ns, service, m.ResponseTime.P99Ns, 4*close3),
			}
		},
	}
}

func limited() Case {
	const service, atOnce, connections, window = 10 * ms, 4, 16, 2 * sec
	return Case{
		Name: "concurrency cap", Kind: "cap", Params: truth.Params{Service: service, N: atOnce},
		Spec: lead(closed(connections, window), 200*ms), slack: service / 100,
		Known: "d = 10 ms, n = 4 at once, C = 16 connections that always ask",
		lines: func(_ *Case, m *measured) []Line {
			return []Line{
				line("throughput", "n/d", PerS, atOnce/service.Seconds(), m.ThroughputPerS, close3),
				line("mean", "C·d/n", Ns, connections/atOnce*float64(service),
					m.ResponseTime.MeanNs, close2),
			}
		},
	}
}

// warmup compares the series interval by interval and shows the one that is furthest off.
func warmup() Case {
	const perS, window = 400.0, 3 * sec
	p := truth.Params{Cold: 100 * ms, Service: 20 * ms, After: 2 * sec}
	return Case{
		Name: "slow warm-up", Kind: "warmup", Params: p,
		Spec: open(pace.Constant, perS, 128, window), slack: 200 * time.Microsecond,
		Known: "A = 100 ms falls to B = 20 ms in 2 s: the median of each interval of the series",
		lines: func(c *Case, m *measured) []Line {
			want := medians(arrivals(&c.Spec), p, m.Series.IntervalNs, int64(window))
			const formula = "A−(A−B)·t/2 s"
			worst := line("median", formula, Ns, p.Cold, 0, close3)
			known, compared := 0, 0
			for i, ns := range want {
				if ns == 0 {
					continue
				}
				known++
				if i >= len(m.Series.P50Ns) {
					continue
				}
				moment := time.Duration(int64(i) * m.Series.IntervalNs)
				l := line(fmt.Sprintf("worst median, at %v", moment), formula, Ns, ns,
					m.Series.P50Ns[i], close3)
				if compared == 0 || math.Abs(l.OffBy) > math.Abs(worst.OffBy) {
					worst = l
				}
				compared++
			}
			return []Line{worst, line("intervals", "all with ten answers or more", Plain, known,
				compared, exactly)}
		},
	}
}

// tally compares the two counts of requests: how many the generator says that it sent and heard of,
// and the server's.
func tally(m *measured) Line {
	return line("requests", "the server's own count", Plain, m.server.Requests,
		m.Answered+m.Censored+m.Errors.Requests(), exactly)
}

// share is how many of the requests that a server has counted it treated differently. A load so
// small that there was none proves nothing and must not pass: it counts as one.
func share(m *measured, n int64) float64 { return float64(max(m.server.Requests/n, 1)) }

func wrong() Case {
	const n = 10_000
	return Case{
		Name: "wrong bodies", Kind: "wrong", Params: truth.Params{N: n}, Spec: closed(16, 2*sec),
		Known: "one body in n = 10,000 has a wrong letter",
		lines: func(_ *Case, m *measured) []Line {
			return []Line{tally(m),
				line("body errors", "⌊requests/n⌋", Plain, share(m, n), m.Errors.Body, exactly),
				line("all errors", "body errors", Plain, share(m, n), m.Errors.Total(), exactly),
			}
		},
	}
}

// reset compares new connections within the number of connections: the last of each is opened at
// the window's very end, or not.
func reset() Case {
	const n, connections = 100, 8
	return Case{
		Name: "resets", Kind: "reset", Params: truth.Params{N: n}, Spec: closed(connections, sec),
		Known: "one answer in n = 100 is torn by a TCP reset",
		lines: func(_ *Case, m *measured) []Line {
			want := share(m, n)
			return []Line{tally(m),
				line("read errors", "⌊requests/n⌋", Plain, want, m.Errors.Read, exactly),
				line("new connections", "read errors", Plain, want, m.Reconnects,
					min(connections/want, half)),
			}
		},
	}
}

// silent wants the timeouts in the latency: leaving them out is survivorship (wrk #457).
func silent() Case {
	const n, perS, window, timeout = 50, 300.0, 2 * sec, sec
	spec := open(pace.Constant, perS, 64, window)
	spec.Timeout, spec.Drain = timeout, timeout+200*ms
	return Case{
		Name: "timeouts", Kind: "silent", Params: truth.Params{N: n}, Spec: spec,
		slack: 200 * time.Microsecond,
		Known: "one answer in n = 50 never comes; timeout t = 1 s",
		lines: func(_ *Case, m *measured) []Line {
			r := &m.ResponseTime
			return []Line{tally(m),
				line("timeouts", "⌊requests/n⌋", Plain, share(m, n), m.Errors.Timeout, exactly),
				line("mean", "t/n", Ns, float64(timeout)/n, r.MeanNs, close3),
				line("p99", "t", Ns, timeout, r.P99Ns, close3),
			}
		},
	}
}

// hang wants what is not answered at the end to be shown. The server stops half a gap before an
// arrival, so that no arrival is near the edge.
func hang() Case {
	const perS, window = 300.0, 2 * sec
	gap := time.Duration(math.Round(1e9 / perS))
	spec := open(pace.Constant, perS, 64, window)
	spec.Drain = 200 * ms
	return Case{
		Name: "hang", Kind: "hang", Params: truth.Params{After: sec - gap/2}, Spec: spec,
		Known: "after 1 s nothing is answered any more; R = 300/s, T = 2 s",
		lines: func(_ *Case, m *measured) []Line {
			return []Line{
				line("answered", "R·1 s", Plain, perS, m.Answered, 0.01),
				line("unanswered", "R·(T−1 s)", Plain, perS, m.Censored, 0.01),
				line("errors", "none", Plain, 0, m.Errors.Total(), exactly),
			}
		},
	}
}

func shed() Case {
	const service, atOnce, perS, window = 40 * ms, 4, 100.0, 6 * sec
	return Case{
		Name: "load shedding", Kind: "shed", Params: truth.Params{Service: service, N: atOnce},
		Spec: open(pace.Poisson, perS, 64, window), slack: service / 100,
		Known: fmt.Sprintf("d = 40 ms, n = 4 at once, the others get 503; R = 100/s: by the "+
			"run's own arrivals; of all such runs' %.1f %% are refused",
			100*erlangB(atOnce, perS*service.Seconds())),
		lines: func(c *Case, m *measured) []Line {
			due := arrivals(&c.Spec)
			refused := float64(refusals(due, atOnce, int64(service)))
			return []Line{tally(m),
				line("status errors", "arrivals that find n", Plain, refused, m.Errors.Status,
					close3),
				line("answered", "the others", Plain, float64(len(due))-refused, m.Answered,
					close3),
				line("mean of the good", "d", Ns, service, m.ResponseTime.MeanNs, close2),
			}
		},
	}
}

func keepalive() Case {
	const n, connections = 100, 8
	return Case{
		Name: "keep-alive limit", Kind: "keepalive", Params: truth.Params{N: n},
		Spec: closed(connections, sec), Known: "each connection is closed after n = 100 answers",
		lines: func(_ *Case, m *measured) []Line {
			want := share(m, n)
			return []Line{tally(m),
				line("new connections", "requests/n", Plain, want, m.Reconnects,
					min((connections+1)/want, half)),
				line("errors", "none", Plain, 0, m.Errors.Total(), exactly),
			}
		},
	}
}

func drip() Case {
	const first, step, n = 40 * ms, 5 * ms, 10
	spec := open(pace.Constant, 50, 16, 2*sec)
	spec.Scenario = asking(strings.Repeat(".", n))
	return Case{
		Name: "drip", Kind: "drip", Params: truth.Params{Service: first, Every: step, N: n},
		Spec: spec, slack: first / 100,
		Known: "the first byte after a = 40 ms, nine more of the body 5 ms apart",
		lines: func(_ *Case, m *measured) []Line {
			return []Line{
				line("first byte", "a", Ns, first, m.FirstByte.MeanNs, close2),
				line("whole answer", "a + 9·5 ms", Ns, first+(n-1)*step, m.ServiceTime.MeanNs,
					close2),
			}
		},
	}
}

// ownLag takes all time away from the server: what is left is the generator's own, and it must say
// so.
func ownLag() Case {
	const perS, window = 1000.0, 2 * sec
	return Case{
		Name: "own lag", Kind: "fixed", Spec: open(pace.Poisson, perS, 32, window),
		Known: "a server that takes no time: each request has a lag, which its response time holds",
		lines: func(c *Case, m *measured) []Line {
			return []Line{
				line("lags", "all that were due", Plain, len(arrivals(&c.Spec)), m.Lag.Count,
					exactly),
				line("lag + service", "response", Ns, m.ResponseTime.MeanNs,
					m.Lag.MeanNs+m.ServiceTime.MeanNs, close2),
			}
		},
	}
}

// spin burns so much that what a request costs anyway is within the limit: up to 200 µs on a
// virtual machine, where a thread that slept finds cold caches.
func spin() Case {
	const burn, perS, window = 10 * ms, 50.0, 2 * sec
	return Case{
		Name: "processor time", Kind: "spin", Params: truth.Params{Service: burn},
		Spec: open(pace.Constant, perS, 16, window), useCPU: true,
		Known: "each request burns 10 ms of the server's processor time",
		lines: func(_ *Case, m *measured) []Line {
			return []Line{tally(m),
				line("a request", "10 ms", Ns, burn,
					float64(m.cpu)/max(float64(m.server.Requests), 1), close5),
			}
		},
	}
}
