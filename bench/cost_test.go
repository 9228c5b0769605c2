package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/stats"
)

// The history in git of the generator's cost per request: a line for each engine and measurement,
// so that changes of the generator show. Lines with the same machine and connections are compared;
// the ratio to wrk in the same run cancels changes of the machine's speed.

// costFile is the history. Unlike historyFile, which stores every run of a comparison on this
// machine, it is committed.
const costFile = "cost.ndjson"

const costConfidence = 0.95

// costLine is one engine's cost on one day: the median of rounds, and its interval.
type costLine struct {
	Time        time.Time  `json:"time"`
	Commit      string     `json:"commit"`
	Dirty       bool       `json:"dirty,omitempty"` // the code differed from the commit
	CPU         string     `json:"cpu"`
	Cores       int        `json:"cores"`
	Kernel      string     `json:"kernel"`
	Go          string     `json:"go"`
	Engine      string     `json:"engine"`
	Connections int        `json:"connections"`
	Rounds      int        `json:"rounds"`
	CPUNs       costLevel  `json:"cpuNsPerRequest"`
	Allocs      float64    `json:"allocsPerAnswer"`    // of the whole load
	ToWrk       *costLevel `json:"cpuToWrk,omitempty"` // if wrk is installed
}

// costLevel is a center and the interval around it. Without an interval, both ends are null.
type costLevel struct {
	Center float64  `json:"center"`
	Lo     *float64 `json:"lo"`
	Hi     *float64 `json:"hi"`
}

func newCostLevel(center, lo, hi float64, has bool) costLevel {
	if !has {
		return costLevel{Center: center}
	}
	return costLevel{center, &lo, &hi}
}

func (l costLevel) String() string {
	if l.Lo == nil || l.Hi == nil {
		return fmt.Sprintf("%.4g", l.Center)
	}
	return fmt.Sprintf("%.4g (%.4g–%.4g)", l.Center, *l.Lo, *l.Hi)
}

// series identifies the lines that can be compared.
func (c costLine) series() string {
	return fmt.Sprintf("%s, %d connections, on %d cores of %s", c.Engine, c.Connections, c.Cores,
		c.CPU)
}

// BenchmarkCost measures the cost of a request, adds it to the history and prints the history. One
// iteration is a whole measurement: PRONY_BENCH_ROUNDS rounds (default 9) of PRONY_BENCH_SECONDS
// each (default 2) for each engine and wrk.
func BenchmarkCost(b *testing.B) {
	rounds, seconds := Setting(b, "PRONY_BENCH_ROUNDS", 9), Setting(b, "PRONY_BENCH_SECONDS", 2)
	var text bytes.Buffer
	for range b.N {
		for _, line := range measureCost(b, 64, rounds, time.Duration(seconds)*time.Second) {
			appendTo(b, costFile, line)
		}
		lines, err := readCosts(costFile)
		if err != nil {
			b.Fatal(err)
		}
		printCosts(&text, lines)
	}
	b.ReportMetric(0, "ns/op") // the time of a measurement has no meaning
	b.Log("\n" + text.String())
}

// measureCost runs Prony's generator and wrk in turns.
func measureCost(tb testing.TB, conns, rounds int, d time.Duration) (lines []costLine) {
	tb.Helper()
	serverCore, core := TwoCores(tb)
	addr := server(tb, serverCore)
	all := slices.DeleteFunc(field(), func(g loadTool) bool {
		return g.name != "wrk" && !strings.HasPrefix(g.name, "prony/")
	})
	runs := map[string][]figures{}
	for round := range rounds {
		order := slices.Clone(all)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, g := range order {
			if f, ok := g.run(tb, addr, core, conns, d); ok {
				runs[g.name] = append(runs[g.name], f)
			}
		}
	}
	for _, g := range all {
		if engine, ours := strings.CutPrefix(g.name, "prony/"); ours {
			lines = append(lines, newCostLine(tb, engine, conns, runs[g.name], runs["wrk"]))
		}
	}
	return lines
}

