package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// Sizes of the runs that are compared, in trials, and how much more often a statement may run for
// the larger one: four times as many trials take 4 times the steps, some more if they are sorted,
// and 16 times if every trial is compared with every other.
const (
	fewTrials, manyTrials = 500, 2000
	mostGrowth            = 6
	leastSteps            = 20_000 // fewer steps do not matter
)

// TestStepsGrowWithTrials counts how often each statement of the program runs for a run of some
// and of four times as many trials. A statement whose count grows with their square would take
// minutes for a run of 10,000 trials.
func TestStepsGrowWithTrials(t *testing.T) {
	testsets.Long(t, "steps for four times as many trials", programFiles)
	dir := t.TempDir()
	prony := filepath.Join(dir, "prony")
	build := exec.Command("go", buildflags.Build("-cover", "-covermode=count", "-coverpkg="+
		buildflags.Module+"/...,slices", "-o", prony, buildflags.Module+"/cmd/prony")...)
	build.Env = append(os.Environ(), buildflags.Lavish)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	few, many := filepath.Join(dir, "few"), filepath.Join(dir, "many")
	growRun(t, few, fewTrials)
	growRun(t, many, manyTrials)
	check := func(name string, args ...string) {
		t.Run(name, func(t *testing.T) {
			count := func(run string) map[string]int {
				return countSteps(t, prony, strings.Split(strings.ReplaceAll(
					strings.Join(args, "\n"), "RUN", run), "\n")...)
			}
			before := count(few)
			for place, n := range count(many) {
				sorting := strings.HasPrefix(place, "slices/zsort") // n log n, in varying ways
				if !sorting && n > leastSteps && n > mostGrowth*max(1, before[place]) {
					t.Errorf("%s runs %d times for %d trials, %d times for %d", place,
						before[place], fewTrials, n, manyTrials)
				}
			}
		})
	}
	page := filepath.Join(dir, "report.html")
	check("text", "report", "RUN", "--why")
	check("page", "report", "RUN", "-o", page)
	check("json", "report", "RUN", "--format", "json")
	check("csv", "report", "RUN", "--format", "csv")
	check("audit", "audit", "RUN")
	check("compare", "compare", "RUN", "RUN")
}

// growRun writes a run of many trials of two targets in blocks, from four records of a real run. Of
// ten blocks one has a failed and one an INVALID trial, and one lacks a record.
func growRun(t *testing.T, dir string, trials int) {
	t.Helper()
	source := filepath.Join(repository, "internal/report/runs/testdata/run")
	head, records, _, err := record.ReadUnchecked(source)
	if err != nil || len(records) != 4 {
		t.Fatalf("%s: %d records, %v", source, len(records), err)
	}
	head.ID, head.Blocks, head.Trials, head.Planned = filepath.Base(dir), trials/2, nil, nil
	var lines []byte
	for i := range trials {
		rec := *records[i%4]
		rec.Run, rec.Block, rec.Order = head.ID, i/2+1, i+1
		rec.Trial = fmt.Sprintf("b%d-%05d-%s", rec.Block, i+1, rec.Target.Name)
		rec.Verdict = record.Verdict{Grade: record.Valid}
		rec.Loads = append([]record.Load(nil), rec.Loads...)
		for j := range rec.Loads {
			rec.Loads[j].ResponseTime.HDR, rec.Loads[j].ServiceTime.HDR = "", ""
		}
		head.Trials = append(head.Trials, rec.Trial)
		head.Planned = append(head.Planned, record.Planned{Trial: rec.Trial,
			Row: rec.Target.Row(), Scenario: rec.Scenario, Block: rec.Block})
		switch rec.Block % 10 {
		case 1:
			rec.Outcome, rec.Loads = record.Failed, nil
			rec.Failure = &record.Failure{Step: "ready", Error: "no response"}
		case 2:
			rec.Verdict = records[0].Verdict // INVALID
		case 3:
			continue
		}
		b, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, b...), '\n')
	}
	w, err := record.Create(dir, head)
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, record.TrialsFile), lines, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// countSteps runs a program that was built with -cover, and returns how often each block of
// statements ran.
func countSteps(t *testing.T, prony string, args ...string) map[string]int {
	t.Helper()
	dir := t.TempDir()
	run := exec.Command(prony, args...)
	run.Env = append(os.Environ(), "GOCOVERDIR="+dir)
	if out, err := run.CombinedOutput(); run.ProcessState.ExitCode() < 0 ||
		strings.Contains(string(out), "panic") {
		t.Fatalf("%v: %s", err, out)
	}
	profile := filepath.Join(dir, "profile.txt")
	text := exec.Command("go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+profile)
	if out, err := text.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f, err := os.Open(profile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	counts := map[string]int{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// file.go:1.2,3.4 STATEMENTS COUNT
		words := strings.Fields(lines.Text())
		if len(words) != 3 {
			continue
		}
		n, err := strconv.Atoi(words[2])
		if err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		counts[words[0]] += n
	}
	if len(counts) == 0 {
		t.Fatal("the program counted nothing")
	}
	return counts
}
