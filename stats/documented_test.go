package stats

import (
	"flag"
	"path/filepath"
	"testing"

	"prony.example/internal/dev/testsets"
)

var update = flag.Bool("update", false, "write simulated tables into docs")

// Decisions with simulations: those that led to the lengths of slices, and the errors of quantiles
// without stalls.
const (
	decisionSlices = "decisions/0051-slices.md"
	decisionStalls = "decisions/0052-stalls.md"
)

// documented compares a table of docs/slices.md with the results of a simulation.
func documented(t *testing.T, name string, rows []string) {
	t.Helper()
	documentedIn(t, "slices.md", name, rows)
}

// documentedIn compares a table of a page, between the comments that name and end it, with the
// results of a simulation.
func documentedIn(t *testing.T, file, name string, rows []string) {
	t.Helper()
	testsets.Table(t, filepath.Join("..", "docs", file), "<!-- simulated "+name+" -->", rows,
		*update)
}
