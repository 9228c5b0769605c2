package suite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/suite"
)

// onCores is the whole suite with an integer number of cores, which slices need.
func onCores(t *testing.T, changes ...string) *suite.Suite {
	t.Helper()
	text := strings.Replace(whole, "cpus: 0.5", "cpus: 1", 1)
	return read(t, strings.NewReplacer(changes...).Replace(text))
}

// TestStarts joins the trials of a block that have the same scenario, and no others.
func TestStarts(t *testing.T) {
	p := plan(t, onCores(t), catalog)
	seen := map[string][]string{}
	for i, trial := range p.Trials {
		key := fmt.Sprintf("%d %s", trial.Block, trial.Scenario)
		if of := seen[trial.Start]; len(of) > 0 && (of[0] != key ||
			p.Trials[i-1].Start != trial.Start) {
			t.Errorf("%s is in start %s of %s, not next to it", trial.ID, trial.Start, of[0])
		}
		seen[trial.Start] = append(seen[trial.Start], key)
	}
	if len(seen) != 4 || len(seen["s2-other"]) != 4 || p.Blockwise != "" {
		t.Errorf("starts %v, blockwise %q", seen, p.Blockwise)
	}
}

// TestBlockwise reports why there are no starts.
func TestBlockwise(t *testing.T) {
	many := make([]suite.Target, 13)
	for i := range many {
		name := fmt.Sprintf("t%d", i)
		many[i] = suite.Target{Name: name, Service: name, Contracts: []string{"hello"}}
	}
	many[0].Name, many[0].Service = "go", "go"
	check := func(targets []suite.Target, want string, changes ...string) {
		t.Helper()
		p := plan(t, onCores(t, changes...), targets)
		for _, trial := range p.Trials {
			if trial.Start != "" || p.Blockwise != want {
				t.Fatalf("start %q, blockwise %q, want %q", trial.Start, p.Blockwise, want)
			}
		}
		asked := onCores(t, append(changes, "seed: 7", "seed: 7\ninterleave: slices")...)
		_, err := asked.Plan(targets)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(),
			"slices are not possible: "+want) {
			t.Errorf("asked for: error %v, want %q", err, want)
		}
	}
	check(catalog, "limits.cpus is not a whole number, and a CPU quota has no effect within a "+
		"slice", "cpus: 1", "cpus: 1.5")
	check(catalog, "only Prony's generator can load targets in slices", "loads:",
		"drivers: [wrk]\nloads:")
	check(catalog, "telemetry and profiles can be collected from only one target at a time",
		"loads:",
		"observe: {gc: true}\nloads:")
	check(
		catalog,
		"slices need a closed load of one generator, without virtual users, think time and "+
			"network delay",
		"model: closed",
		"model: closed\n    users: 3",
		"rate: 50% of peak",
		"rate: 500",
	)
	pods := slices.Clone(catalog)
	pods[1].Launcher = "kubernetes" // an image of a user
	check(pods, "pods cannot be stopped while other targets are loaded")
	check(many, "scenario cached read: at most 12 targets can run side by side, and there is no "+
		"baseline that the groups could share", "baseline: go\n", "")
	if on := onCores(t, "seed: 7", "seed: 7\nfreeze: off"); on.Freeze != suite.FreezeOff {
		t.Errorf("freeze: off is read as %q", on.Freeze)
	}
	p := plan(t, onCores(t, "seed: 7", "seed: 7\ninterleave: blocks"), catalog)
	if p.Trials[0].Start != "" || p.Blockwise != "" {
		t.Errorf("asked for blocks: start %q, blockwise %q", p.Trials[0].Start, p.Blockwise)
	}
}

// TestReserve plans the starts that replace lost ones: one for five planned ones, with the targets
// and scenarios of a block, after all others.
func TestReserve(t *testing.T) {
	check := func(blocks, want int, changes ...string) {
		t.Helper()
		changes = append(changes, "blocks: 2", fmt.Sprintf("blocks: %d", blocks))
		p := plan(t, onCores(t, changes...), catalog)
		first := map[string]bool{}
		for _, trial := range p.Trials {
			first[trial.ID] = true
		}
		reserved := map[string]bool{}
		for i, trial := range p.Reserve {
			reserved[trial.Start] = true
			if first[trial.ID] || trial.Order != len(p.Trials)+i+1 || trial.Block <= blocks ||
				!strings.HasPrefix(trial.ID, fmt.Sprintf("b%d-", trial.Block)) {
				t.Fatalf("%d blocks: reserved %+v", blocks, trial)
			}
		}
		if len(p.Reserve)*blocks != want*len(p.Trials) || len(reserved) != 2*want {
			t.Errorf("%d blocks of %d trials: %d reserved in starts %v, want %d blocks", blocks,
				len(p.Trials), len(p.Reserve), reserved, want)
		}
	}
	check(4, 1)
	check(5, 1)
	check(6, 2)
	check(4, 0, "seed: 7", "seed: 7\ninterleave: blocks")
	s := onCores(t)
	if err := s.Override(suite.Override{For: suite.Duration(60e9)}); err != nil {
		t.Fatal(err)
	}
	if p := plan(t, s, catalog); len(p.Reserve) > 0 {
		t.Errorf("a run that goes on for a time has %d trials in reserve", len(p.Reserve))
	}
}

// A target of a start that does not compile at run time warms up for two seconds at most; a target
// with an unknown runtime may compile.
func TestEstimateOfStarts(t *testing.T) {
	s := onCores(t)
	estimate := func(runtime string) (least, most time.Duration) {
		targets := slices.Clone(catalog)
		for i := range targets {
			targets[i].Runtime = runtime
		}
		return plan(t, s, targets).Estimate()
	}
	jvmLeast, jvmMost := estimate("jvm")
	if least, most := estimate(""); least != jvmLeast || most != jvmMost {
		t.Errorf("unknown runtime: %v to %v, want %v to %v", least, most, jvmLeast, jvmMost)
	}
	// 16 trials warm up for 2 s instead of for up to 90 s.
	least, most := estimate("native")
	if least != jvmLeast || most != jvmMost-16*88*time.Second {
		t.Errorf("native: %v to %v, and %v to %v if it compiles", least, most, jvmLeast, jvmMost)
	}
	s.Warmup.Min = suite.Duration(5 * time.Second)
	if least, most = estimate("native"); least != most || least != jvmLeast+16*3*time.Second {
		t.Errorf("warm-up of at least 5 s: %v to %v, want 48 s more than %v", least, most, jvmLeast)
	}
	s.Warmup.MinCompiling = suite.Duration(25 * time.Second)
	if least, _ = estimate("jvm"); least != jvmLeast+16*23*time.Second {
		t.Errorf("JVMs warm up for at least 25 s: %v, want 368 s more than %v", least, jvmLeast)
	}
	if again, _ := estimate("native"); again != jvmLeast+16*3*time.Second {
		t.Errorf("native, beside JVMs that warm up longer: %v", again)
	}
	s.Interleave = suite.ByBlocks
	if least, most = estimate("native"); most-least != 16*85*time.Second {
		t.Errorf("in blocks: %v to %v", least, most)
	}
}
