package trial_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/record"
)

var theSeed = flag.Uint64("seed", 0, "the one seed of TestSimulation; 0: a few of them")

// Numbers of seeds: for a second, and for CI's minutes.
const (
	fewSeeds  = 24
	manySeeds = 2000
)

// lifeBound is the maximum time of one trial, with all delays: 6 min of launching, 4 until it is
// ready, twice 2 of checking, 3 times 25 s of a collector, and for each of two loads a profile of
// each of two processes that takes 30 s to begin and 30 s to end.
const lifeBound = 25 * time.Minute

// A run with faults by seed, everywhere at once, as databases are tested (FoundationDB: Zhou et
// al., SIGMOD 2021, section 4): whatever breaks, the promises of a run are kept.
func TestSimulation(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	if *theSeed > 0 {
		simulate(t, *theSeed, *theSeed)
		return
	}
	simulate(t, 1, fewSeeds)
}

func TestSimulationOfMany(t *testing.T) {
	testsets.Long(t, "2,000 runs under faults by seed", testsets.Needs{})
	simulate(t, fewSeeds+1, manySeeds)
}

func simulate(t *testing.T, from, to uint64) {
	for seed := from; seed <= to; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { simulateOne(t, seed) })
	}
}

// simulateOne is one run. If a goroutine remains, the bubble panics.
func simulateOne(t *testing.T, seed uint64) {
	repeat := fmt.Sprintf("go test ./internal/trial -run 'TestSimulation$' -seed %d", seed)
	defer func() {
		clock.SetWall(0)
		if r := recover(); r != nil {
			t.Fatalf("%s\nsomething is left: %v", repeat, r)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		m := newStorm(t, seed)
		defer func() {
			if t.Failed() {
				t.Fatalf("repeat this by: %s%s", repeat, m.sum())
			}
		}()
		e := m.experiment()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if m.chance("", "interrupted") < 0.2 {
			m.cancel = cancel
		}
		began := clock.Mono()
		records, err := m.lab.Run(ctx, e)
		took := time.Duration(clock.Mono() - began)
		if took > lifeBound*time.Duration(len(e.Trials)) {
			t.Errorf("%d trials took %v", len(e.Trials), took)
		}
		m.checkRecords(e, records, err)
		for _, r := range records {
			m.checkOne(r)
			m.checkOrder(r.Trial)
		}
		m.checkLeft()
	})
}

// experiment has targets and options by the seed.
func (m *storm) experiment() trial.Experiment {
	w := &world{t: m.t, dir: m.dir}
	names := []string{"a", "b", "c"}
	e := w.experiment(names...)
	watched := ""
	if m.chance("", "profiled") < 0.5 {
		watched = "observe: {telemetry: true, profile: [cpu]}\n"
	}
	s, err := suite.Read("test.yaml", []byte(suiteText+watched))
	if err != nil {
		m.t.Fatal(err)
	}
	var catalog []suite.Target
	for name, subject := range e.Subjects {
		catalog = append(catalog, suite.Target{Name: name, Service: name, Mode: "virtual",
			Contracts: []string{"hello"}})
		if m.chance(name, "system") < 0.3 {
			subject.Service.Run.Processes = []service.Process{
				{Name: "back", Command: []string{"back"}, Ready: "/ready"},
				{Name: "front", Command: []string{"front"}, Ready: "/ready"},
			}
		}
	}
	slices.SortFunc(catalog, func(a, b suite.Target) int { return strings.Compare(a.Name, b.Name) })
	if e.Plan, err = s.Plan(catalog); err != nil {
		m.t.Fatal(err)
	}
	for _, x := range e.Plan.Trials {
		if m.breaks(x.ID, "build", "step 1 failed", true) {
			e.Lacking[x.ID] = errors.New("step 1 failed")
		}
	}
	return e.resolve()
}

// checkRecords requires each trial that was begun once, in order, on disk as it was returned.
func (m *storm) checkRecords(e trial.Experiment, records []*record.Record, err error) {
	t := m.t
	_, kept, bad, readErr := record.Read(m.dir)
	if readErr != nil || len(bad) > 0 {
		t.Errorf("the run cannot be read: %v, %v", readErr, bad)
	}
	switch {
	case m.full:
		if err == nil || !strings.Contains(err.Error(), "free some space") {
			t.Errorf("the disk was full, and the error is %v", err)
		}
	case m.canceled:
		if err == nil && len(records) < len(e.Trials) ||
			err != nil && !strings.Contains(err.Error(), "interrupted after") {
			t.Errorf("it was interrupted after %d, and the error is %v", len(records), err)
		}
	case err != nil || len(records) != len(e.Trials):
		t.Errorf("%d records of %d trials, error %v", len(records), len(e.Trials), err)
	}
	if len(kept) != len(records) {
		t.Errorf("%d records are on disk, %d were returned", len(kept), len(records))
	}
	for i, r := range kept {
		if r.Trial != e.Trials[i].ID || i < len(records) && r.Outcome != records[i].Outcome {
			t.Errorf("record %d is of %s (%s), and the trial of %s", i, r.Trial, r.Outcome,
				e.Trials[i].ID)
		}
	}
}

