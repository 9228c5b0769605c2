package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"prony.example/stats"
)

const (
	perSecond  = 10  // intervals of 100 ms
	seriesLong = 300 // 30 s
)

var steadyRule = stats.SteadyRule{Tail: 20, Same: 0.03}

// course is a service's true speed over time, at last 1.
type course struct {
	name  string
	level func(seconds float64) float64
	kind  string
}

func stepAt(pairs ...float64) func(float64) float64 {
	return func(s float64) float64 {
		for i := 0; i+1 < len(pairs); i += 2 {
			if s < pairs[i] {
				return pairs[i+1]
			}
		}
		return 1
	}
}

func exponential(tau float64) func(float64) float64 {
	return func(s float64) float64 { return 1 - 0.6*math.Exp(-s/tau) }
}

var courses = []course{
	{"flat", stepAt(), stats.Flat},
	{"60 % for 1 s", stepAt(1, 0.6), stats.Warmed},
	{"60 % for 5 s", stepAt(5, 0.6), stats.Warmed},
	{"30 %, 70 % from 1 s, 100 % from 4 s", stepAt(1, 0.3, 4, 0.7), stats.Warmed},
	{"exponential, 0.5 s", exponential(0.5), stats.Warmed},
	{"exponential, 1 s", exponential(1), stats.Warmed},
	{"exponential, 2.5 s", exponential(2.5), stats.Warmed},
	{"exponential, 5 s", exponential(5), stats.Warmed},
	{"110 % for 8 s", stepAt(8, 1.1), stats.Slowed},
	{"0.4 % more each second", func(s float64) float64 { return 1 + 0.004*s }, stats.Unsteady},
}

// truth returns the first interval from which on the level stays within Same of the last; -1: none.
func (c course) truth() int {
	if c.kind == stats.Unsteady {
		return -1
	}
	at := seriesLong
	for at > 0 && math.Abs(c.level(float64(at-1)/perSecond)-1) <= steadyRule.Same {
		at--
	}
	return at
}

// counts simulates 30 s of a service of 8000 requests/s: AR(1) noise of 2 %, and one interval in a
// hundred loses half on average.
func (c course) counts(r *rand.Rand) []float64 {
	const sd, ar = 0.02, 0.3
	xs := make([]float64, seriesLong)
	e := sd * r.NormFloat64()
	for i := range xs {
		xs[i] = math.Round(1000 * c.level(float64(i)/perSecond) * (1 + e))
		if r.IntN(100) == 0 {
			xs[i] *= r.Float64()
		}
		e = ar*e + math.Sqrt(1-ar*ar)*sd*r.NormFloat64()
	}
	return xs
}

// stops are rules that end a warm-up: after how many intervals, or -1 within the 30 s.
var stops = []struct {
	name string
	stop func(xs []float64) int
}{
	{"change points", func(xs []float64) int {
		for n := steadyRule.Tail; n <= len(xs); n++ {
			if stats.SteadyState(xs[:n], steadyRule).Kind != stats.Unsteady {
				return n
			}
		}
		return -1
	}},
	{"three spans", threeSpans},
	{"always 5 s", func([]float64) int { return 5 * perSecond }},
	{"always 15 s", func([]float64) int { return 15 * perSecond }},
}

// threeSpans is Prony's earlier rule: the last three half seconds agree within 3 %, and within
// twice the counting error.
func threeSpans(xs []float64) int {
	const span, spans = 5, 3
	for n := span * spans; n <= len(xs); n++ {
		least, most := math.Inf(1), 0.0
		for part := range slices.Chunk(xs[n-span*spans:n], span) {
			count := 0.0
			for _, x := range part {
				count += x
			}
			least, most = min(least, count), max(most, count)
		}
		if least > 0 && most/least-1 <= 0.03+2*math.Sqrt(2/least) {
			return n
		}
	}
	return -1
}

// simSpread returns the median and the 95th percentile in seconds.
func simSpread(xs []float64) string {
	if len(xs) == 0 {
		return "–"
	}
	slices.Sort(xs)
	at := func(q float64) float64 { return xs[int(q*float64(len(xs)-1)+0.5)] }
	return fmt.Sprintf("%+.1f (%+.1f to %+.1f)", at(0.5), at(0.05), at(0.95))
}

func steadyTable(experiments int) string {
	var out strings.Builder
	out.WriteString("\n| course | true s | kind right | begins, s off: median (90 %) |\n" +
		"|---|---|---|---|\n")
	for _, c := range courses {
		right, off := c.found(experiments)
		fmt.Fprintf(&out, "| %s | %s | %.0f %% | %s |\n", c.name, inSeconds(c.truth()), 100*right,
			simSpread(off))
	}
	out.WriteString("\n| course | rule | too early | still short | waits s after |\n" +
		"|---|---|---|---|---|\n")
	for _, c := range courses {
		for _, rule := range stops {
			early, short, waits := c.stopped(experiments, rule.stop)
			fmt.Fprintf(&out, "| %s | %s | %.0f %% | %.1f %% | %s |\n", c.name, rule.name,
				100*early, 100*short, simSpread(waits))
		}
	}
	return out.String()
}

func inSeconds(intervals int) string {
	if intervals < 0 {
		return "never"
	}
	return fmt.Sprintf("%.1f", float64(intervals)/perSecond)
}

// found classifies finished series: the share with the right kind, and the error in seconds of the
// beginning of the steady state if there is one.
func (c course) found(experiments int) (right float64, off []float64) {
	r := rand.New(rand.NewPCG(inferenceSeed, 1))
	for range experiments {
		s := stats.SteadyState(c.counts(r), steadyRule)
		if s.Kind == c.kind {
			right += 1 / float64(experiments)
		}
		if s.At >= 0 && c.truth() >= 0 {
			off = append(off, float64(s.At-c.truth())/perSecond)
		}
	}
	return right, off
}

// stopped ends warm-ups by a rule: the share that ends before the truth, the service's average
// distance from the last level then, and how long after the truth the others end.
func (c course) stopped(experiments int, stop func([]float64) int) (early, short float64,
	waits []float64) {
	r := rand.New(rand.NewPCG(inferenceSeed, 1))
	last := c.level(float64(seriesLong) / perSecond)
	for range experiments {
		n := stop(c.counts(r))
		if n < 0 {
			n = seriesLong
		} else if c.truth() < 0 || n < c.truth() {
			early += 1 / float64(experiments)
		}
		short += math.Abs(1-c.level(float64(n)/perSecond)/last) / float64(experiments)
		if c.truth() >= 0 && n >= c.truth() {
			waits = append(waits, float64(n-c.truth())/perSecond)
		}
	}
	return early, short, waits
}

// TestWarmups checks some of the table's cells, and that the rule of spans is worse where they say
// so.
func TestWarmups(t *testing.T) {
	const experiments = 100
	for _, c := range courses {
		if right, _ := c.found(experiments); right < 0.75 {
			t.Errorf("seed %d: %s is %s in %.2f only", inferenceSeed, c.name, c.kind, right)
		}
	}
	slow := courses[6]
	_, ours, _ := slow.stopped(20, stops[0].stop)
	_, spans, _ := slow.stopped(20, stops[1].stop)
	if ours > 0.05 || spans < 2*ours {
		t.Errorf("seed %d: %s: change points end %.3f short, three spans %.3f", inferenceSeed,
			slow.name, ours, spans)
	}
}
