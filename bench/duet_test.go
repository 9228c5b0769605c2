package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator"
	"prony.example/internal/observe/host"
	"prony.example/load"
	"prony.example/record"
	"prony.example/stats"
)

var (
	duetBlocks = flag.Int("duet.blocks", 20, "blocks of BenchmarkDuet")
	duetWindow = flag.Duration("duet.window", 2*time.Second, "window of each of its loads")
)

// BenchmarkDuet asks whether duets are worth anything on this machine. One and the same server
// meets itself, two fresh processes a block: at once, on a side each (duet); one after the other on
// the cores of one side (alone); and one after the other as runs without --duet have it (usual),
// which is the same on four cores. The three take turns, sides and orders are swapped from block to
// block and their effect is taken out of all three. What it reports are standard deviations of the
// logarithm of the ratio between blocks: in truth the ratio is 1, so all of it is noise, and a duet
// that is worth its neighbour has less of it.
//
//	go test ./bench -run '^$' -bench 'Duet$' -benchtime 1x -duet.blocks 40
func BenchmarkDuet(b *testing.B) {
	for range b.N {
		noise, how := duetNoise(b, *duetBlocks, *duetWindow)
		b.ReportMetric(0, "ns/op") // the time of a comparison says nothing
		for name, sd := range noise {
			b.ReportMetric(100*sd, name+"-sd-%")
		}
		for _, name := range []string{"alone", "usual"} {
			ratio := noise["duet"] / noise[name]
			lo, hi := ratioOfSDs(ratio, *duetBlocks)
			b.ReportMetric(ratio, "duet/"+name)
			b.Logf("%s: SD of a duet over %s: %.2f [%.2f, %.2f] at 95 %%", how, name, ratio, lo, hi)
		}
	}
}

// ratioOfSDs is the interval of a ratio of two standard deviations of n blocks each, two effects
// taken out: Fisher's F of the variances, which rests on normal logarithms.
func ratioOfSDs(ratio float64, n int) (lo, hi float64) {
	f := distuv.F{D1: float64(n - 2), D2: float64(n - 2)}
	return ratio / math.Sqrt(f.Quantile(0.975)), ratio / math.Sqrt(f.Quantile(0.025))
}

// duetNoise is the SD between blocks of the log ratio of a server to itself, by manner.
func duetNoise(tb testing.TB, blocks int, window time.Duration) (map[string]float64, string) {
	tb.Helper()
	cores, err := host.Cores()
	if err != nil || len(cores) < 2 {
		tb.Skip("skipped: it needs two cores")
	}
	shared := len(cores) < 4
	sides, err := host.DivideSides(cores, 1, shared)
	if err != nil {
		tb.Fatal(err)
	}
	usual, err := host.Divide(cores, 1)
	if err != nil {
		tb.Fatal(err)
	}
	usual = host.Layout{Service: usual.Service, Load: usual.Load[:1]}
	both := [2]host.Layout{sides.Left, sides.Right}
	logs, swapped := map[string][]float64{}, make([]bool, blocks)
	for block := range blocks {
		swapped[block] = block%2 == 1
		for turn := range 3 {
			name := []string{"duet", "alone", "usual"}[(block+turn)%3]
			var x float64
			switch name {
			case "duet":
				x = sideBySide(tb, both, swapped[block], window)
			case "alone":
				x = inTurn(tb, sides.Left, swapped[block], window)
			case "usual":
				x = inTurn(tb, usual, swapped[block], window)
			}
			logs[name] = append(logs[name], x)
		}
	}
	out := map[string]float64{}
	for name, xs := range logs {
		out[name] = stats.SwappedRatio(xs, swapped, 0.95).Ratio.SDLog
	}
	how := fmt.Sprintf("%d blocks of %v on %d cores", blocks, window, len(cores))
	if shared {
		how += ", each server sharing a core with its load"
	}
	return out, how
}

