package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const ms = 1_000_000

// rowsOf returns rounds of two targets: requests of a and b in windows of 40 ms, with 1 µs of CPU
// time per request.
func rowsOf(requests ...[2]int64) (rows []SliceRow) {
	for round, pair := range requests {
		for target, n := range pair {
			rows = append(rows, SliceRow{Round: round + 1, Target: target, Requests: n,
				TimeNs: 40 * ms, CPUNs: 1000 * n})
		}
	}
	return rows
}

func TestCompareIsOfTotals(t *testing.T) {
	// Ten rounds of 100 against 95, one of 100 against 40: totals 1100 and 990, 10 % less. The
	// median of rounds is 5 % less.
	var pairs [][2]int64
	for range 10 {
		pairs = append(pairs, [2]int64{100, 95})
	}
	pairs = append(pairs, [2]int64{100, 40})
	r := NewRounds(rowsOf(pairs...)).Compare([]int{0}, []int{1}, Throughput)
	if !near(r.LogRatio, math.Log(0.9)) || !near(r.Typical, math.Log(0.95)) {
		t.Errorf("whole %v, typical %v", math.Exp(r.LogRatio), math.Exp(r.Typical))
	}
	if r.Rounds != 11 || r.Skipped != 0 || r.EventsA != 0 || r.EventsB != 1 || r.Warning != "" {
		t.Errorf("%+v", r)
	}
	// 11 windows of 40 ms: five events in them are 88 ms apart.
	if r.RarestNs() != 88*ms {
		t.Errorf("the rarest are %d ns apart", r.RarestNs())
	}
}

// A longer window has more weight: 100 requests in 40 ms and 100 in 60 ms are 2 per millisecond.
func TestCompareWeighsByTime(t *testing.T) {
	rows := rowsOf([2]int64{80, 100}, [2]int64{120, 100})
	rows[2].TimeNs, rows[3].TimeNs = 60*ms, 60*ms
	if r := NewRounds(rows).Compare([]int{0}, []int{1}, Throughput); !near(r.LogRatio, 0) {
		t.Errorf("log ratio %v", r.LogRatio)
	}
}

// TestEnding compares the last quarter of rounds with all rounds. A machine that gets faster
// changes nothing, a target that gets faster does.
func TestEnding(t *testing.T) {
	check := func(want float64, pairs ...[2]int64) {
		t.Helper()
		r := NewRounds(rowsOf(pairs...)).Compare([]int{0}, []int{1}, Throughput)
		if !near(r.Ending, want) && !(math.IsNaN(r.Ending) && math.IsNaN(want)) {
			t.Errorf("%v: ending %v, want %v", pairs, r.Ending, want)
		}
	}
	check(0, [2]int64{100, 200}, [2]int64{110, 220}, [2]int64{120, 240}, [2]int64{130, 260})
	// 100 against 80, 90, 100 and 110: 110 at the end, 95 on average.
	check(math.Log(110.0/95), [2]int64{100, 80}, [2]int64{100, 90}, [2]int64{100, 100},
		[2]int64{100, 110})
	check(math.NaN(), [2]int64{100, 80}, [2]int64{100, 90}, [2]int64{100, 100})
	check(math.NaN(), [2]int64{9, 9}, [2]int64{9, 9}, [2]int64{9, 9}, [2]int64{9, 0})
}

func TestCompareCPU(t *testing.T) {
	rows := rowsOf([2]int64{100, 100}, [2]int64{100, 50})
	rows[3].CPUNs = 80_000 // b: 180 µs for 150 requests, a: 1 µs each
	r := NewRounds(rows).Compare([]int{0}, []int{1}, CPUPerRequest)
	if !near(r.LogRatio, math.Log(1.2)) {
		t.Errorf("ratio %v", math.Exp(r.LogRatio))
	}
	rows[1].CPUNs = -1
	r = NewRounds(rows).Compare([]int{0}, []int{1}, CPUPerRequest)
	if !math.IsNaN(r.LogRatio) || !strings.Contains(r.Warning, "processor time is unknown") {
		t.Errorf("%+v", r)
	}
}

