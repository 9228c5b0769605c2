package stats

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestQuantiles compares quantiles with mpmath 1.3, which finds each as the root of the
// distribution function with 40 digits.
func TestQuantiles(t *testing.T) {
	check := func(free, p, ofT, ofChiSquared, ofF float64) {
		t.Helper()
		same(t, "quantile of t", student(free).Quantile(p), ofT)
		same(t, "quantile of chi squared", quantileOfChiSquared(free, p), ofChiSquared)
		same(t, "quantile of F", quantileOfF(free, 3, p), ofF)
	}
	check(1, 1e-6, -318309.8861827, 1.570796326796e-12, 1.850550825206e-12)
	check(1, 0.01, -31.82051595377, 0.0001570878579097, 0.0001850703040367)
	check(1, 0.3, -0.7265425280054, 0.1484718618325, 0.1799470164637)
	check(1, 0.5, 0, 0.4549364231196, 0.5850602740518)
	check(1, 0.6, 0.3249196962329, 0.7083263008008, 0.9574080660616)
	check(1, 0.975, 12.70620473617, 5.023886187315, 17.44344332073)
	check(1, 0.99999, 31830.98860791, 19.51142096466, 3647.77635431)
	check(1.7, 1e-6, -2023.883747669, 1.635434178377e-7, 1.007187463402e-7)
	check(1.7, 0.01, -8.910124860635, 0.00832707398943, 0.005135651624584)
	check(1.7, 0.3, -0.6353009164288, 0.5211613340364, 0.3517082407943)
	check(1.7, 0.5, 0, 1.097794522176, 0.8222705348941)
	check(1.7, 0.6, 0.2950611272978, 1.495241103704, 1.20564101603)
	check(1.7, 0.975, 5.118838988253, 6.729887825682, 16.33143668131)
	check(1.7, 0.99999, 522.335264268, 22.06742784341, 3311.502710472)
	check(2, 1e-6, -707.1057205259, 2.000001000001e-6, 1.000000833334e-6)
	check(2, 0.01, -6.964556734283, 0.020100671707, 0.01008408092818)
	check(2, 0.3, -0.6172133998484, 0.7133498878775, 0.4026514323056)
	check(2, 0.5, 0, 1.38629436112, 0.8811015779523)
	check(2, 0.6, 0.2886751345948, 1.832581463748, 1.26302362398)
	check(2, 0.975, 4.302652729749, 7.377758908228, 16.04410642928)
	check(2, 0.99999, 223.603443634, 23.02585092994, 3230.152035048)
	check(5, 1e-6, -24.77102972052, 0.0128961602065, 0.001803136090273)
	check(5, 0.01, -3.364929998907, 0.5542980767283, 0.08291905803023)
	check(5, 0.3, -0.5594296444694, 2.99990813276, 0.6232351371895)
	check(5, 0.5, 0, 4.351460191096, 1.102358118407)
	check(5, 0.6, 0.2671808657041, 5.131867074402, 1.465987039268)
	check(5, 0.975, 2.570581835636, 12.83250199403, 14.88482292064)
	check(5, 0.99999, 15.54685453495, 30.85618994044, 2919.180928427)
	check(12, 1e-6, -8.504302718055, 0.6260629572946, 0.02295770729041)
	check(12, 0.01, -2.680997993121, 3.570568970604, 0.1679953790352)
	check(12, 0.3, -0.5386176682019, 9.03427658814, 0.7318364078929)
	check(12, 0.5, 0, 11.34032237742, 1.197166213855)
	check(12, 0.6, 0.2590327456769, 12.58383796662, 1.546926799075)
	check(12, 0.975, 2.178812829667, 23.33666415865, 14.33655235119)
	check(12, 0.99999, 6.765169241807, 45.07614652416, 2779.925085933)
	check(400, 1e-6, -4.824434071463, 279.6368230755, 0.09425111554493)
	check(400, 0.01, -2.335706413262, 337.1553134011, 0.2610339034417)
	check(400, 0.3, -0.5248186583811, 384.69840607, 0.8158598517344)
	check(400, 0.5, 0, 399.3335312249, 1.265813036205)
	check(400, 0.6, 0.2535156748313, 406.5351488041, 1.603248110476)
	check(400, 0.975, 1.965912343229, 457.3054819661, 13.91567384652)
	check(400, 0.99999, 4.31658620844, 532.2632463132, 2675.742472386)
}

// TestDistributions compares distribution functions with mpmath.
func TestDistributions(t *testing.T) {
	for _, x := range []struct {
		t      float64
		cdf    [6]float64 // by degrees of freedom
		normal float64
	}{
		{-30, [6]float64{
			0.01060640240554, 0.001284993827104, 0.0005546313409798,
			3.859324310248e-7, 5.886590953509e-13, 1.005328571789e-104,
		}, 4.906713927148e-198},
		{-2, [6]float64{
			0.1475836176504, 0.1027450564263, 0.09175170953614,
			0.05096973941493, 0.03432750701904, 0.02308797258678,
		}, 0.02275013194818},
		{-0.1, [6]float64{
			0.4682744825694, 0.4654289892799, 0.4647327192071,
			0.4621150705773, 0.4609977852284, 0.4601972124443,
		}, 0.460172162723},
		{0, [6]float64{0.5, 0.5, 0.5, 0.5, 0.5, 0.5}, 0.5},
		{0.4, [6]float64{
			0.6211189415908, 0.6331398657569, 0.636082763488,
			0.6471634425834, 0.6519073473037, 0.6553149814053,
		}, 0.6554217416103},
		{7, [6]float64{
			0.9548327646991, 0.9850498111657, 0.9900980294098,
			0.9995416262428, 0.999992828239, 0.9999999999946,
		}, 0.9999999999987},
	} {
		for i, free := range []float64{1, 1.7, 2, 5, 12, 400} {
			same(t, "t", student(free).CDF(x.t), x.cdf[i])
		}
		same(t, "normal", normal(x.t), x.normal)
	}
	same(t, "orders", orders(10, 3), 120)
	same(t, "orders", orders(7.5, 2), 7.5*6.5/2)
}

// TestMoments adds a large level, with which a single pass would lose the digits of the spread; the
// truth is computed with 200 bits.
func TestMoments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 50} {
		xs, ys := make([]float64, n), make([]float64, n)
		for i := range xs {
			xs[i] = 1e9 + rng.NormFloat64()
			ys[i] = xs[i]/2 + rng.NormFloat64()
		}
		x, _ := about(xs, xs)
		same(t, "mean", mean(xs), x)
		if n > 1 {
			_, xx := about(xs, xs)
			_, yy := about(ys, ys)
			same(t, "variance", variance(xs), xx/float64(n-1))
			same(t, "SD", sd(ys), math.Sqrt(yy/float64(n-1)))
		}
	}
	same(t, "mean of none", mean(nil), math.NaN())
	same(t, "variance of one", variance([]float64{1}), math.NaN())
}

// about returns the mean of the first values, and the sum of products of deviations from the means.
func about(xs, ys []float64) (mean, products float64) {
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }
	x, y, n, xy := number(0), number(0), number(float64(len(xs))), number(0)
	for i := range xs {
		x.Add(x, number(xs[i]))
		y.Add(y, number(ys[i]))
	}
	x.Quo(x, n)
	y.Quo(y, n)
	for i := range xs {
		dx, dy := number(xs[i]), number(ys[i])
		xy.Add(xy, dx.Mul(dx.Sub(dx, x), dy.Sub(dy, y)))
	}
	mean, _ = x.Float64()
	products, _ = xy.Float64()
	return mean, products
}

func same(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !near(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
