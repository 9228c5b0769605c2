package verdict_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"prony.example/internal/base/units"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/report"
	"prony.example/record"
)

const proofPage = "../../../docs/proof.md"

// fault is a disturbance of a queue whose true times are known, in steps from none to very large.
type fault struct {
	rule, what string
	pauses     []int64 // ns each
	apart      int64   // ns, on average
	of         func(pauses) (was, truth station)
	change     func(*record.Record, station)
}

var faults = []fault{
	{rule: "lag", what: "the generator pauses twice a second",
		pauses: []int64{0, 0.02 * ms, 0.2 * ms, 1 * ms, 5 * ms, 20 * ms}, apart: 500 * ms,
		of: func(p pauses) (was, truth station) {
			was = single
			was.sender = p
			return was, single
		}},
	{rule: "steal", what: "the hypervisor takes the processor twice a second",
		pauses: []int64{0, 0.02 * ms, 0.2 * ms, 1 * ms, 5 * ms, 20 * ms}, apart: 500 * ms,
		of: func(p pauses) (was, truth station) {
			was = single
			was.server = p
			return was, single
		},
		change: func(r *record.Record, was station) {
			for _, p := range was.server {
				r.Loads[0].Host.StealShare += float64(p[1]-p[0]) / end
			}
		}},
	crowd("16 servers behind 64 connections pause once a second", 64),
	crowd("16 servers behind 12 connections pause once a second", 12),
}

// crowd is sixteen servers of which this number of connections keeps some busy, as a closed load
// shows.
func crowd(what string, connections int) fault {
	return fault{rule: "waited", what: what,
		pauses: []int64{0, 1 * ms, 5 * ms, 30 * ms}, apart: 1000 * ms,
		of: func(p pauses) (was, truth station) {
			was = station{servers: 16, connections: connections, server: p}
			truth = was
			truth.connections = 1 << 12
			return was, truth
		},
		change: func(r *record.Record, was station) {
			closed := healthy().Loads[1]
			busy := float64(min(was.servers, was.connections))
			closed.Connections, closed.Service.CPUShare = was.connections, busy/16
			closed.ThroughputPerS, r.Loads[0].RatePerS = 1000*busy, 8000
			r.Loads = append(r.Loads, closed)
		}}
}

// TestVerdictsClassify counts how often a rule doubts a number, by how far the disturbance really
// moved p99. Nothing may be doubted without a disturbance, and everything must be if a third of p99
// comes from it.
func TestVerdictsClassify(t *testing.T) {
	testsets.Whole(t, "many simulated loads")
	const seeds = 8
	var b bytes.Buffer
	b.WriteString("| rule | disturbance | length | p99 moved by | SUSPECT |\n" +
		"|---|---|---|---|---|\n")
	for _, f := range faults {
		name := fmt.Sprintf("%s | %s", f.rule, f.what) // in the first row only
		for _, d := range f.pauses {
			suspects, sum := 0, 0.0
			for seed := range uint64(seeds) {
				grade, moved := disturbedOnce(t, seed, f.rule, false,
					func(r *rand.Rand) (was, truth station) {
						return f.of(pausing(r, d, f.apart, end))
					}, f.change)
				sum += moved
				if grade != valid {
					suspects++
				}
				if d == 0 && moved == 0 && grade != valid || moved > 0.34 && grade == valid {
					t.Errorf("%s: pauses of %d ns, seed %d: %s, and p99 moved by %.3f", f.rule, d,
						seed, grade, moved)
				}
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %d of %d |\n", name, units.Duration(float64(d)),
				units.Percent(sum/seeds), suspects, seeds)
			name = " | "
		}
	}
	have, err := os.ReadFile(proofPage)
	if err != nil {
		t.Fatal(err)
	}
	want, err := report.Update(have, "verdicts", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(have, want) {
		return
	}
	if !*update {
		t.Fatalf(
			"%s has other verdicts: run go test ./internal/analysis/verdict -run Classify -update",
			proofPage,
		)
	}
	if err := os.WriteFile(proofPage, want, 0o644); err != nil {
		t.Fatal(err)
	}
}