// sideBySide is the log ratio b/a of two servers at once, window by window; a is on the left unless
// they are swapped.
func sideBySide(tb testing.TB, sides [2]host.Layout, swapped bool, window time.Duration) float64 {
	tb.Helper()
	s := &Scope{TB: tb}
	defer s.End()
	addrs := [2]netip.AddrPort{sized(s, sides[0].Service[0], 2), sized(s, sides[1].Service[0], 2)}
	point := &rendezvous{both: make(chan struct{})}
	var results [2]*load.Result
	var errs [2]error
	var running sync.WaitGroup
	for i := range sides {
		running.Go(func() {
			results[i], errs[i] = plainLoad(addrs[i], sides[i].Load[0], window, point.meet)
		})
	}
	running.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		tb.Fatal(err)
	}
	x := stats.DuetWindows(perWindow(results[0]), perWindow(results[1])).LogRatio
	if swapped {
		return -x
	}
	return x
}

// inTurn is the log ratio b/a of two servers, a first unless they are swapped.
func inTurn(tb testing.TB, l host.Layout, swapped bool, window time.Duration) float64 {
	tb.Helper()
	var perS [2]float64
	for i := range perS {
		s := &Scope{TB: tb}
		r, err := plainLoad(sized(s, l.Service[0], 2), l.Load[0], window, nil)
		s.End()
		if err != nil {
			tb.Fatal(err)
		}
		perS[i] = r.ThroughputPerS
	}
	x := math.Log(perS[1] / perS[0])
	if swapped {
		return -x
	}
	return x
}

func plainLoad(addr netip.AddrPort, core int, window time.Duration,
	together func(context.Context) (int64, error)) (*load.Result, error) {
	r, err := generator.Prony{}.Offer(context.Background(), load.Spec{
		Name: "duet", Address: addr, Model: record.Closed, Connections: 16, Cores: []int{core},
		Lead: window / 4, Window: window, Drain: time.Second, Timeout: 5 * time.Second,
		Together: together, Scenario: load.Scenario{Requests: []load.Request{
			{Method: "GET", Path: "/", WantSize: 2}}},
	})
	if err == nil && r.Errors.Total() > 0 {
		err = fmt.Errorf("%d errors: %s", r.Errors.Total(), r.Errors.Example)
	}
	return r, err
}

func perWindow(r *load.Result) (out []float64) {
	for _, n := range r.Series.Done {
		out = append(out, float64(n))
	}
	return out
}

// rendezvous lets two loads begin at one moment.
type rendezvous struct {
	mu    sync.Mutex
	here  int
	start int64
	both  chan struct{}
}

func (g *rendezvous) meet(ctx context.Context) (int64, error) {
	g.mu.Lock()
	if g.here++; g.here == 2 {
		g.start = clock.Mono() + int64(5*time.Millisecond)
		close(g.both)
	}
	g.mu.Unlock()
	// A side that cannot connect never comes; its error is what the test fails with.
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	select {
	case <-g.both:
		return g.start, nil
	case <-bounded.Done():
		return 0, bounded.Err()
	}
}

// It works, in small.
func TestDuetInSmall(t *testing.T) {
	testsets.Long(t, "the noise of duets, in small", testsets.Needs{})
	testsets.Cores(t)
	noise, how := duetNoise(t, 3, 200*time.Millisecond)
	for _, name := range []string{"duet", "alone", "usual"} {
		if sd, ok := noise[name]; !ok || math.IsNaN(sd) || sd <= 0 {
			t.Errorf("%s: SD %v of %s", name, sd, how)
		}
	}
	// F(0.975; 8, 8) = 4.433, and its reciprocal below.
	if lo, hi := ratioOfSDs(2, 10); math.Abs(lo-2/2.1055) > 1e-3 || math.Abs(hi-2*2.1055) > 1e-3 {
		t.Errorf("interval of a ratio of 2: %v to %v", lo, hi)
	}
}
