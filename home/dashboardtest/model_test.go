package dashboardtest

import (
	"testing"

	"prony.example/internal/telemetry/boards"
)

// root is the root of the repository.
const root = "../.."

type (
	board    = boards.Board
	panel    = boards.Panel
	variable = boards.Variable
	query    = boards.Query
	language = boards.Language
)

// dashboards reads all dashboards, in the order of their files.
func dashboards(t *testing.T) []board {
	t.Helper()
	all, err := boards.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
