package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
	"prony.example/internal/observe/host"
	"prony.example/internal/report/compare"
	"prony.example/internal/suite"
	"prony.example/record"
	"prony.example/stats"
)

// Settings of plans for a difference.
const (
	detectConfidence = 0.95
	detectPower      = 0.8
	detectMost       = 1000 // blocks; plans with more are not useful
)

// detectable are the differences that are always shown, in addition to the requested one.
var detectable = []float64{0.01, 0.02, 0.05, 0.10}

// detect prints how many starts or blocks detect a difference here, by the noise of an A/A run: the
// named one, or one in the folder of results.
func (a *app) detect(results string, p *suite.Plan, effect, from string) error {
	asked, err := compare.ParsePercent(effect)
	if err == nil && asked == 0 {
		err = errors.New("the difference must be greater than 0")
	}
	if err != nil {
		return cli.Usagef("--detect %s: %w", effect, err)
	}
	dir, study, err := floorRun(results, from)
	if err != nil {
		return err
	}
	names := p.Targets()
	targets := len(names)
	// The date matters because noise changes with the machine's other load.
	fmt.Fprintf(a.stdout, "noise floor of run %s: each target against itself, measured %s "+
		"UTC\n\n", dir,
		study.Records[0].Time.UTC().Format(time.DateTime))
	d := detection{asked: asked, blocks: p.Suite.Blocks, targets: targets, repeat: p.Repeat()}
	d.print(a.stdout, study)
	for _, r := range study.Records {
		if !slices.Contains(names, r.Target.Name) {
			fmt.Fprintf(a.stdout, "\n%s is not a target of this plan. Other targets may have "+
				"more or less noise.\n", r.Target.Name)
			break
		}
	}
	if floor := table.RepeatOf(study.Records...); floor != d.repeat {
		fmt.Fprintf(a.stdout, "\nThe noise is from %ss, but the plan has %ss: make a new run "+
			"with prony run --aa.\n", floor, d.repeat)
	}
	fmt.Fprintf(a.stdout, "\n%ss that detect the difference in %.0f %% of runs at %.0f %% "+
		"confidence.\nOne pair: a single comparison, such as a gate. All %d: every pair of the "+
		"suite's targets, corrected by Holm.\n", strings.ToTitle(d.repeat[:1])+d.repeat[1:],
		100*detectPower, 100*detectConfidence, targets)
	return nil
}

type detection struct {
	asked           float64
	blocks, targets int
	repeat          string // unit of blocks: "block" or "start"
}

func (d detection) print(w io.Writer, study table.Study) {
	effects := append(slices.Clone(detectable), d.asked)
	slices.Sort(effects)
	effects = slices.Compact(effects)
	pairs := max(d.targets*(d.targets-1)/2, 1)
	heads := []string{"TARGET", "METRIC", "SD OF A PAIR",
		strings.ToUpper(units.Plural(d.blocks, d.repeat)) + " RESOLVE"}
	for _, e := range effects {
		heads = append(heads, strings.ToUpper(units.Percent(e))+" OF TWO")
	}
	rows := [][]string{append(heads, units.Percent(d.asked)+" OF ALL")}
	alpha := 1 - detectConfidence
	for _, sc := range study.Scenarios {
		for _, f := range sc.Floors {
			// A single pair has one degree of freedom per block, even if the floor pools several
			// targets.
			pair := stats.Ratio{N: d.blocks, SDLog: f.Ratio.SDLog}
			row := []string{f.Target, f.Load + " " + f.Metric, units.Percent(pair.SDLog),
				percentOr(pair.Detects(alpha, detectPower))}
			for _, e := range effects {
				row = append(row, blocksOr(pair.Resolves(e, alpha, detectPower)))
			}
			rows = append(rows, append(row, blocksOr(pair.Resolves(d.asked,
				alpha/float64(pairs), detectPower))))
		}
	}
	fmt.Fprint(w, format.Grid("  ", rows, format.Right))
}

func percentOr(x float64) string {
	if !(x > 0) {
		return units.Absent
	}
	return table.Resolution(x)
}

func blocksOr(n int) string {
	if n > detectMost {
		return fmt.Sprintf(">%d", detectMost)
	}
	return strconv.Itoa(n)
}

// floorRun returns the A/A run for a plan: the named one, or the newest of this machine below the
// folder. The noise of another machine does not apply here.
func floorRun(results, from string) (dir string, study table.Study, err error) {
	if from != "" {
		study, err = readFloor(from)
		return from, study, err
	}
	var here record.Provenance
	host.Describe(&here)
	for _, run := range newest(results) {
		study, err := readFloor(run)
		if err == nil && sameMachine(study.Records[0].Provenance, here) {
			return run, study, nil
		}
	}
	return "", study, fmt.Errorf("cannot plan for a difference: no A/A run of this machine in "+
		"%s, so its noise is unknown; make one with: prony run --aa --targets NAME --blocks "+
		"10", results)
}

func sameMachine(a, b record.Provenance) bool {
	return a.CPUModel == b.CPUModel && a.Cores == b.Cores && a.Kernel == b.Kernel
}

// readFloor reads a run that has a noise floor.
func readFloor(dir string) (table.Study, error) {
	head, records, _, err := record.Read(dir)
	if err != nil {
		return table.Study{}, err
	}
	if !head.AA {
		return table.Study{}, fmt.Errorf("cannot read the noise floor: %s is not an A/A run; "+
			"make one with prony run --aa", dir)
	}
	study := table.Analyze(records, table.Options{})
	for _, sc := range study.Scenarios {
		if len(sc.Floors) > 0 {
			return study, nil
		}
	}
	return study, fmt.Errorf("cannot read the noise floor: %s has no two good trials of one "+
		"target in the same start or block", dir)
}
