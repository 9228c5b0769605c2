package report

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"prony.example/internal/report/compare"
	"prony.example/record"
	"prony.example/stats"
)

// rich is the fixture with everything that a page can draw: warm-ups, the host before each trial,
// and open loads at four rates, the last above the capacity of the slow targets. It is made once,
// because no test changes it.
var rich = sync.OnceValue(func() []record.Record {
	rng := rand.New(rand.NewPCG(3, 4))
	records := fixture()
	for i := range records {
		r := &records[i]
		enrich(r, rng)
		if len(r.Loads) == 0 {
			continue
		}
		s := subjectOf(r)
		for k, share := range []float64{0.3, 0.6, 0.8, 1.1} {
			perS := s.peakPerS * share
			slower := 1 / max(1-share, 0.1) // as a queue makes it
			l := loadOf(s, fmt.Sprintf("rate%d", k+1), "open", perS, s.p50Ms*slower, s.sigma, rng)
			l.Arrivals, l.RatePerS, l.RateOf = "poisson", perS, fmt.Sprintf("%.0f%% of peak",
				100*share)
			l.RateBase = "peak"
			if share > 1 && s.peakPerS < 20_000 {
				l.Done = l.Done * 9 / 10 // the backlog grows
				l.BacklogPerS = perS / 10
				r.Verdict.Grade = record.Invalid
				r.Verdict.Findings = append(r.Verdict.Findings, record.Finding{Rule: "capacity",
					Load: l.Name, Grade: record.Invalid, Text: &record.Words{
						Observed: "the backlog of requests grows by a tenth",
						Limit:    "1 %", Hint: "offer less"}})
			}
			r.Loads = append(r.Loads, l)
		}
	}
	return records
})

func subjectOf(r *record.Record) subject {
	for _, s := range subjects {
		if s.target.Name == r.Target.Name {
			return s
		}
	}
	panic("no subject " + r.Target.Name) // a fixture's own mistake
}

// enrich adds the warm-up and the host before the trial.
func enrich(r *record.Record, rng *rand.Rand) {
	r.HostBefore = record.Before{WindowNs: 1e9, StealShare: 0.01 * rng.Float64(),
		OtherCPUShare: 0.03 * rng.Float64(), TemperatureC: 45 + 10*rng.Float64(), Quiet: true}
	if r.Block == 2 && r.Order%3 == 0 {
		r.HostBefore.Quiet, r.HostBefore.OtherCPUShare = false, 0.22
		r.HostBefore.Reason, r.HostBefore.WaitedNs = "others used 22 % for 10s", 10e9
	}
	w := &r.Warmup
	if w.DurationNs == 0 {
		return
	}
	steady := w.RatePerS[len(w.RatePerS)-1]
	w.Kind, w.SteadyAtNs, w.PeakAtNs, w.CostNs = stats.Warmed, 3e9, 4e9, 1.6e9
	w.Levels = []record.Level{{FromNs: 0, ToNs: 1e9, MeanPerS: steady * 0.62},
		{FromNs: 1e9, ToNs: 3e9, MeanPerS: steady * 0.86},
		{FromNs: 3e9, ToNs: w.DurationNs + 10e9, MeanPerS: steady}}
	if r.Target.Name == "node-express" && r.Block == 4 {
		w.Kind, w.Steady, w.SteadyAtNs, w.PeakAtNs = stats.Unsteady, false, 0, 0
	}
}

// itself returns an A/A run: two targets, each in two arms per block.
func itself(blocks int) []record.Record {
	rng := rand.New(rand.NewPCG(5, 6))
	start := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	var records []record.Record
	for block := 1; block <= blocks; block++ {
		for _, s := range subjects[1:3] {
			for _, arm := range []string{"a", "b"} {
				order := len(records) + 1
				r := trialOf(s, block, order, start.Add(time.Duration(order)*time.Minute))
				r.Target.Arm = arm
				r.Trial += "-" + arm
				measure(&r, s, 1+0.01*rng.NormFloat64(), rng)
				enrich(&r, rng)
				records = append(records, r)
			}
		}
	}
	return records
}

// graded returns a host with one check of each grade.
func graded() *record.Grading {
	return &record.Grading{Grade: record.Doubtful, Checks: []record.Check{
		{Name: "governor", Grade: record.Unknown, Observed: "the kernel offers none",
			Expected: "performance", Impact: "a clock that changes changes every number",
			Source: "Linux, admin-guide/pm/cpufreq.rst"},
		{Name: "steal", Grade: record.Doubtful, Observed: "1.4 %", Expected: "below 1 %",
			Impact: "the hypervisor gives these cores to others", Fix: "use a dedicated host",
			Source: "proc(5)"},
		{Name: "clock source", Grade: record.Fit, Observed: "tsc", Expected: "tsc",
			Impact: "others cost a system call a reading", Source: "clock_gettime(2)"},
		{Name: "open files", Grade: record.Unfit, Observed: "1,024", Expected: "65,536",
			Impact: "connections are files", Fix: "ulimit -n 65536", Source: "getrlimit(2)"},
	}}
}

// compared returns a comparison of two targets of the rich run, and its gate of 5 %.
func compared(t *testing.T) (compare.Comparison, *compare.Gate) {
	t.Helper()
	records := rich()
	var all []*record.Record
	for i := range records {
		all = append(all, &records[i])
	}
	side := func(target string) compare.Side {
		return compare.Side{Head: record.Run{ID: records[0].Run}, Records: all, Target: target,
			Reproduce: "prony run suites/canonical.yaml --seed 42 --blocks 5"}
	}
	c, err := compare.Compare(side("go-nethttp"), side("java-netty"),
		compare.Options{Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := compare.Judge(c, []compare.Limit{{Most: 0.05},
		{Load: "half", Metric: "p99", Most: 0.1}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c, &gate
}