func TestCompareLeavesOutHalfRounds(t *testing.T) {
	rows := rowsOf([2]int64{100, 100}, [2]int64{100, 1}, [2]int64{100, 100})
	r := NewRounds(append(rows[:3:3], rows[4:]...)).Compare([]int{0}, []int{1}, Throughput)
	if r.Rounds != 2 || r.Skipped != 1 || !near(r.LogRatio, 0) || !math.IsNaN(r.SE) {
		t.Errorf("%+v", r)
	}
	if none := NewRounds(nil).Compare([]int{0}, []int{1}, Throughput); !math.IsNaN(none.LogRatio) ||
		none.Warning == "" {
		t.Errorf("of no rows: %+v", none)
	}
}

// Slices of the same round and target are added up.
func TestRoundsAddUp(t *testing.T) {
	rows := rowsOf([2]int64{100, 60})
	again := rows[1]
	again.Requests, again.CPUNs, again.TimeNs = 40, 40_000, 10*ms
	rows[1].TimeNs = 30 * ms
	r := NewRounds(append(rows, again))
	for q := range 2 {
		if c := r.Compare([]int{0}, []int{1}, Quantity(q)); c.Rounds != 1 || !near(c.LogRatio, 0) {
			t.Errorf("quantity %d: %+v", q, c)
		}
	}
}

// A slice in which one target sent no response is an event, and causes no infinity.
func TestRoundWithoutAnswers(t *testing.T) {
	pairs := [][2]int64{{100, 0}}
	for range 9 {
		pairs = append(pairs, [2]int64{100, 100})
	}
	r := NewRounds(rowsOf(pairs...)).Compare([]int{0}, []int{1}, Throughput)
	if !near(r.LogRatio, math.Log(0.9)) || r.Typical != 0 || r.EventsB != 1 || notFinite(r.SE) {
		t.Errorf("%+v", r)
	}
}

// The jackknife's SE equals the scatter of starts if nothing differs between them. Slices scatter
// by 10 %: log ratios of 50 rounds by 0.1 sqrt(2/50) = 2 %.
func TestJackknife(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var ratios, squares []float64
	for range 2000 {
		pairs := make([][2]int64, 50)
		for i := range pairs {
			speed := 1e6 * math.Exp(0.3*r.NormFloat64())
			for side := range pairs[i] {
				pairs[i][side] = int64(speed * (1 + 0.1*r.NormFloat64()))
			}
		}
		s := NewRounds(rowsOf(pairs...)).Compare([]int{0}, []int{1}, Throughput)
		ratios, squares = append(ratios, s.LogRatio), append(squares, s.SE*s.SE)
	}
	// The speed of rounds scatters by 30 %, so weights differ: 0.02 sqrt(1 + 0.3²) = 0.0209.
	if got, want := math.Sqrt(mean(squares)), sd(ratios); math.Abs(got/want-1) > 0.05 ||
		math.Abs(want-0.0209) > 0.002 {
		t.Errorf("jackknife %.4f, scatter %.4f", got, want)
	}
}

// TestPlus sums slices of a target. A sum with an unknown part is unknown.
func TestPlus(t *testing.T) {
	row := func(cpuNs int64, covariates ...float64) SliceRow {
		return SliceRow{Requests: 3, TimeNs: 5, CPUNs: cpuNs, Covariates: covariates}
	}
	check := func(a, b SliceRow, cpuNs int64, covariates ...float64) {
		t.Helper()
		got := a.plus(b)
		if got.Requests != 6 || got.TimeNs != 10 || got.CPUNs != cpuNs ||
			!slices.Equal(got.Covariates, covariates) {
			t.Errorf("%+v and %+v are %+v, want CPU %d, %v", a, b, got, cpuNs, covariates)
		}
	}
	check(row(7, 1, 2), row(8, 10, 20), 15, 11, 22)
	check(row(-1), row(8), -1)
	check(row(7, 1), row(-1), -1, 1)
	check(row(0), row(0, 4), 0, 4)
}
