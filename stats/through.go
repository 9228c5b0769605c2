package stats

import "math"

// RatioThrough returns the ratio of b to a from their ratios to the same base, if these are
// independent because each comes from its own starts or blocks. The variances of both means add up,
// with Satterthwaite's degrees of freedom (Welch, "The generalization of 'Student's' problem when
// several different population variances are involved", Biometrika 34, 1947, pp. 28-35). It has no
// interval if one of them has none.
func RatioThrough(a, b Ratio) Ratio {
	r := unknownRatio(min(a.N, b.N), a.Confidence)
	r.Center = b.Center / a.Center
	for _, x := range []Ratio{a, b} {
		if !x.HasInterval() || !(x.SDLog > 0) || !(x.Free > 0) {
			r.Warning = x.Warning
			return r
		}
	}
	means := []spread{{a.SDLog * a.SDLog / float64(a.N), a.Free},
		{b.SDLog * b.SDLog / float64(b.N), b.Free}}
	r.SDLog, r.Assumption = math.Hypot(a.SDLog, b.SDLog), a.Assumption
	return r.about(math.Log(r.Center),
		spread{means[0].variance + means[1].variance, freedom(means[0], means[1])})
}
