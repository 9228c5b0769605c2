package truth

import (
	"fmt"
	"slices"
	"time"

	"prony.example/load/pace"
)

// Params are parameters of kinds. A kind's Needs list the ones that it uses.
type Params struct {
	Service time.Duration `json:"service"`
	Cold    time.Duration `json:"cold"`
	After   time.Duration `json:"after"`
	Stall   time.Duration `json:"stall"`
	Every   time.Duration `json:"every"`
	N       int64         `json:"n"`
	Seed    uint64        `json:"seed"`
}

// Field returns a pointer to the parameter with a name: a *time.Duration, *int64 or *uint64. It
// panics for unknown names.
func (p *Params) Field(name string) any {
	field, ok := map[string]any{"service": &p.Service, "cold": &p.Cold, "after": &p.After,
		"stall": &p.Stall, "every": &p.Every, "n": &p.N, "seed": &p.Seed}[name]
	if !ok {
		panic("exact: parameter " + name + " does not exist")
	}
	return field
}

// Need is a parameter that a kind uses.
type Need struct {
	Name string
	Says string // description
	min  int64
	max  int64 // 0: no limit
}

// Kind is a server with a name.
type Kind struct {
	Name  string
	Does  string // description of the server
	Reads string // what a correct generator measures
	Needs []Need
	Zero  Params // default parameters
	plan  func(Params) Plan
}

// Plan returns a new plan of the kind. Parameters out of range are an error.
func (k Kind) Plan(p Params) (Plan, error) {
	for _, n := range k.Needs {
		var value int64
		switch v := p.Field(n.Name).(type) {
		case *time.Duration:
			value = int64(*v)
		case *int64:
			value = *v
		}
		if value < n.min || n.max > 0 && value > n.max {
			return nil, fmt.Errorf("truth %s: parameter --%s is out of range: it "+
				"%s", k.Name, n.Name, n.bounds())
		}
	}
	if k.Name == "pause" && p.Stall >= p.Every {
		return nil, fmt.Errorf("truth pause: a freeze of %v in every %v never ends; set --stall "+
			"to less than --every", p.Stall, p.Every)
	}
	return k.plan(p), nil
}

func (n Need) bounds() string {
	switch {
	case n.max > 0:
		return fmt.Sprintf("must be from %d to %d", n.min, n.max)
	case n.min > 0:
		return "must be greater than 0"
	}
	return "must not be negative"
}

