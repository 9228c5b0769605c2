package verdict_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

const findings = "testdata/findings.txt"

// TestFindings checks the values of the findings of all rows: numbers, limits, cases and bounds.
func TestFindings(t *testing.T) {
	digits := func(x *float64) {
		*x, _ = strconv.ParseFloat(strconv.FormatFloat(*x, 'g', 6, 64), 64)
	}
	var b strings.Builder
	for i, w := range rows {
		r := healthy()
		w.change(r, map[string]*record.Load{half: &r.Loads[0], peak: &r.Loads[1]}[w.load])
		for _, f := range verdict.Judge(r).Findings {
			digits(&f.Value)
			digits(&f.Limit)
			line, err := json.Marshal(f)
			if err != nil { // JSON has no NaN
				line = fmt.Appendf(nil, "%v %v %+v", f.Case, f.Value, f.Facts)
			}
			fmt.Fprintf(&b, "%s %d: %s\n", w.rule, i, line)
		}
	}
	testsets.Golden(t, *update, findings, b.String())
}
