package stats

import (
	"math/rand/v2"
	"testing"
)

// The bounds of a sum of windows hold the mean share of unseen time in at least 95 of 100 cases
// each, where that of a window is hardly ever below twice the truth.
func TestUnseenOfWindows(t *testing.T) {
	const (
		windows, window = 40, int64(1e9)
		each            = 2e6 // a run of another process that is seen once in five times
		perWindow       = 2.0
		cases           = 2000
	)
	rng := rand.New(rand.NewPCG(1, 2))
	truth := perWindow * each / float64(window)
	covered, useless := 0, 0
	for range cases {
		var sum Unseen
		for range windows {
			var seen []Stall
			// Runs are Poisson; each that is seen stands for all five.
			for at := rng.ExpFloat64(); at < perWindow; at += rng.ExpFloat64() {
				if rng.IntN(5) == 0 {
					seen = append(seen, Stall{UnseenNs: 5 * int64(each)})
				}
			}
			one := UnseenOf(seen, window)
			if one.Most() > 2*truth {
				useless++
			}
			sum = sum.Plus(one)
		}
		if sum.Least() <= truth && truth <= sum.Most() {
			covered++
		}
		if sum.TimeNs != windows*window {
			t.Fatalf("watched %d ns", sum.TimeNs)
		}
	}
	if covered < 93*cases/100 || covered > 98*cases/100 {
		t.Errorf("covered %d of %d", covered, cases)
	}
	if share := float64(useless) / cases / windows; share < 0.25 {
		t.Errorf("the bound of one window is useless in %.2f of cases", share)
	}
}

func TestUnseenPool(t *testing.T) {
	whole := Unseen{Ns: 10e6, ErrNs: 1e6, TimeNs: 1e9}
	like := Unseen{Ns: 3e6, ErrNs: 2e6, TimeNs: 1e8}
	more := Unseen{Ns: 9e6, ErrNs: 2e6, TimeNs: 1e8}
	if got := like.Pool(whole); got != whole {
		t.Errorf("a part that may be as the whole has %+v", got)
	}
	if got := more.Pool(whole); got != more {
		t.Errorf("a part that has more has %+v", got)
	}
	if got := (Unseen{}).Most(); got != 0 {
		t.Errorf("nothing that was watched has %v", got)
	}
	if got := (Unseen{Ns: -5, ErrNs: 1, TimeNs: 10}).Most(); got != 0 {
		t.Errorf("a negative estimate has %v", got)
	}
	if got := (Unseen{Ns: 20, TimeNs: 10}).Least(); got != 1 {
		t.Errorf("more than all has %v", got)
	}
}
