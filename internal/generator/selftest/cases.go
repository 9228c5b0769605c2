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

// seed of arrivals and service times.
const seed = 20

// Limits of deviations. A virtual machine takes about 200 µs to wake two sleeping threads, for a
// request and for its response. Times are chosen so that this is at most half of the limit.
const (
	close2  = 0.02
	close3  = 0.03
	close5  = 0.05
	half    = 0.5
	exactly = 0
)

// Cases returns the cases. They take about a minute.
func Cases() []Case {
	return []Case{
		stall(), pause(), md1(), mm1(), capacity(), overload(), fixed(), limited(), warmup(),
		wrong(), reset(), silent(), hang(), shed(), keepalive(), drip(), ownLag(), spin(),
	}
}

// open returns a load with scheduled arrivals.
func open(arrivals string, perS float64, connections int, window time.Duration) load.Spec {
	return load.Spec{
		Model: record.Open, Schedule: pace.Schedule{Arrivals: arrivals, Rate: pace.Flat(perS)},
		Connections: connections, Seed: seed, Window: window, Drain: sec, Timeout: 5 * sec,
		Scenario: asking(truth.Body), Ahead: true,
	}
}

// closed returns a closed load.
func closed(connections int, window time.Duration) load.Spec {
	return load.Spec{
		Model: record.Closed, Connections: connections, Seed: seed, Window: window, Drain: sec,
		Timeout: 5 * sec, Scenario: asking(truth.Body), Ahead: true,
	}
}

// asking returns a scenario that checks the response's body byte for byte.
func asking(body string) load.Scenario {
	return load.Scenario{KeyLo: 1, KeyHi: 1, Requests: []load.Request{
		{Method: "GET", Path: "/", Want: body, HasWant: true},
	}}
}

// lead adds a lead-in to a load.
func lead(s load.Spec, d time.Duration) load.Spec {
	s.Lead = d
	return s
}

