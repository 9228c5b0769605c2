package compare

import "testing"

// FuzzParseLimits checks that all parsed limits are between 0 and 1.
func FuzzParseLimits(f *testing.F) {
	f.Add("p99", "p99=10%")
	f.Add("half/p99", "5%")
	f.Add("", "NaN")
	f.Fuzz(func(t *testing.T, metric, limit string) {
		limits, err := ParseLimits([]string{metric}, []string{limit})
		if err != nil {
			return
		}
		for _, l := range limits {
			if !(l.Most >= 0 && l.Most < 1) {
				t.Errorf("%+v of %q, %q", l, metric, limit)
			}
		}
	})
}
