package importer

import (
	"fmt"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

// TestSeeds checks all that is read from the seeds of the fuzz targets.
func TestSeeds(t *testing.T) {
	var b strings.Builder
	for _, kind := range Kinds {
		for i, text := range seeds[kind] {
			fmt.Fprintf(&b, "== %s %d\n", kind, i)
			for _, readOnly := range []bool{false, true} {
				d, err := Options{Kind: kind, ReadOnly: readOnly}.Read("f", []byte(text))
				if err != nil {
					fmt.Fprintln(&b, err)
					continue
				}
				suite, trace := print(t, d, "f")
				fmt.Fprintf(&b, "%s%s%q %q\n", suite, trace, d.Left, d.Changed)
			}
		}
	}
	testsets.Golden(t, *update, "testdata/seeds.golden", b.String())
}
