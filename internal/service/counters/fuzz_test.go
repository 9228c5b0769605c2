package counters

import (
	"math"
	"strings"
	"testing"
)

// FuzzTotal requires of any page that its sum is a number, and that it is the same if other series
// and comments are beside the wanted one.
func FuzzTotal(f *testing.F) {
	f.Add("# TYPE a_total counter\na_total{path=\"/\"} 3 1700000000000\na_total 4\n", "a_total")
	f.Add("a{b=\"c\\\"}\",d=\"e\"} NaN\na{b=\"c\"} 1e999\n", `a{b="c"}`)
	f.Add("a{b=\"c\",d=\"e\"} -20\na{b=\"f\"} 3 1700000000000\n", `a{b="c"}`)
	f.Add("a{ b = \"x\" , } +Inf\r\na  -1\n", "a")
	f.Fuzz(func(t *testing.T, text, series string) {
		want, ok := parseName(series)
		if !ok {
			return
		}
		sum, present, err := total(strings.NewReader(text), want)
		if err != nil {
			return
		}
		if math.IsNaN(sum) || math.IsInf(sum, 0) || !present && sum != 0 {
			t.Errorf("%q of %q is %g, %v", series, text, sum, present)
		}
		around := "# HELP x y\nother 5\n\n" + text + "\n\x01 9\n"
		again, same, err := total(strings.NewReader(around), want)
		if want.name != "other" && (again != sum || same != present || err != nil) {
			t.Errorf("%q of %q is %g, and %g beside others, %v", series, text, sum, again, err)
		}
	})
}