// stall detects coordinated omission (G. Tene, "How NOT to Measure Latency"): a freeze of s in a
// window T makes the share (s−x)/T of the requests wait longer than x.
func stall() Case {
	const freeze, window, perS = sec, 4 * sec, 400.0
	return Case{
		Name: "stall", Kind: "stall", Params: truth.Params{After: 1500 * ms, Stall: freeze},
		Spec:  lead(open(pace.Constant, perS, 64, window), 500*ms),
		Known: "the server freezes for s = 1 s within T = 4 s at R = 400/s, with 64 connections",
		lines: func(c *Case, m *measured) []Line {
			r, a := &m.ResponseTime, planned(c, m)
			const above = 50 * ms
			return []Line{
				a.above("delayed > 50 ms", "R·(s−50 ms)", above, perS*(freeze-above).Seconds(),
					countAbove(r, above), close2),
				a.mean("s²/2T", square(freeze)/(2*float64(window)), r.MeanNs, close2),
				a.quantile("p90", "s−0.1·T", 0.9, float64(freeze-window/10), r.P90Ns, close2),
				a.quantile("p99", "s−0.01·T", 0.99, float64(freeze-window/100), r.P99Ns, close2),
				a.longest("s", float64(freeze), r.MaxNs, close2),
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
		Spec:  lead(open(pace.Constant, perS, 64, window), 200*ms),
		Known: "the server freezes for d = 400 ms in every P = 1 s, T = 4 s at R = 300/s",
		lines: func(c *Case, m *measured) []Line {
			r, a := &m.ResponseTime, planned(c, m)
			const above = 20 * ms
			return []Line{
				a.above("delayed > 20 ms", "R·T·(d−20 ms)/P", above,
					perS*window.Seconds()*float64(freeze-above)/float64(period),
					countAbove(r, above), close2),
				a.mean("d²/2P", square(freeze)/(2*float64(period)), r.MeanNs, close2),
				a.quantile("p90", "d−0.1·P", 0.9, float64(freeze-period/10), r.P90Ns, close2),
				a.longest("d", float64(freeze), r.MaxNs, close2),
			}
		},
	}
}

// queue is a single server with Poisson arrivals and utilization rho.
func queue(name, kind string, service time.Duration, rho float64, window time.Duration,
	textbook float64) Case {
	c := Case{
		Name: name, Kind: kind, Params: truth.Params{Service: service, Seed: seed}, times: true,
		Spec: lead(open(pace.Poisson, rho/service.Seconds(), 256, window), 500*ms),
		Known: fmt.Sprintf("s = %v, ρ = %g: Lindley's recursion over the arrival times of the "+
			"requests and their service times; the expected mean of such a queue is %v",
			service, rho, time.Duration(textbook).Round(10*time.Microsecond)),
	}
	// A server that the machine has slowed down needs more time to answer all requests.
	c.Spec.Drain = 4 * sec
	c.lines = func(c *Case, m *measured) []Line {
		r, a := &m.ResponseTime, served(c, m)
		want := distribution(a.response)
		due := len(arrivals(&c.Spec))
		const formula = "Lindley"
		return []Line{
			line("requests", "all due requests", Plain, due, m.server.Requests, exactly),
			line("answered", "all due requests", Plain, want.TotalCount(), r.Count, exactly),
			a.mean(formula, want.Mean(), r.MeanNs, close2),
			a.quantile("p50", formula, 0.5, float64(want.ValueAtQuantile(50)), r.P50Ns, 2*close2),
			a.quantile("p90", formula, 0.9, float64(want.ValueAtQuantile(90)), r.P90Ns, close2),
			a.quantile("p99", formula, 0.99, float64(want.ValueAtQuantile(99)), r.P99Ns, close2),
			a.longest(formula, float64(want.Max()), r.MaxNs, close2),
		}
	}
	return c
}

// md1 has the mean of Pollaczek and Khinchine: s + ρ·s/(2(1−ρ)).
func md1() Case {
	const service, rho = 10 * ms, 0.7
	return queue("M/D/1", "md1", service, rho, 7500*ms, float64(service)*(1+rho/(2*(1-rho))))
}

// mm1 has the mean s/(1−ρ).
func mm1() Case {
	const service, rho = 10 * ms, 0.6
	return queue("M/M/1", "mm1", service, rho, 7500*ms, float64(service)/(1-rho))
}

// busy checks that the server always has a request to serve, except while it reads, writes or
// yields.
func busy(m *measured, share float64) Line {
	return line("server busy", "always", Plain, 1, share, close5).
		between(1-(m.machine.loadNs()+m.machine.serverNs())/float64(max(m.WindowNs, 1)), 1)
}

// capacity keeps a queue from running empty.
func capacity() Case {
	const service, connections, window = 2 * ms, 8, 2 * sec
	return Case{
		Name: "capacity", Kind: "md1", Params: truth.Params{Service: service}, times: true,
		Spec: lead(closed(connections, window), 200*ms),
		Known: "one server, N = 8 connections that always have a request; d between responses, " +
			"as the server sent them: 2 ms of CPU time and interruptions",
		lines: func(_ *Case, m *measured) []Line {
			perS, share := serving(m)
			c := steady{connections, m.Answered, m.machine.loadNs() * connections}
			return []Line{
				busy(m, share),
				c.throughput("1/d", perS, m.ThroughputPerS, close2),
				c.mean("mean", "N·d", connections/perS*1e9, m.ResponseTime.MeanNs, close3),
				line("under way", "N", Plain, connections, m.InFlightMean, close3),
			}
		},
	}
}

// overload sends one and a half times the queue's capacity.
func overload() Case {
	const service, perS, window = 2 * ms, 750.0, 2 * sec
	spec := lead(open(pace.Constant, perS, 64, window), 500*ms)
	spec.Drain = 100 * ms
	return Case{
		Name: "overload", Kind: "md1", Params: truth.Params{Service: service}, Spec: spec,
		times: true,
		Known: "one server, R = 750/s; d between responses, as the server sent them: 2 ms of CPU " +
			"time and interruptions",
		lines: func(_ *Case, m *measured) []Line {
			rate, share := serving(m)
			c := steady{spec.Connections, m.Answered,
				m.machine.loadNs() * float64(spec.Connections)}
			answered := c.throughput("1/d", rate, m.ThroughputPerS, close2)
			return []Line{
				busy(m, share), answered,
				line("backlog", "R−1/d", PerS, perS-rate, m.BacklogPerS, close3).
					between(perS-rate, perS-answered.Lowest),
				line("due", "R·T", Plain, perS*window.Seconds(), m.Scheduled, exactly),
			}
		},
	}
}

// bothSides limits the machine's influence on a closed load of a server with planned responses.
func bothSides(m *measured, connections int) steady {
	waitNs, _ := m.machine.bothNs()
	return steady{connections, m.Answered,
		waitNs*float64(connections) + float64(m.machine.ServerLateNs)}
}

func fixed() Case {
	const service, connections, window = 25 * ms, 10, 3 * sec
	return Case{
		Name: "fixed service time", Kind: "fixed", Params: truth.Params{Service: service},
		Spec: lead(closed(connections, window), 200*ms),
		Known: "d = 25 ms, any number of requests at once, N = 10 connections that always have a " +
			"request",
		lines: func(_ *Case, m *measured) []Line {
			c := bothSides(m, connections)
			return []Line{
				c.throughput("N/d", connections/service.Seconds(), m.ThroughputPerS, close3),
				c.mean("mean", "d", float64(service), m.ResponseTime.MeanNs, close2),
				c.p99("d", float64(service), m.ResponseTime.P99Ns, 4*close3),
			}
		},
	}
}

func limited() Case {
	const service, atOnce, connections, window = 10 * ms, 4, 16, 2 * sec
	return Case{
		Name: "concurrency cap", Kind: "cap", Params: truth.Params{Service: service, N: atOnce},
		Spec:  lead(closed(connections, window), 200*ms),
		Known: "d = 10 ms, n = 4 requests at once, C = 16 connections that always have a request",
		lines: func(_ *Case, m *measured) []Line {
			c := bothSides(m, connections)
			return []Line{
				c.throughput("n/d", atOnce/service.Seconds(), m.ThroughputPerS, close3),
				c.mean("mean", "C·d/n", connections/atOnce*float64(service), m.ResponseTime.MeanNs,
					close2),
			}
		},
	}
}

// warmup compares the series interval by interval and reports the largest deviation.
func warmup() Case {
	const perS, window = 400.0, 3 * sec
	p := truth.Params{Cold: 100 * ms, Service: 20 * ms, After: 2 * sec}
	return Case{
		Name: "slow warm-up", Kind: "warmup", Params: p,
		Spec: open(pace.Constant, perS, 128, window),
		Known: "the service time A = 100 ms falls to B = 20 ms in 2 s: the median of each " +
			"interval of the series",
		lines: func(c *Case, m *measured) []Line {
			want := medians(arrivals(&c.Spec), p, m.Series.IntervalNs, int64(window))
			const formula = "A−(A−B)·t/2 s"
			// Half of the responses of an interval must be late to change its median.
			half := max(perS*float64(m.Series.IntervalNs)/2e9, 1)
			needed, early := 0.0, false
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
				if needed += half * max(l.Measured-l.Known*(1+close3), 0); l.OffBy < -close3 {
					early = true
				}
				if compared == 0 || math.Abs(l.OffBy) > math.Abs(worst.OffBy) {
					worst = l
				}
				compared++
			}
			if needed <= planned(c, m).limits.sumNs && !early {
				worst = worst.between(worst.Known, worst.Measured)
			}
			return []Line{worst, line("intervals", "intervals with ten or more "+
				"responses", Plain, known,
				compared, exactly)}
		},
	}
}

// tally compares the server's and the generator's counts of requests. If a connection ends without
// a response, the generator sends the request again; the server may have counted it twice.
func tally(m *measured) Line {
	sent := m.Answered + m.Censored + m.Errors.Requests()
	return line("requests", "the server's own count", Plain, m.server.Requests,
		min(max(m.server.Requests, sent), sent+m.Retried), exactly)
}

// share returns the number of requests that the server treated differently. A load without any
// proves nothing and must not pass, so it counts as one.
func share(m *measured, n int64) float64 { return float64(max(m.server.Requests/n, 1)) }

func wrong() Case {
	const n = 10_000
	return Case{
		Name: "wrong bodies", Kind: "wrong", Params: truth.Params{N: n}, Spec: closed(16, 2*sec),
		Known: "one response in n = 10,000 has a wrong letter in its body",
		lines: func(_ *Case, m *measured) []Line {
			return []Line{tally(m),
				line("body errors", "⌊requests/n⌋", Plain, share(m, n), m.Errors.Body, exactly),
				line("all errors", "body errors", Plain, share(m, n), m.Errors.Total(), exactly),
			}
		},
	}
}

// reset compares new connections with a tolerance of the number of connections, because each may or
// may not reconnect at the window's end.
func reset() Case {
	const n, connections = 100, 8
	return Case{
		Name: "resets", Kind: "reset", Params: truth.Params{N: n}, Spec: closed(connections, sec),
		Known: "one response in n = 100 ends with a TCP reset",
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

// silent checks that timeouts are included in the latency: leaving them out is survivorship bias
// (wrk #457).
func silent() Case {
	const n, perS, window, timeout = 50, 300.0, 2 * sec, sec
	spec := open(pace.Constant, perS, 64, window)
	spec.Timeout, spec.Drain = timeout, timeout+200*ms
	return Case{
		Name: "timeouts", Kind: "silent", Params: truth.Params{N: n}, Spec: spec,
		Known: "one request in n = 50 receives no response; timeout t = 1 s",
		lines: func(c *Case, m *measured) []Line {
			r, a := &m.ResponseTime, planned(c, m)
			return []Line{tally(m),
				line("timeouts", "⌊requests/n⌋", Plain, share(m, n), m.Errors.Timeout, exactly),
				a.mean("t/n", float64(timeout)/n, r.MeanNs, close3),
				a.quantile("p99", "t", 0.99, float64(timeout), r.P99Ns, close3),
			}
		},
	}
}

// hang checks that unanswered requests are reported. The server stops half an interval before an
// arrival, so that no arrival is near the edge.
func hang() Case {
	const perS, window = 300.0, 2 * sec
	gap := time.Duration(math.Round(1e9 / perS))
	spec := open(pace.Constant, perS, 64, window)
	spec.Drain = 200 * ms
	return Case{
		Name: "hang", Kind: "hang", Params: truth.Params{After: sec - gap/2}, Spec: spec,
		Known: "for T = 2 s requests are sent at R = 300/s; after 1 s, none receives a response",
		lines: func(_ *Case, m *measured) []Line {
			// Late requests may arrive after the server has stopped, or shift the time at which it
			// stops.
			waitNs, _ := m.machine.bothNs()
			late := perS * waitNs / 1e9
			return []Line{
				line("answered", "R·1 s", Plain, perS, m.Answered, 0.01).
					between(perS-late, perS+late),
				line("unanswered", "R·(T−1 s)", Plain, perS, m.Censored, 0.01).
					between(perS-late, perS+late),
				line("errors", "none", Plain, 0, m.Errors.Total(), exactly),
			}
		},
	}
}

func shed() Case {
	const service, atOnce, perS, window = 40 * ms, 4, 100.0, 6 * sec
	return Case{
		Name: "load shedding", Kind: "shed", Params: truth.Params{Service: service, N: atOnce},
		Spec: open(pace.Poisson, perS, 64, window), times: true,
		Known: fmt.Sprintf("d = 40 ms, n = 4 requests at once, others receive 503; R = 100/s: "+
			"computed from the run's own arrivals; the expected share of refused requests is "+
			"%.1f %%",
			100*erlangB(atOnce, perS*service.Seconds())),
		lines: func(c *Case, m *measured) []Line {
			due := arrivals(&c.Spec)
			var arrived []int64
			for _, t := range m.server.Times {
				arrived = append(arrived, t.CameNs)
			}
			const find = "arrivals that find n"
			byServer := refusals(arrived, atOnce, int64(service))
			planned := float64(len(refusals(due, atOnce, int64(service))))
			refused := float64(len(byServer))
			// Each late arrival may be refused instead of another one.
			waitNs, _ := m.machine.bothNs()
			late := perS * waitNs / 1e9
			return []Line{tally(m),
				line("refused by the server", find, Plain, planned, refused, close3).
					between(planned-late, planned+late),
				line("status errors", find, Plain, refused, m.Errors.Status, exactly),
				line("answered", "the others", Plain, float64(len(arrived))-refused, m.Answered,
					exactly),
				steady{1, m.Answered, m.machine.loadNs() * atOnce}.mean("mean of the good",
					"d, as the server took it", goodMean(c, m, byServer), m.ResponseTime.MeanNs,
					close2),
			}
		},
	}
}

func keepalive() Case {
	const n, connections = 100, 8
	return Case{
		Name: "keep-alive limit", Kind: "keepalive", Params: truth.Params{N: n},
		Spec: closed(connections, sec), Known: "the server closes each connection after n = 100 " +
			"responses",
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
		Spec:  spec,
		Known: "the first byte after a = 40 ms, then nine bytes of the body, 5 ms apart",
		lines: func(_ *Case, m *measured) []Line {
			s := bothSides(m, n)
			return []Line{
				s.mean("first byte", "a", float64(first), m.FirstByte.MeanNs, close2),
				s.mean("whole answer", "a + 9·5 ms", float64(first+(n-1)*step),
					m.ServiceTime.MeanNs, close2),
			}
		},
	}
}

// ownLag has a server that takes no time. The remaining time is the generator's own, which it must
// report.
func ownLag() Case {
	const perS, window = 1000.0, 2 * sec
	return Case{
		Name: "own lag", Kind: "fixed", Spec: open(pace.Poisson, perS, 32, window),
		Known: "a server that takes no time: each request has a send delay, which its response " +
			"time includes",
		lines: func(c *Case, m *measured) []Line {
			return []Line{
				line("lags", "all due requests", Plain, len(arrivals(&c.Spec)), m.Lag.Count,
					exactly),
				line("lag + service", "response", Ns, m.ResponseTime.MeanNs,
					m.Lag.MeanNs+m.ServiceTime.MeanNs, close2),
			}
		},
	}
}

// spin burns so much CPU time that a request's overhead is within the limit: up to 200 µs on a
// virtual machine, where a thread that slept has cold caches.
func spin() Case {
	const burn, perS, window = 10 * ms, 50.0, 2 * sec
	return Case{
		Name: "processor time", Kind: "spin", Params: truth.Params{Service: burn},
		Spec: open(pace.Constant, perS, 16, window), useCPU: true, times: true,
		Known: "each request uses 10 ms of the server's CPU time, as measured by the clock of " +
			"its thread",
		lines: func(_ *Case, m *measured) []Line {
			sum, n := 0.0, float64(max(m.server.Requests, 1))
			for _, t := range m.server.Times {
				sum += float64(t.ProcessorNs)
			}
			return []Line{tally(m),
				line("a request", "10 ms, by its clock", Ns, max(sum/n, 1), float64(m.cpu)/n,
					close5),
			}
		},
	}
}