// checkOne requires that a record describes the faults of its trial.
func (m *storm) checkOne(r *record.Record) {
	t := m.t
	blows := slices.Clone(m.blows[r.Trial])
	if m.spoilt {
		blows = append(blows, blow{"details", "save ", false})
	}
	if m.canceled {
		blows = append(blows, blow{"interrupt", "interrupted", false})
	}
	fatal := slices.ContainsFunc(m.blows[r.Trial], func(b blow) bool { return b.fatal })
	switch {
	case fatal && r.Verdict.Grade == record.Valid:
		t.Errorf("%s lost a part and is VALID", r.Trial)
	case len(blows) == 0 && r.Verdict.Grade != record.Valid:
		t.Errorf("nothing happened to %s, and it is %+v, %+v", r.Trial, r.Verdict, r.Failure)
	}
	if (r.Failure != nil) != (r.Outcome == record.Failed) {
		t.Errorf("%s is %s with the failure %+v", r.Trial, r.Outcome, r.Failure)
	}
	if f := r.Failure; f != nil {
		said := f.Error + "\n" + strings.Join(f.Log, "\n")
		if f.Step == "" || f.Error == "" || !slices.ContainsFunc(blows, func(b blow) bool {
			return b.words != "" && strings.Contains(said, b.words)
		}) {
			t.Errorf("%s failed without a cause that there was: %+v\n%+v", r.Trial, f, blows)
		}
		if slices.Contains(m.notes[r.Trial], "left") && !strings.Contains(said, "cannot be ended") {
			t.Errorf("%s left a process and does not say so: %s", r.Trial, said)
		}
	} else {
		m.checkMeasured(r)
	}
	if r.DurationNs < 0 || r.DurationNs > int64(lifeBound) {
		t.Errorf("%s took %v", r.Trial, time.Duration(r.DurationNs))
	}
}

// checkMeasured requires all data of a measured trial, whatever the wall clock did.
func (m *storm) checkMeasured(r *record.Record) {
	t := m.t
	if len(r.Loads) != 2 {
		t.Errorf("%s is measured with %d loads", r.Trial, len(r.Loads))
		return
	}
	// The kernel's clock is the real one here, on which a bubble's trial takes milliseconds.
	apart := time.Duration(r.Loads[1].WindowOpenedMonotonicNs - r.Loads[0].WindowOpenedMonotonicNs)
	if apart < 0 || apart > time.Minute {
		t.Errorf("the windows of %s opened %v apart", r.Trial, apart)
	}
	for _, l := range r.Loads {
		if l.Telemetry != nil && l.Telemetry.WindowNs != 1e9 {
			t.Errorf("the home was told of %d ns of %s, want a second", l.Telemetry.WindowNs,
				r.Trial)
		}
	}
	for _, p := range r.Profiles {
		if (p.Failed == "") != (p.File != "") {
			t.Errorf("profile %+v of %s", p, r.Trial)
			continue
		}
		if _, err := os.Stat(filepath.Join(m.dir, p.File)); err != nil {
			t.Error(err)
		}
	}
}

// checkOrder requires that all begun steps end, each after what needs it.
func (m *storm) checkOrder(id string) {
	count, last := map[string]int{}, map[string]int{}
	for i, n := range m.notes[id] {
		count[n]++
		last[n] = i
	}
	for _, p := range [][2]string{{"watch", "unwatch"}, {"begin", "end"}, {"profile", "profiled"}} {
		if count[p[0]] != count[p[1]] {
			m.t.Errorf("%s: %d times %s, %d times %s", id, count[p[0]], p[0], count[p[1]], p[1])
		}
	}
	if n := count["stop"] + count["left"]; n != count["launch"] {
		m.t.Errorf("%s: %d launched, %d stopped", id, count["launch"], n)
	}
	if count["record"] != 1 {
		m.t.Errorf("%s: %d records", id, count["record"])
	}
	order := []string{"launch", "watch", "load", "unwatch", "stop", "end", "record"}
	order = slices.DeleteFunc(order, func(n string) bool { return count[n] == 0 })
	if !slices.IsSortedFunc(order, func(a, b string) int { return last[a] - last[b] }) {
		m.t.Errorf("%s: it went %q", id, m.notes[id])
	}
}

// checkLeft requires that nothing is alive except what could not be ended.
func (m *storm) checkLeft() {
	for port, p := range m.on {
		f := p.process.(*fragile)
		if f.alive() && !slices.Contains(m.notes[p.trial], "left") {
			m.t.Errorf("%s left process %d", p.trial, port)
		}
		f.Process.Stop(0) //nolint:errcheck // a fake's cannot fail
	}
}
