package main

import (
	"testing"

	"prony.example/internal/base/cli"
)

// Targets that a run would leave out because of a missing tool are in no trial and no time of the
// plan, which names them.
func TestPlanLeavesOutWhatLacksATool(t *testing.T) {
	plan := func(world mock, targets string) (stdout, stderr string) {
		t.Helper()
		stdout, stderr, exit := say(t, world, "plan", "--root", checkout(t), "--targets", targets)
		if exit != cli.Fine {
			t.Errorf("exit %d: %s", exit, stderr)
		}
		return stdout, stderr
	}
	alone, _ := plan(mock{}, "rust-axum")
	got, says := plan(mock{lacks: "go-nethttp"}, "go-nethttp,rust-axum")
	if got != alone {
		t.Errorf("the plan is\n%s\nwant\n%s", got, alone)
	}
	has(t, "what it says", says, "targets left out because a tool is missing here: go-nethttp; "+
		"the first one needs unobtainium >= 1: not found (see "+
		"services/go-nethttp/README.md)")
	whole, says := plan(mock{lacks: "go-nethttp"}, "go-nethttp")
	has(t, "the plan of nothing that can run", whole+says, "go-nethttp  cached read", "left out")
}
