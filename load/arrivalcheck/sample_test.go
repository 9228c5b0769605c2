package arrivalcheck

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// deal returns the times of the i-th of n threads: every n-th.
func deal(t Times, n int) []Times {
	threads := make([]Times, n)
	for k := range t.Left {
		to := &threads[k%n]
		to.Due = append(to.Due, t.Due[k])
		to.Left = append(to.Left, t.Left[k])
		to.Response = append(to.Response, t.Response[k])
	}
	return threads
}

// A schedule distributed over threads is complete again when their samples are merged; the share of
// one thread is not Poisson, because it skips arrivals.
func TestMerge(t *testing.T) {
	due := poisson(seeded(1), 9000, ms)
	times := Times{Due: due, Left: make([]int64, len(due)), Response: make([]int64, len(due))}
	for k, d := range due {
		times.Left[k], times.Response[k] = d+us, int64(k)
	}
	threads := deal(times, 3)
	got := Merge(threads[2], Times{}, threads[0], threads[1])
	// The threads end with arrivals 8,998, 8,999 and 9,000: only the first of these is within the
	// reach of all.
	n := len(due) - 2
	if !slices.Equal(got.Due, due[:n]) || !slices.Equal(got.Left, times.Left[:n]) ||
		!slices.Equal(got.Response, times.Response[:n]) {
		t.Errorf("%d merged requests differ from the first %d that were dealt", len(got.Due), n)
	}
	// The second thread's sample is full in the middle: later samples are incomplete.
	threads[1].Due, threads[1].Left = threads[1].Due[:100], threads[1].Left[:100]
	if got := Merge(threads...); !slices.Equal(got.Due, due[:299]) { // 100 of it, 100 and 99
		t.Errorf("%d requests reach as far as the shortest sample, want 299", len(got.Due))
	}
	if a2 := Arrivals(got, true, nil).AndersonDarling; a2 > onePercent {
		t.Errorf("A² of the whole is %v", a2)
	}
	if a2 := Arrivals(Merge(threads[0]), true, nil).AndersonDarling; a2 < limit {
		t.Errorf("A² of a third is %v, want more than %v", a2, limit)
	}
	if got := Merge(); len(got.Due)+len(got.Left)+len(got.Response) > 0 {
		t.Errorf("nothing merges to %+v", got)
	}
}

// A request that waits for a connection can be overtaken by a later one.
func TestMergeSorts(t *testing.T) {
	got := Merge(Times{Due: []int64{1, 4, 5}, Left: []int64{2, 9, 5}, Response: []int64{7, 8, 9}})
	want := Times{Due: []int64{1, 5, 4}, Left: []int64{2, 5, 9}, Response: []int64{7, 9, 8}}
	if !slices.Equal(got.Due, want.Due) || !slices.Equal(got.Left, want.Left) ||
		!slices.Equal(got.Response, want.Response) {
		t.Errorf("merged to %+v, want %+v", got, want)
	}
}

// ar1 returns a stationary autoregression of order one with normal innovations, as response times.
func ar1(r *rand.Rand, n int, rho float64) []int64 {
	out := make([]int64, n)
	x := r.NormFloat64()
	for k := range out {
		out[k] = int64(1e6 * math.Exp(x))
		x = rho*x + math.Sqrt(1-rho*rho)*r.NormFloat64()
	}
	return out
}

// together returns how much more often than by chance two normal variables with a correlation both
// exceed their 99th percentile: the integral of their density there over the correlation (Plackett,
// Biometrika 41, 1954), by Simpson's rule in the arc.
func together(rho float64) float64 {
	const q = 2.3263478740408408 // of the standard normal distribution, 99 %
	f := func(arc float64) float64 { return math.Exp(-q*q/(1+math.Sin(arc))) / (2 * math.Pi) }
	const steps = 200
	h := math.Asin(rho) / steps
	sum := f(0) + f(steps*h)
	for i := 1; i < steps; i++ {
		sum += f(float64(i)*h) * float64(2+2*(i%2))
	}
	return sum * h / 3
}

