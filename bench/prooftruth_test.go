package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"prony.example/internal/generator"
	"prony.example/internal/launch"
	"prony.example/internal/service"
	"prony.example/load"
	"prony.example/record"
	"prony.example/stats"
)

// The known truth about the proof's servers comes from other means than those under test: the
// server itself counts requests and reads their CPU time from the kernel (getrusage(2)). The
// compared servers take turns in one process, every few milliseconds, so that changes of the
// machine affect all of them. A closed load keeps a server on one core busy without a pause, so its
// throughput is the reciprocal of the cost of a request.

// proofRounds is the cost of a request of the first arm: some 50 µs, so that the load is far from
// its own limits and most of the cost is the server's loop.
const proofRounds = 30_000

// proofKnown is all that is known before the first trial.
type proofKnown struct {
	Seed uint64
	Cost requestCost
	Arms []proofArm // the others are compared with the first
	Warm []proofWarm
}

// proofArm is a server among the compared ones.
type proofArm struct {
	Name   string
	Loss   float64 // intended loss of throughput
	Rounds int64
	// Ratio is its throughput divided by that of the first, with a 95 % interval, from N slices.
	Ratio, Lo, Hi float64
	N             int
}

// proofWarm is a server whose cost changes after its start.
type proofWarm struct {
	Name   string
	Server burner
	Kind   string  // expected result of stats.SteadyState
	AtNs   int64   // beginning of its steady state, from the load's begin; 0: there is none
	Before float64 // its rate until then, divided by the rate from then on
}

// requestCost is linear: the cost of a request without rounds, and of a round.
type requestCost struct{ BaseNs, RoundNs float64 }

func (c requestCost) of(rounds int64) float64 { return c.BaseNs + c.RoundNs*float64(rounds) }

// rounds returns the rounds of a request that costs times as much as one of the first arm.
func (c requestCost) rounds(times float64) int64 {
	return int64(math.Round((c.of(proofRounds)*times - c.BaseNs) / c.RoundNs))
}

// arms returns arms that lose throughput: a request must cost 1/(1-loss) times as much.
func (c requestCost) arms() []proofArm {
	arms := []proofArm{{Name: "a"}, {Name: "a-again"}, {Name: "b2", Loss: 0.02},
		{Name: "b5", Loss: 0.05}, {Name: "b10", Loss: 0.10}}
	for i := range arms {
		arms[i].Rounds = c.rounds(1 / (1 - arms[i].Loss))
	}
	return arms
}

// warm returns the servers whose steady state begins at a known moment, at half and a quarter of
// the longest warm-up.
func (c requestCost) warm(longest time.Duration) []proofWarm {
	server := func(cold float64, until time.Duration) burner {
		return burner{Rounds: []int64{proofRounds}, Cold: c.rounds(cold), For: until}
	}
	step := func(name, kind string, cold float64, until time.Duration) proofWarm {
		return proofWarm{name, server(cold, until), kind, int64(until), 1 / cold}
	}
	const third = 2.0 / 3
	half, quarter := longest/2, longest/4
	drift := burner{Rounds: []int64{proofRounds}, Grow: 0.1}
	return []proofWarm{
		step("steady", stats.Flat, 1, 0),
		step("cold-short", stats.Warmed, 1.5, quarter),
		step("cold-long", stats.Warmed, 1.5, half),
		step("cool-long", stats.Warmed, 1.1, half),
		step("fast-short", stats.Slowed, third, quarter),
		{Name: "drifts", Server: drift, Kind: stats.Unsteady},
	}
}

// requestCost measures both parts, from requests with the first arm's rounds and with none.
func (p *proof) requestCost(requests int64) requestCost {
	p.tb.Helper()
	slices := p.costs([]int64{proofRounds, 0}, requests)
	full, base := median(slices[0]), median(slices[1])
	c := requestCost{BaseNs: base, RoundNs: (full - base) / proofRounds}
	if !(c.RoundNs > 0) {
		p.tb.Fatalf("a request of %d rounds took %.0f ns and one of none %.0f", proofRounds, full,
			base)
	}
	return c
}

func median(ns []int64) float64 {
	var xs []float64
	for _, n := range ns {
		xs = append(xs, float64(n))
	}
	return stats.Median(xs)
}

// measureTruth compares the true costs of the arms: slice by slice, the median ratio.
func (p *proof) measureTruth(arms []proofArm, requests int64) {
	p.tb.Helper()
	var rounds []int64
	for _, a := range arms {
		rounds = append(rounds, a.Rounds)
	}
	slices := p.costs(rounds, requests)
	for i := range arms {
		var ratios []float64
		for k, ns := range slices[i] {
			if k < len(slices[0]) {
				ratios = append(ratios, float64(slices[0][k])/float64(ns))
			}
		}
		s := stats.Summarize(ratios, 0.95)
		if !s.HasInterval() {
			p.tb.Fatalf("arm %s: %d slices: %s", arms[i].Name, s.N, s.Warning)
		}
		arms[i].Ratio, arms[i].Lo, arms[i].Hi, arms[i].N = s.Center, s.Lo, s.Hi, s.N
	}
}

// costsBound limits a load that does not end by itself.
const costsBound = 10 * time.Minute

// costs loads one server, whose requests take turns between the rounds, and returns its report.
func (p *proof) costs(rounds []int64, requests int64) (slices [][]int64) {
	p.tb.Helper()
	port, err := freePort()
	if err != nil {
		p.tb.Fatal(err)
	}
	text, err := json.Marshal(burner{Rounds: rounds})
	if err != nil {
		p.tb.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		p.tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), costsBound)
	defer cancel()
	up, err := p.launcher.Launch(ctx, launch.Spec{
		Name: "costs", Dir: p.dir, Args: []string{self}, CPUs: 1, Cores: p.layout.Service,
		Env:     []string{burnEnv + "=" + string(text), "PORT=" + strconv.Itoa(port)},
		LogFile: filepath.Join(p.dir, "costs.log"),
	})
	if err != nil {
		p.tb.Fatal(err)
	}
	defer func() {
		if err := up.Stop(time.Second); err != nil {
			p.tb.Error(err)
		}
	}()
	addr := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
	if _, _, err := service.WaitReady(ctx, nil, addr.String(), "/data", up.Began(),
		up.Exited()); err != nil {
		p.tb.Fatal(err)
	}
	if _, err := (generator.Prony{}).Offer(ctx, load.Spec{
		Name: "costs", Address: addr, Model: record.Closed, Connections: 16, Cores: p.layout.Load,
		Requests: requests, Window: costsBound, Drain: time.Second, Timeout: time.Second,
		Scenario: load.Scenario{Requests: []load.Request{
			{Method: "GET", Path: "/burn", Want: "ok", HasWant: true}}},
	}); err != nil {
		p.tb.Fatal(err)
	}
	if err := ask("http://"+addr.String()+"/cost", &slices); err != nil {
		p.tb.Fatal(err)
	}
	return slices
}

func ask(url string, into any) error {
	client := http.Client{Timeout: 5 * time.Second}
	res, err := client.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("ask %s: status %d", url, res.StatusCode)
	}
	return json.Unmarshal(text, into)
}
