package compare

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
)

// TestForms checks all texts of some comparisons and of their gates.
func TestForms(t *testing.T) {
	one := runOf("r", noon, rows{"new": slower, "old": drifting})
	later := runOf("s", noon.Add(time.Hour), rows{"new": scaled(drifting, 1.2, 1.1)})
	few := runOf("r", noon, rows{"new": slower[:1], "old": drifting[:1]})
	same := runOf("r", noon, rows{"new": scaled(drifting, 1.01, 0.99), "old": drifting})
	sliced := slicedRows()
	var b strings.Builder
	for _, x := range []struct {
		name string
		a, b Side
	}{
		{"one run", at(one, "old"), at(one, "new")},
		{"the other way", at(one, "new"), at(one, "old")},
		{"two runs", at(one, "new"), at(later, "new")},
		{"no difference", at(same, "old"), at(same, "new")},
		{"one block", at(few, "old"), at(few, "new")},
		{"slices", at(sliced, "a"), at(sliced, "b")},
	} {
		c := compare(t, x.a, x.b, Options{})
		for _, write := range []func(io.Writer, Comparison) error{Text, Markdown, CSV} {
			fmt.Fprintf(&b, "== %s\n", x.name)
			if err := write(&b, c); err != nil {
				t.Fatalf("%s: %v", x.name, err)
			}
		}
		fmt.Fprintf(&b, "%q\n%s\n", c.Sentences("old", "new"), c.Enough(0.01, 0.05))
		limits, err := ParseLimits([]string{"throughput", "p99"}, []string{"2%", "p99=30%"})
		if err != nil {
			t.Fatal(err)
		}
		g, err := Judge(c, limits, 1)
		if err != nil {
			fmt.Fprintf(&b, "%v\n", err)
			continue
		}
		for _, write := range []func(io.Writer, Gate) error{GateText, GateMarkdown, GateCSV,
			Annotations} {
			if err := write(&b, g); err != nil {
				t.Fatalf("%s: %v", x.name, err)
			}
		}
	}
	testsets.Golden(t, *update, "testdata/forms.txt", b.String())
}
