package stats

import "math"

// Unseen estimates how much time stalls took that were too short to be recorded (Stall.UnseenNs).
// Each stall adds little that is known and much that is chance, so the estimate of one window is
// mostly chance. Sums of windows are not.
type Unseen struct {
	Ns     float64 // may be negative: the estimate is unbiased
	ErrNs  float64 // its standard error
	TimeNs int64   // that was watched
}

// UnseenOf returns the estimate from stalls that were recorded in some time.
func UnseenOf(all []Stall, timeNs int64) Unseen {
	u := Unseen{TimeNs: timeNs}
	for _, s := range all {
		u.Ns += float64(s.UnseenNs)
		u.ErrNs = math.Hypot(u.ErrNs, float64(s.UnseenNs))
	}
	return u
}

// Plus returns the estimate for two times that do not overlap.
func (u Unseen) Plus(v Unseen) Unseen {
	return Unseen{u.Ns + v.Ns, math.Hypot(u.ErrNs, v.ErrNs), u.TimeNs + v.TimeNs}
}

// Most bounds the share of the time: the estimate and two of its standard errors, 0 to 1.
func (u Unseen) Most() float64 { return u.share(2) }

// Least bounds it from below: the estimate less two of its standard errors, 0 to 1.
func (u Unseen) Least() float64 { return u.share(-2) }

func (u Unseen) share(errors float64) float64 {
	if u.TimeNs <= 0 {
		return 0
	}
	return min(max((u.Ns+errors*u.ErrNs)/float64(u.TimeNs), 0), 1)
}

// Pool returns the estimate that holds for a part of a whole, such as one target of a comparison:
// that of the whole, which is less of chance, unless the part has certainly more.
func (u Unseen) Pool(sum Unseen) Unseen {
	if u.Least() > sum.Most() {
		return u
	}
	return sum
}
