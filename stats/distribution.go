package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Means, variances and quantiles that only use gonum's special functions. Its packages of
// statistics import linear algebra, which nothing here calls but which is a twelfth of the program.

// mean returns the mean; NaN without values.
func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// variance returns the sample variance, by two passes, corrected for the mean's rounding (Chan,
// Golub and LeVeque 1983, equation 1.7); NaN for fewer than two values.
func variance(xs []float64) float64 {
	n, m := float64(len(xs)), mean(xs)
	var squares, remaining float64
	for _, x := range xs {
		squares += (x - m) * (x - m)
		remaining += x - m
	}
	return (squares - remaining*remaining/n) / (n - 1)
}

func sd(xs []float64) float64 { return math.Sqrt(variance(xs)) }

// student is the t distribution with this number of degrees of freedom.
type student float64

func (free student) CDF(t float64) float64 {
	nu := float64(free)
	tail := mathext.RegIncBeta(nu/2, 0.5, nu/(nu+t*t)) / 2
	if t > 0 {
		return 1 - tail
	}
	return tail
}

func (free student) Quantile(p float64) float64 {
	if p < 0.5 {
		return -free.Quantile(1 - p)
	}
	x := mathext.InvRegIncBeta(float64(free)/2, 0.5, 2*(1-p))
	return math.Sqrt(float64(free) * (1 - x) / x)
}

// quantileOfF returns the p-quantile of the ratio of two variances with a and b degrees of freedom.
func quantileOfF(a, b, p float64) float64 {
	x := mathext.InvRegIncBeta(a/2, b/2, p)
	return b * x / (a * (1 - x))
}

func quantileOfChiSquared(free, p float64) float64 {
	return 2 * mathext.GammaIncRegInv(free/2, p)
}

// normal returns the standard normal distribution's CDF at x.
func normal(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// orders returns the number of ways in which n of all values can be the least: "all over n".
func orders(all, n float64) float64 {
	return math.Exp(-math.Log(all+1) - mathext.Lbeta(all-n+1, n+1))
}