// An autoregression has known results: Spearman's coefficient is 6/π·asin(ρ/2), and one independent
// response is worth 1 + 2Σ c(ρ^k)/(p(1 − p)) of these, where c is how often two are slow together.
func TestAutoregression(t *testing.T) {
	check := func(rho float64) {
		t.Helper()
		worth := 1.0
		for r := rho; r > 1e-6; r *= rho {
			worth += 2 * together(r) / (0.01 * 0.99)
		}
		lag1, inverse := 0.0, 0.0
		const seeds = 30
		for seed := range uint64(seeds) {
			m := Correlation(ar1(seeded(seed), 1<<15, rho))
			lag1 += m.Lag1 / seeds
			inverse += 1 / m.EffectiveShare / seeds
		}
		if want := 6 / math.Pi * math.Asin(rho/2); math.Abs(lag1-want) > 0.01 {
			t.Errorf("ρ = %v: lag 1 is %v, want %v (seeds 0-29)", rho, lag1, want)
		}
		// 30 estimates of a quarter each: 0.25/√30 = 4.6 %. A share of more than 1 counts as 1,
		// which matters at ρ = 0; at ρ = 0.98, correlation lasts longer than a batch.
		if math.Abs(inverse/worth-1) > 0.12 {
			t.Errorf("ρ = %v: %v of these are worth one, want %v (seeds 0-29)", rho, inverse, worth)
		}
	}
	check(0)
	check(0.5)
	check(0.9)
	check(0.98)
}

func TestCorrelation(t *testing.T) {
	check := func(what string, response []int64, samples int64, lag1, effective float64) {
		t.Helper()
		m := Correlation(response)
		near := math.Abs(m.Lag1-lag1) < 0.001 && math.Abs(m.EffectiveShare-effective) < 0.0001
		if m.Samples != samples || !near { // NaN is near nothing
			t.Errorf("%s: %+v, want %d, %v, %v", what, m, samples, lag1, effective)
		}
	}
	// 3,200 answers, of which 32 are slow.
	slow := func(at func(k int) int) []int64 {
		out := slices.Repeat([]int64{1}, 3200)
		for k := range 32 {
			out[at(k)] = 9
		}
		return out
	}
	// One in each batch of 100 varies less than independent ones. Ranks: 32 of 3,168/2 above the
	// mean and the rest 16 below, never together: −1/99.
	check("one in a hundred", slow(func(k int) int { return 100 * k }), 3200, -1./99, 1)
	// All in one batch: (31² + 31·1²)/31 = 32; independent ones have 1·(1 − 1/100).
	check("all together", slow(func(k int) int { return 200 + k }), 3200, 31./32-1./99/32, 0.99/32)
	// 100 share the maximum, so p99 is one of them; all in one batch, which makes 100²·(31/32)/31 =
	// 312.5; independent ones have 100/32·(1 − 1/32) = 3.027. Ranks: a share f of 1/32 are high,
	// (99·(1 − f)² − 2·f(1 − f) + 3,098·f²)/(3,200·f(1 − f)).
	many := slices.Repeat([]int64{1}, 3200)
	copy(many[200:], slices.Repeat([]int64{9}, 100))
	check("a hundred alike", many, 3200, 95.8745/96.875, 3.02734375/312.5)
	check("all equal", slices.Repeat([]int64{5}, 3200), 3200, 0, 1)
	check("up and down", slices.Repeat([]int64{5, 6}, 1600), 3200, -1, 1)
	check("380 and some that did not come", append(slices.Repeat([]int64{5}, 380), 0, 0), 380, 0, 0)
	check("none", nil, 0, 0, 0)
	m := Correlation(ar1(seeded(1), 381, 0))
	if m.Samples != 381 || m.EffectiveShare == 0 {
		t.Errorf("of 381 answers: %+v", m)
	}
}

// Independent responses rarely count as half of them, even if they are few.
func TestIndependentAnswersCount(t *testing.T) {
	for _, n := range []int{400, 1000, 8000} {
		half := 0
		for seed := range uint64(200) {
			if Correlation(ar1(seeded(seed), n, 0)).EffectiveShare < 0.5 {
				half++
			}
		}
		if half > 4 {
			t.Errorf("%d independent answers: in %d of 200 samples fewer than half count "+
				"(seeds 0-199)", n, half)
		}
	}
}

func BenchmarkCorrelation(b *testing.B) {
	response := ar1(seeded(1), 1<<16, 0.5)
	for b.Loop() {
		Correlation(response)
	}
}

func BenchmarkArrivals(b *testing.B) {
	at := poisson(seeded(1), 1<<16, 50*us)
	t := Times{Due: at, Left: at, Response: at}
	for b.Loop() {
		Arrivals(Merge(t), true, nil)
	}
}
