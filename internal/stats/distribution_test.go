package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
)

// TestDistributions holds this package's against gonum's own.
func TestDistributions(t *testing.T) {
	for _, free := range []float64{1, 1.7, 2, 5, 12, 400} {
		theirs := distuv.StudentsT{Sigma: 1, Nu: free}
		for _, p := range []float64{1e-6, 0.01, 0.3, 0.5, 0.6, 0.975, 0.99999} {
			same(t, "quantile of t", student(free).Quantile(p), theirs.Quantile(p))
			same(t, "quantile of chi squared", quantileOfChiSquared(free, p),
				distuv.ChiSquared{K: free}.Quantile(p))
			same(t, "quantile of F", quantileOfF(free, 3, p),
				distuv.F{D1: free, D2: 3}.Quantile(p))
		}
		for _, x := range []float64{-30, -2, -0.1, 0, 0.4, 7} {
			same(t, "t", student(free).CDF(x), theirs.CDF(x))
			same(t, "normal", normal(x), distuv.UnitNormal.CDF(x))
		}
	}
	same(t, "orders", orders(10, 3), 120)
	same(t, "orders", orders(7.5, 2), math.Exp(combin.LogGeneralizedBinomial(7.5, 2)))
}

// TestMoments adds a large level, where a single pass would lose the digits of the spread.
func TestMoments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 3, 50} {
		xs, ys := make([]float64, n), make([]float64, n)
		for i := range xs {
			xs[i] = 1e9 + rng.NormFloat64()
			ys[i] = xs[i]/2 + rng.NormFloat64()
		}
		same(t, "mean", mean(xs), stat.Mean(xs, nil))
		same(t, "variance", variance(xs), stat.Variance(xs, nil))
		same(t, "SD", sd(ys), stat.StdDev(ys, nil))
		if n > 1 {
			same(t, "correlation", correlation(xs, ys), stat.Correlation(xs, ys, nil))
		}
	}
}

func same(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !near(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