func newCostLine(tb testing.TB, engine string, conns int, ours, wrk []figures) costLine {
	tb.Helper()
	cpu := func(f figures) float64 { return f.CPUNsPerRequest }
	own := stats.Summarize(values(ours, cpu), costConfidence)
	line := costLine{
		Time: clock.Wall().UTC(), Commit: commit(), Dirty: dirty(tb), CPU: model(),
		Cores: runtime.NumCPU(), Kernel: kernel(tb), Go: runtime.Version(),
		Engine: engine, Connections: conns, Rounds: len(ours),
		CPUNs:  newCostLevel(own.Center, own.Lo, own.Hi, own.HasInterval()),
		Allocs: stats.Median(values(ours, func(f figures) float64 { return f.AllocsPerAnswer })),
	}
	if len(wrk) == len(ours) {
		r := stats.PairedRatio(values(wrk, cpu), values(ours, cpu), costConfidence)
		to := newCostLevel(r.Center, r.Lo, r.Hi, r.HasInterval())
		line.ToWrk = &to
	}
	return line
}

// dirty reports whether the tree differs from the commit in anything but the history.
func dirty(tb testing.TB) bool {
	tb.Helper()
	out, err := exec.Command("git", "status", "--porcelain", "--", "..", ":!"+costFile).Output()
	if err != nil {
		tb.Logf("git cannot say whether the tree is clean: %v", err)
	}
	return err != nil || len(out) > 0
}

// readCosts reads the history; an invalid line is an error.
func readCosts(file string) (lines []costLine, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	for {
		var line costLine
		if err := d.Decode(&line); err == io.EOF {
			return lines, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the history: %s, line %d: %w", file, len(lines)+1, err)
		}
		if problem := line.problem(); problem != "" {
			return nil, fmt.Errorf("read the history: %s, line %d: %s", file, len(lines)+1, problem)
		}
		if n := len(lines); n > 0 && line.Time.Before(lines[n-1].Time) {
			return nil, fmt.Errorf("read the history: %s, line %d is older than the one before: "+
				"lines are added at the end, and none is changed", file, n+1)
		}
		lines = append(lines, line)
	}
}

func (c costLine) problem() string {
	switch {
	case c.Time.IsZero() || c.Commit == "" || c.CPU == "" || c.Kernel == "" || c.Engine == "":
		return "it does not say when, of what or where"
	case c.Cores < 1 || c.Connections < 1 || c.Rounds < 1:
		return "cores, connections and rounds are numbers above 0"
	case c.CPUNs.Center <= 0 || c.ToWrk != nil && c.ToWrk.Center <= 0:
		return "a request costs something"
	}
	return ""
}

// printCosts prints each series: the newest line beside the one before, and since when its level
// holds.
func printCosts(w io.Writer, lines []costLine) {
	all := map[string][]costLine{}
	for _, line := range lines {
		all[line.series()] = append(all[line.series()], line)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		series := all[name]
		fmt.Fprintln(w, name)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "day\tcommit\tCPU ns/request\tto wrk\tto the line before\tallocations\t")
		for i, line := range series {
			var before *costLine
			if i > 0 {
				before = &series[i-1]
			}
			id := line.Commit
			if line.Dirty {
				id += "+"
			}
			wrk := "–"
			if line.ToWrk != nil {
				wrk = line.ToWrk.String()
			}
			fmt.Fprintf(t, "%s\t%s\t%v\t%s\t%s\t%.2g\t\n", line.Time.Format(time.DateOnly), id,
				line.CPUNs, wrk, line.against(before), line.Allocs)
		}
		t.Flush()
		levels, unit := costLevels(series)
		for _, c := range stats.Changes(levels, 1-costConfidence) {
			fmt.Fprintf(w, "since %s another level: %.4g %s, before %.4g (p = %.2g)\n",
				series[c.At].Commit, c.After, unit, c.Before, c.P)
		}
	}
}

// costLevels returns the values in which changes are searched: ratios to wrk if all lines have one.
func costLevels(series []costLine) (levels []float64, unit string) {
	bare := slices.ContainsFunc(series, func(c costLine) bool { return c.ToWrk == nil })
	for _, c := range series {
		if bare {
			levels, unit = append(levels, c.CPUNs.Center), "ns"
		} else {
			levels, unit = append(levels, c.ToWrk.Center), "× wrk"
		}
	}
	return levels, unit
}

