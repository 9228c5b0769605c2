package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// A search of a project in the real program, for the capacities of two real servers, results in a
// rate with an interval, or in the reason why there is none. internal/generator/capacity,
// TestFindTruths tests in virtual time that the rate is right.
func TestSearchOfAProject(t *testing.T) {
	testsets.Once(t, "a search of a project", testsets.Needs{})
	dir := ownFolder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const text = `targets:
  fast: {command: 'PRONY_TEST_MAIN=1 SELF truth mm1 --service 1ms --port {port}'}
  slow: {command: 'PRONY_TEST_MAIN=1 SELF truth mm1 --service 2ms --port {port}'}
warmup: {min: 0s, max: 300ms, connections: 2}
blocks: 1
requests: [{request: GET /}]
loads: [{name: users, model: capacity, slo: p90<10ms, measure: 400ms, budget: 6s}]
`
	stdout, stderr, exit := inProject(t, strings.ReplaceAll(text, "SELF", self), "run")
	if exit != cli.Fine && exit != cli.Invalid {
		t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
	}
	runs, err := filepath.Glob(filepath.Join(dir, ".prony", "run", "*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v, error %v", runs, err)
	}
	_, records, _, err := record.Read(runs[0])
	if err != nil || len(records) != 2 {
		t.Fatalf("%d records, error %v", len(records), err)
	}
	for _, r := range records {
		if r.Outcome != record.Measured {
			if !strings.HasPrefix(r.Failure.Error, "search the capacity in load users: ") {
				t.Errorf("%s failed for another reason: %+v", r.Trial, r.Failure)
			}
			continue
		}
		l := r.Loads[0]
		s := l.Search
		if s.SLO != "p90<10ms" || len(s.Steps) == 0 || (s.Reason == "") == (s.RatePerS == 0) ||
			s.RatePerS > 0 && !(s.LoPerS <= s.RatePerS && s.RatePerS <= s.HiPerS) {
			t.Errorf("%s has %+v", r.Trial, s)
		}
		if l.Scheduled != l.Answered+l.Censored+l.Errors.Requests() {
			t.Errorf("%s: %d scheduled, %d answered, %d censored, %+v", r.Trial, l.Scheduled,
				l.Answered, l.Censored, l.Errors)
		}
	}
	wants := []string{"fast", "slow"}
	if slices.ContainsFunc(records, func(r *record.Record) bool {
		return r.Outcome == record.Measured
	}) { // otherwise the machine is too slow for a search
		wants = append(wants, "users (capacity, p90<10ms)")
	}
	has(t, "the report", stdout, wants...)
}

// searched makes the only load of a record a search that found a rate, with steps as long as the
// requested ones.
func searched(r *record.Record, perS float64) {
	l := r.Loads[0]
	l.Name, l.Model, l.RatePerS, l.WindowNs = "users", record.Open, perS*0.97, int64(1e12/perS)
	l.ThroughputPerS, l.Series = float64(l.Done)*perS/1e3, record.Series{}
	l.Search = &record.Search{SLO: "p99<20ms", RatePerS: perS, LoPerS: perS * 0.99,
		HiPerS: perS * 1.01, MetPerS: perS, BudgetNs: 4e10, ElapsedNs: 3e10}
	r.Loads = []record.Load{l}
}

// planLoads replaces the loads of a run's plan.
func planLoads(t *testing.T, dir string, names ...string) {
	t.Helper()
	path, head := filepath.Join(dir, record.RunFile), map[string]any{}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &head)
	}
	if err == nil {
		head["loads"] = names
		data, err = json.Marshal(head)
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The found rate is a result, and not part of the configuration: runs with different rates are
// compared, gated and ordered by time.
func TestSearchesAreCompared(t *testing.T) {
	root := checkout(t)
	first := measured(t, root, filepath.Join("results", "run-0"))
	_, records, _, err := record.Read(first)
	if err != nil {
		t.Fatal(err)
	}
	find := func(dir string, day int, by float64) {
		edit(t, dir, func(r *record.Record) {
			perS := (800 + float64(r.Block) + float64(day%3)) * by
			if r.Target.Name == "rust-axum" {
				perS *= 0.7
			}
			searched(r, perS)
			r.Time = records[0].Time.AddDate(0, 0, day)
		})
		planLoads(t, dir, "users")
	}
	for day := 1; day < 10; day++ {
		dir := filepath.Join(root, "results", "run-"+string(rune('0'+day)))
		if err := os.CopyFS(dir, os.DirFS(first)); err != nil {
			t.Fatal(err)
		}
		find(dir, day, map[bool]float64{false: 1, true: 0.9}[day >= 5])
	}
	find(first, 0, 1)
	last := filepath.Join(root, "results", "run-9")
	check := func(exit int, words string, args ...string) {
		t.Helper()
		stdout, stderr, got := say(t, mock{}, args...)
		if got != exit || !strings.Contains(stdout+stderr, words) {
			t.Errorf("%q exits with %d, want %d and %q:\n%s%s", args, got, exit, words, stdout,
				stderr)
		}
	}
	rows := []string{"--targets", "go-nethttp,rust-axum", "--metric", "capacity"}
	check(cli.Fine, "slower", append([]string{"compare", first}, rows...)...)
	check(cli.GateFailed, "fail", append([]string{"gate", first}, rows...)...)
	check(cli.GateFailed, "fail", "gate", first, last, "--metric", "capacity")
	check(cli.Fine, "pass", "gate", first, filepath.Join(root, "results", "run-3"), "--metric",
		"capacity")
	check(cli.Fine, "slower: −10 %", "trend", "--root", root, "--metric", "capacity")
	edit(t, last, func(r *record.Record) { r.Loads[0].Search.SLO = "p99<10ms" })
	check(cli.Failed, "p99<20ms against the highest that keeps p99<10ms", "gate", first, last)
}