// Find returns the kind with a name.
func Find(name string) (Kind, bool) {
	for _, k := range kinds {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// Kinds lists all kinds.
func Kinds() []Kind { return slices.Clone(kinds) }

const ms = time.Millisecond

// serviceSalt makes the draws of service times independent of the arrivals, which a generator may
// draw from the same seed in the same way: otherwise long intervals would coincide with long
// services.
const serviceSalt = 0xd1342543de82ef95

// Exponential draws service times with a mean: the n-th is a function of seed and n alone.
func Exponential(mean time.Duration, seed uint64) func(n int64) time.Duration {
	return func(n int64) time.Duration {
		return time.Duration(pace.Exp(seed^serviceSalt, uint64(n)) * float64(mean))
	}
}

// Descriptions of parameters.
const (
	saysService = "service time"
	saysAfter   = "time since the first request"
	saysStall   = "length of a freeze"
	saysAtOnce  = "requests at once"
	saysOneIn   = "interval in requests: every n-th request"
)

// atOnceMax limits the servers of a Cap.
const atOnceMax = 1 << 16

// dripMax limits the size of a dripped body.
const dripMax = 1 << 20

var kinds = []Kind{
	{
		Name: "fixed",
		Does: "responds to each request --service after its arrival, any number at once",
		Reads: `N connections, closed: N/service requests a second, each with response time
			--service. Open load of any rate: each response takes --service.`,
		Needs: []Need{{"service", saysService, 0, 0}},
		Zero:  Params{Service: 10 * ms},
		plan:  func(p Params) Plan { return Fixed(p.Service) },
	}, {
		Name: "md1",
		Does: "serves one request at a time, --service of CPU time each; others wait",
		Reads: `Closed, N > 1: 1/service requests a second, each with response time N·service. Open
			with Poisson arrivals at R (ρ = R·service < 1): mean response time service +
			ρ·service/(2(1−ρ)). Above 1/service: a backlog that grows by R − 1/service, so no stable
			latency.`,
		Needs: []Need{{"service", saysService, 1, 0}},
		Zero:  Params{Service: 2 * ms},
		plan:  func(p Params) Plan { return Burn(p.Service) },
	}, {
		Name: "mm1",
		Does: "serves one request at a time, for exponential CPU time of mean --service",
		Reads: `Open with Poisson arrivals at R (ρ = R·service < 1): mean response time m =
			service/(1−ρ), p50 = 0.693·m, p99 = 4.605·m. One run is only a small sample: after a
			thousand busy periods, its results are close to these values.`,
		Needs: []Need{{"service", "mean service time", 1, 0},
			{"seed", "seed of the service times", 0, 0}},
		Zero: Params{Service: 2 * ms, Seed: 1},
		plan: func(p Params) Plan { return Busy(Exponential(p.Service, p.Seed)) },
	}, {
		Name: "cap",
		Does: "serves --n requests at once, --service each; others wait in line",
		Reads: `C ≥ n connections, closed: n/service requests a second, each with response time
			C·service/n.`,
		Needs: []Need{{"service", saysService, 1, 0}, {"n", saysAtOnce, 1, atOnceMax}},
		Zero:  Params{Service: 10 * ms, N: 4},
		plan:  func(p Params) Plan { return Cap(p.N, p.Service) },
	}, {
		Name: "stall",
		Does: "freezes for --stall once, --after the first request",
		Reads: `At a rate R over a window T: stall·R requests are delayed, uniformly on 0…stall; max
			= stall, mean = stall²/2T. The share of requests above x is (stall−x)/T. A generator
			with lower values waits with the server (coordinated omission).`,
		Needs: []Need{{"after", saysAfter, 0, 0}, {"stall", saysStall, 0, 0},
			{"service", saysService, 0, 0}},
		Zero: Params{After: 3000 * ms, Stall: 1000 * ms},
		plan: func(p Params) Plan { return Stall(p.After, p.Stall, Fixed(p.Service)) },
	}, {
		Name: "pause",
		Does: "freezes for --stall at the end of each period of --every",
		Reads: `At any rate: a share of stall/every of the requests is delayed, uniformly on
			0…stall; max = stall, mean = stall²/(2·every).`,
		Needs: []Need{{"stall", saysStall, 0, 0}, {"every", "time from the start of a freeze to " +
			"the next", 1, 0},
			{"service", saysService, 0, 0}},
		Zero: Params{Stall: 100 * ms, Every: 1000 * ms},
		plan: func(p Params) Plan { return Pause(p.Every, p.Stall, Fixed(p.Service)) },
	}, {
		Name: "warmup",
		Does: "becomes faster linearly from --cold to --service, until --after",
		Reads: `Response time at t after the first request: cold − (cold−service)·t/after, and
			--service after that. A mean over the whole load describes no moment.`,
		Needs: []Need{{"cold", "service time at the beginning", 0, 0},
			{"service", "service time at the end", 0, 0}, {"after", saysAfter, 1, 0}},
		Zero: Params{Cold: 50 * ms, Service: 5 * ms, After: 5000 * ms},
		plan: func(p Params) Plan { return WarmUp(p.Cold, p.Service, p.After) },
	}, {
		Name: "wrong",
		Does: "responds to every --n-th request with a wrong body of the right length",
		Reads: `⌊k/n⌋ errors in k requests, if the generator compares bodies with ` +
			`"` + Body + `": the
			wrong body is "` + bad + `".`,
		Needs: []Need{{"n", saysOneIn, 1, 0}},
		Zero:  Params{N: 10000},
		plan:  func(p Params) Plan { return Every(p.N, Wrong, Fixed(0)) },
	}, {
		Name:  "reset",
		Does:  "resets the connection in the middle of every --n-th response",
		Reads: `⌊k/n⌋ errors in k requests, and the same number of new connections.`,
		Needs: []Need{{"n", saysOneIn, 1, 0}},
		Zero:  Params{N: 1000},
		plan:  func(p Params) Plan { return Every(p.N, Torn, Fixed(0)) },
	}, {
		Name: "silent",
		Does: "never responds to every --n-th request",
		Reads: `⌊k/n⌋ timeouts in k requests. They count in the latency with at least the timeout:
			if n = 50, p99 is the timeout.`,
		Needs: []Need{{"n", saysOneIn, 1, 0}, {"service", saysService, 0, 0}},
		Zero:  Params{N: 1000},
		plan:  func(p Params) Plan { return Every(p.N, Silent, Fixed(p.Service)) },
	}, {
		Name: "hang",
		Does: "responds to no request that arrives --after the first one or later",
		Reads: `At a rate R over a window T: R·after requests receive responses, and R·(T−after) are
			reported as unanswered, with or without a timeout.`,
		Needs: []Need{{"after", saysAfter, 0, 0}, {"service", saysService, 0, 0}},
		Zero:  Params{After: 3000 * ms},
		plan:  func(p Params) Plan { return Hang(p.After, Fixed(p.Service)) },
	}, {
		Name:  "drip",
		Does:  "sends the --n bytes of a body one by one, --every apart, the first after --service",
		Reads: `First byte: --service. Whole response: service + (n−1)·every.`,
		Needs: []Need{{"service", "time until the first byte", 0, 0},
			{"n", "number of bytes of the " +
				"body", 1, dripMax}, {"every", "time between two bytes", 0, 0}},
		Zero: Params{Service: 20 * ms, N: 10, Every: 5 * ms},
		plan: func(p Params) Plan { return Drip(p.Service, p.N, p.Every) },
	}, {
		Name: "shed",
		Does: "serves up to --n requests at once, --service each, and refuses others with 503",
		Reads: `Good responses take --service. Open with Poisson arrivals at R, a = R·service: a
			share of B(n, a) is refused (Erlang), 0.311 for n = 4 and a = 4. A refusal does not
			count as a fast response.`,
		Needs: []Need{{"service", saysService, 0, 0}, {"n", saysAtOnce, 1, atOnceMax}},
		Zero:  Params{Service: 20 * ms, N: 4},
		plan:  func(p Params) Plan { return Shed(p.N, p.Service) },
	}, {
		Name:  "keepalive",
		Does:  "closes each connection after --n responses, and announces it in the last response",
		Reads: `k requests cause k/n new connections and no error.`,
		Needs: []Need{{"n", "responses on each connection", 1, 0}},
		Zero:  Params{N: 100},
		plan:  func(p Params) Plan { return Renew(p.N, Fixed(0)) },
	}, {
		Name: "spin",
		Does: "uses --service of CPU time for each request",
		Reads: `CPU time per request: --service, plus the base cost of a request (some µs). Closed:
			at most 1/service requests a second.`,
		Needs: []Need{{"service", "CPU time of a request", 0, 0}},
		Zero:  Params{Service: 1 * ms},
		plan:  func(p Params) Plan { return Burn(p.Service) },
	},
}