// against returns the ratio to the line before: of the ratios to wrk if both have one.
func (c costLine) against(before *costLine) string {
	switch {
	case before == nil:
		return "–"
	case c.ToWrk != nil && before.ToWrk != nil:
		return fmt.Sprintf("%.3f by wrk", c.ToWrk.Center/before.ToWrk.Center)
	}
	return fmt.Sprintf("%.3f", c.CPUNs.Center/before.CPUNs.Center)
}

// The committed history can be read. With -v the test prints it.
func TestCostHistory(t *testing.T) {
	lines, err := readCosts(costFile)
	if err != nil {
		t.Error(err)
	}
	var text bytes.Buffer
	printCosts(&text, lines)
	t.Logf("%d lines\n%s", len(lines), &text)
}

// A short measurement results in a line that can be read, and the next is compared with it.
func TestCostInSmall(t *testing.T) {
	testsets.Long(t, "what a request costs, measured twice", testsets.Needs{})
	testsets.Measured(t)
	file := filepath.Join(t.TempDir(), costFile)
	for range 2 {
		for _, line := range measureCost(t, 4, 2, 100*time.Millisecond) {
			if line.CPUNs.Center <= 0 || line.Rounds != 2 || line.Allocs <= 0 {
				t.Errorf("measured %+v", line)
			}
			appendTo(t, file, line)
		}
	}
	lines, err := readCosts(file)
	if err != nil || len(lines) < 2 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	var text bytes.Buffer
	printCosts(&text, lines)
	if !strings.Contains(text.String(), "epoll, 4 connections, on ") {
		t.Errorf("printed:\n%s", &text)
	}
}

// costOf returns a line of the history for a day of a month.
func costOf(day int, ns, toWrk float64) costLine {
	line := costLine{Time: time.Date(2026, 3, day, 0, 0, 0, 0, time.UTC), CPU: "c", Cores: 2,
		Commit: fmt.Sprintf("commit%d", day), Kernel: "k", Go: "go", Engine: "epoll",
		Connections: 64, Rounds: 9, CPUNs: costLevel{Center: ns}}
	if toWrk > 0 {
		line.ToWrk = &costLevel{Center: toWrk}
	}
	return line
}

// On the fourth day, the machine became slower by a third and wrk with it; on the tenth, the
// generator by a tenth: only the second is a change.
func TestCostChanges(t *testing.T) {
	var lines []costLine
	for day := 1; day <= 15; day++ {
		ns, toWrk := 1000+float64(day%3), 0.800+float64(day%3)/1000
		if day >= 4 {
			ns *= 1.33
		}
		if day >= 10 {
			ns, toWrk = ns*1.1, toWrk*1.1
		}
		lines = append(lines, costOf(day, ns, toWrk))
	}
	elsewhere := costOf(16, 5000, 0)
	elsewhere.CPU = "another"
	var text bytes.Buffer
	printCosts(&text, append(lines, elsewhere))
	for _, want := range []string{"since commit10 another level: 0.8811 × wrk, before 0.801 ",
		"1.101 by wrk", // 0.801 × 1.1 / 0.800 on the tenth day: 10 % 3 = 1, 9 % 3 = 0
		"on 2 cores of another\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, &text)
		}
	}
	if n := strings.Count(text.String(), "another level"); n != 1 {
		t.Errorf("%d changes, want one:\n%s", n, &text)
	}
}

func TestCostProblems(t *testing.T) {
	file := filepath.Join(t.TempDir(), costFile)
	check := func(want string, lines ...any) {
		t.Helper()
		os.Remove(file)
		for _, line := range lines {
			appendTo(t, file, line)
		}
		if _, err := readCosts(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	good := costOf(2, 1000, 0)
	check("line 2: json: unknown field", good, map[string]any{"time2": "x"})
	check("line 2 is older than the one before", good, costOf(1, 1000, 0))
	check("line 1: a request costs something", costOf(1, 0, 0))
	check("line 1: it does not say when", costLine{})
	check("no such file")
}
