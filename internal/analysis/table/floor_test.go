package table

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"prony.example/record"

	"prony.example/record/metric"
)

// In each block arm b is 1 % above or below arm a, alternately: the log ratios are ±0.00995, their
// mean is 0 and, of 10, their SD 0.00995·sqrt(10/9) = 1.05 %.
func TestFloor(t *testing.T) {
	records := rates("x", 100, 101, 102, 103, 104, 105, 106, 107, 108, 109)
	for i := range records {
		records[i].Target.Arm = "a"
		twin := records[i]
		twin.Trial += "-b"
		twin.Target.Arm = "b"
		twin.Loads = append(twin.Loads[:0:0], twin.Loads...)
		twin.Loads[0].ThroughputPerS *= math.Exp(0.00995 * float64(1-2*(i%2)))
		records = append(records, twin)
	}
	study := analyze(records, Options{})
	sc := study.Scenarios[0]
	if len(sc.Floors) != 1 {
		t.Fatalf("floors %+v, want the one of throughput", sc.Floors)
	}
	f := sc.Floors[0]
	if f.Target != "x" || f.Metric != metric.Throughput || f.Ratio.N != 10 {
		t.Errorf("floor %+v", f)
	}
	if math.Abs(f.Ratio.Center-1) > 1e-9 || math.Abs(f.Ratio.SDLog-0.01049) > 1e-4 {
		t.Errorf("ratio %v, SD %v, want 1 and 0.01049", f.Ratio.Center, f.Ratio.SDLog)
	}
	// Ten pairs with an SD of 1.05 % detect 80 % of differences of about (2.26+0.88)·1.05/sqrt(10).
	if f.Detects < 0.009 || f.Detects > 0.012 {
		t.Errorf("resolves %v, want about 1.04 %%", f.Detects)
	}
	sheet := study.Sheet()
	if len(sheet.Tables) != 2 || sheet.Tables[1].Kind != FloorKind {
		t.Fatalf("tables %+v", sheet.Tables)
	}
	if got := sheet.Tables[1].Rows[0].Cells[2].Text(); got != "1.000 [0.993, 1.008]" {
		t.Errorf("ratio printed as %s", got)
	}
	if got := find(t, sheet.Tables[0], "x (a)", "peak/ratio").Text(); got != "1" {
		t.Errorf("arm a's ratio is %s, want 1: it is what b refers to", got)
	}
}

// TestFalseAlarm checks the note on an interval of the noise floor that excludes 1.
func TestFalseAlarm(t *testing.T) {
	records := rates("x", 100, 100, 100)
	for i, x := range []float64{110, 111, 112} {
		records[i].Target.Arm = "a"
		twin := trial("x", i+1, x)
		twin.Trial, twin.Target.Arm = twin.Trial+"-b", "b"
		records = append(records, twin)
	}
	sheet := sheetOf(records, Options{})
	floor := sheet.Tables[1]
	if len(floor.Footnotes) != 1 || floor.Footnotes[0][0].Kind != NoteFalseAlarm {
		t.Errorf("footnotes %q", floor.Footnotes)
	}
}

// TestVersusOrigin checks that a target refers to the same target of the other checkout, whatever
// the baseline.
func TestVersusOrigin(t *testing.T) {
	ours, theirs := rates("x", 110, 111), rates("x@base", 100, 101)
	other, baseline := rates("y", 50, 51), rates("y@base", 50, 52)
	for i := range theirs {
		theirs[i].Target.Origin, baseline[i].Target.Origin = "base", "base"
	}
	var all = append(append(ours, theirs...), append(other, baseline...)...)
	sheet := sheetOf(all, Options{Baseline: "y"})
	tab := sheet.Tables[0]
	// 110/100 and 111/101 are 1.1 and 1.099.
	if got := find(t, tab, "x", "peak/ratio").Value; math.Abs(got-1.0995) > 1e-3 {
		t.Errorf("x over x@base is %v, want 1.0995", got)
	}
	if got := find(t, tab, "x@base", "peak/ratio").Text(); got != "1" {
		t.Errorf("x@base over itself is %q", got)
	}
	if !strings.Contains(strings.Join(Texts(tab.Notes), " "), "divided by that of base, paired") {
		t.Errorf("notes %q", tab.Notes)
	}
}

// TestVersusProcess checks that a container refers to the plain process of the same target,
// whatever the baseline, and an agent in it to the container without the agent.
func TestVersusProcess(t *testing.T) {
	plain, contained := rates("x", 100, 101), rates("x", 90, 92)
	agent, baseline := rates("x", 45, 47), rates("y", 50, 52)
	for i := range contained {
		contained[i].Target.Launcher, agent[i].Target.Launcher = "docker", "docker"
		agent[i].Target.Variant = "otel"
	}
	all := append(append(plain, contained...), append(agent, baseline...)...)
	tab := sheetOf(all, Options{Baseline: "y"}).Tables[0]
	// 90/100 and 92/101 are 0.9 and 0.911; 45/90 and 47/92 are 0.5 and 0.511.
	if got := find(t, tab, "x in docker", "peak/ratio").Value; math.Abs(got-0.9055) > 1e-3 {
		t.Errorf("the container over the process is %v, want 0.9055", got)
	}
	if got := find(t, tab, "x +otel in docker", "peak/ratio").Value; math.Abs(got-0.5054) > 1e-3 {
		t.Errorf("the agent over the bare container is %v, want 0.5054", got)
	}
	if got := find(t, tab, "x", "peak/ratio").Text(); got != "1" {
		t.Errorf("the process over itself is %q", got)
	}
	said := strings.Join(Texts(tab.Notes), " ")
	if !strings.Contains(said, "in a container or pod by a plain process") {
		t.Errorf("notes %q", tab.Notes)
	}
}

// TestBaselineInContainers checks that a baseline may name a target that runs only in containers,
// although its row has another name. A name with several rows is ambiguous.
func TestBaselineInContainers(t *testing.T) {
	all := append(rates("x", 100, 101), rates("y", 90, 92)...)
	for i := range all {
		all[i].Target.Launcher = "docker"
	}
	tab := sheetOf(all, Options{Baseline: "x"}).Tables[0]
	// 90/100 and 92/101 are 0.9 and 0.911.
	if got := find(t, tab, "y in docker", "peak/ratio").Value; math.Abs(got-0.9055) > 1e-3 {
		t.Errorf("y over x is %v, want 0.9055", got)
	}
	if !strings.Contains(fmt.Sprint(tab.Notes), "divided by that of x in docker, paired") {
		t.Errorf("notes %q", tab.Notes)
	}
	other := rates("x", 50, 51)
	for i := range other {
		other[i].Target.Launcher = "kubernetes"
	}
	var several []*record.Record
	for _, r := range append(all, other...) {
		several = append(several, &r)
	}
	for _, sc := range Analyze(several, Options{Baseline: "x"}).Scenarios {
		if sc.Versus.Kind != VersusNone || sc.Find("x") != nil ||
			sc.Find("y").Name != "y in docker" ||
			sc.Find("x in docker").Name != "x in docker" || sc.Find("z") != nil {
			t.Errorf("ratios refer to %q", sc.Versus)
		}
	}
}
