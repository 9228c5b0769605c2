package table

import (
	"math"
	"slices"
	"strings"
	"testing"

	"prony.example/record"
)

// waves returns the responses of 20 intervals: alternately above and below mean by the same amount.
// All stretches of two intervals have the same mean, so the trial's own mean is certain.
func waves(mean, swing int64) []int64 {
	var done []int64
	for i := range int64(20) {
		done = append(done, mean+swing*(1-2*(i%2)))
	}
	return done
}

// drift returns 20 intervals that climb from mean - reach to mean + reach.
func drift(mean, reach int64) []int64 {
	var done []int64
	for i := range int64(20) {
		done = append(done, mean+reach*(2*i-19)/19)
	}
	return done
}

// noisy returns trials of a target with these series of responses, one per block.
func noisy(target string, series ...[]int64) []record.Record {
	var records []record.Record
	for i, done := range series {
		sum := int64(0)
		for _, n := range done {
			sum += n
		}
		r := trial(target, i+1, float64(sum)/10)
		r.Loads[0].Series = record.Series{IntervalNs: 500e6, Done: done}
		records = append(records, r)
	}
	return records
}

func TestNoise(t *testing.T) {
	check := func(name string, records []record.Record, lo, hi float64, note string) {
		t.Helper()
		study := analyze(records, Options{})
		share := study.Scenarios[0].Targets[0].Variance.Share
		unknown := math.IsNaN(lo)
		if unknown != math.IsNaN(share) || !unknown && (share < lo || share > hi) {
			t.Errorf("%s: %v of the noise is between trials, wanted %v to %v", name, share, lo, hi)
		}
		sheet := study.Sheet()
		said := slices.DeleteFunc(slices.Clone(sheet.Tables[0].Notes), func(n Note) bool {
			return n.Kind != NoteNoiseBetween || n.Args[0] != "peak"
		})
		if note == "" && len(said) > 0 || note != "" && (len(said) != 1 ||
			!strings.HasSuffix(said[0].String(), note)) {
			t.Errorf("%s: the notes say %q, wanted %q", name, said, note)
		}
	}
	const none, some = "longer windows would not help, more trials would.",
		"longer windows would help as much as more trials."
	// Trials 1000, 1100, 1200 apart, each sure of its own mean.
	apart := noisy("a", waves(1000, 10), waves(1100, 10), waves(1200, 10))
	check("between", apart, 0.99, 1, none)
	// Three trials of one mean, whose halves differ: their means are doubtful, and yet equal.
	within := noisy("a", drift(1000, 200), drift(1001, 200), drift(1000, 200))
	check("within", within, 0, 0.01, some)
	nan := math.NaN()
	check("one trial", apart[:1], nan, nan, "")
	check("no series", rates("a", 1000, 1100, 1200), nan, nan, "")
	check("short series", noisy("a", waves(1000, 10)[:7], waves(1100, 10)), nan, nan, "")
	stalled := noisy("a", waves(1000, 10), waves(1100, 1100))
	check("an interval without an answer", stalled, nan, nan, "")
	lost := noisy("a", waves(1000, 10), waves(1100, 10))
	lost[1] = judged(lost[1], invalid("peak"))
	check("the other trial is INVALID", lost, nan, nan, "")
	// The last of the twenty intervals is only 0.2 s long: its responses are not noise.
	tail := noisy("a", waves(1000, 10), waves(1200, 10))
	for i := range tail {
		l := &tail[i].Loads[0]
		l.WindowNs, l.Series.Done[19] = 9.7e9, 3
	}
	check("a shorter last interval", tail, 0.99, 1, none)
	for i := range apart {
		l := &apart[i].Loads[0]
		l.Model, l.ResponseTime = record.Open, record.Dist{Count: 5000, P50Ns: 1, P90Ns: 2,
			P99Ns: 3}
	}
	check("an open load ranks by its p99", apart, nan, nan, "")
}

// TestEnoughForVariance checks from how many trials and intervals the parts of the noise are
// estimated, and that a stall prevents it.
func TestEnoughForVariance(t *testing.T) {
	check := func(want bool, trials ...[]float64) {
		t.Helper()
		if got := enough(trials); got != want {
			t.Errorf("%v: %v, want %v", trials, got, want)
		}
	}
	intervals := func(n int) []float64 { return slices.Repeat([]float64{5}, n) }
	full, stalled := intervals(leastIntervals), intervals(leastIntervals)
	stalled[1] = 0
	check(false)
	check(false, full)
	check(true, full, full)
	check(false, full, intervals(leastIntervals-1))
	check(false, full, full, stalled)
	check(false, full, nil)
}
