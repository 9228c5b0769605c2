package trial

import "testing"

// cumulate turns requests per interval, each repeated over a span, into a cumulative count.
func cumulate(perInterval ...int64) []int64 {
	out := []int64{0}
	for _, n := range perInterval {
		for range warmSpan {
			out = append(out, out[len(out)-1]+n)
		}
	}
	return out
}

func TestSteady(t *testing.T) {
	check := func(name string, cumulative []int64, want bool) {
		t.Run(name, func(t *testing.T) {
			if got := steady(cumulative); got != want {
				t.Errorf("steady is %v, want %v", got, want)
			}
		})
	}
	check("nothing", nil, false)
	check("two spans only", cumulate(1000, 1000), false)
	check("flat", cumulate(1000, 1000, 1000), true)
	check("flat after a rise", cumulate(100, 500, 1000, 1000, 1000), true)
	check("a pause of two spans", cumulate(500, 1000, 1000), false)
	// 3 % and 2·sqrt(2/40000) = 1.4 %: 4.4 % in all.
	check("within", cumulate(10000, 10430, 10200), true)
	check("beyond", cumulate(10000, 10460, 10200), false)
	check("falling", cumulate(10000, 9000, 8000), false)
	// Counts of 100 a span vary by 2·sqrt(2/100) = 28 % by chance alone.
	check("few, noisy", cumulate(25, 32, 25), true)
	check("few, rising", cumulate(25, 40, 55), false)
	check("no answers", cumulate(0, 0, 0), false)
	check("stopped", cumulate(1000, 1000, 0), false)
}

func TestRates(t *testing.T) {
	// 125 ms an interval: 100 more requests are 800 a second.
	got := rates([]int64{100, 300})
	if len(got) != 2 || got[0] != 800 || got[1] != 1600 {
		t.Errorf("rates are %v, want 800 and 1600", got)
	}
}
