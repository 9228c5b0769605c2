package bench

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
	"prony.example/stats"
)

// slicesFile holds a line for each real comparison by slices; it only grows.
const slicesFile = "slices.ndjson"

var (
	slicesCase = flag.String("slices.case", "", "case of BenchmarkSlices, or its first letters")
	slicesMost = flag.Int("slices.n", 1, "comparisons that are added at most")
)

// slicesQuestion is a question with a known answer.
type slicesQuestion struct {
	name    string
	command string // empty: ./units
	change  string // environment of the second service; empty: the same as the first
	base    string // environment of both
	starts  int
	slices  time.Duration // of each target in a start
	warmup  time.Duration
	planned int // comparisons; seeds are 1 to planned
	beside  int // busy loops during it
}

// slicesQuestions are fixed before they are run: the seeds of a question are 1, 2, 3 and so on.
var slicesQuestions = []slicesQuestion{
	{name: "go-aa", starts: 5, slices: 2 * time.Second, warmup: 1500 * time.Millisecond,
		planned: 100},
	{name: "go-5-percent", base: "UNITS=100", change: "UNITS=112", starts: 6,
		slices: 2 * time.Second, warmup: 1500 * time.Millisecond, planned: 20},
	{name: "go-5-percent-minute", base: "UNITS=100", change: "UNITS=112", starts: 4,
		slices: 2 * time.Second, warmup: 1500 * time.Millisecond, planned: 20},
	// The same question since idle cores poll in virtual machines.
	{name: "go-5-percent-minute-polling", base: "UNITS=100", change: "UNITS=112", starts: 4,
		slices: 2 * time.Second, warmup: 1500 * time.Millisecond, planned: 20},
	{name: "go-1-percent", base: "UNITS=100", change: "UNITS=102", starts: 12,
		slices: 4 * time.Second, warmup: 1500 * time.Millisecond, planned: 20},
	{name: "go-rare", base: "UNITS=100", change: "UNITS=100 RARE=200000 EVERY=20000", starts: 10,
		slices: 4 * time.Second, warmup: 1500 * time.Millisecond, planned: 20},
	{name: "go-5-percent-busy", base: "UNITS=100", change: "UNITS=112", starts: 12,
		slices: 2 * time.Second, warmup: 1500 * time.Millisecond, planned: 20, beside: 2},
	// What these services do beside units costs as much as 160, 115 and 27 of their units: the
	// changes are 1.9, 1.9 and 2.2 %.
	{name: "jvm-aa", command: jvmUnits, base: "UNITS=100", starts: 5, slices: 4 * time.Second,
		warmup: 15 * time.Second, planned: 20},
	{name: "jvm-2-percent", command: jvmUnits, base: "UNITS=100", change: "UNITS=105", starts: 10,
		slices: 4 * time.Second, warmup: 15 * time.Second, planned: 10},
	{name: "node-aa", command: "node units.js", base: "UNITS=100", starts: 5,
		slices: 4 * time.Second, warmup: 4 * time.Second, planned: 20},
	{name: "node-2-percent", command: "node units.js", base: "UNITS=100", change: "UNITS=104",
		starts: 10, slices: 4 * time.Second, warmup: 4 * time.Second, planned: 10},
	{name: "python-aa", command: "python3 units.py", base: "UNITS=200", starts: 5,
		slices: 4 * time.Second, warmup: 1500 * time.Millisecond, planned: 20},
	{name: "python-2-percent", command: "python3 units.py", base: "UNITS=200", change: "UNITS=205",
		starts: 10, slices: 4 * time.Second, warmup: 1500 * time.Millisecond, planned: 10},
}

const jvmUnits = "java -XX:+UseSerialGC -Xms64m -Xmx64m Units"

// slicesResult is a line of slicesFile.
type slicesResult struct {
	Case       string      `json:"case"`
	Seed       int         `json:"seed"`
	Time       time.Time   `json:"time"`
	Seconds    float64     `json:"seconds"`
	Starts     int         `json:"starts"` // without lost ones
	Rounds     int         `json:"rounds"`
	Load       [2]float64  `json:"load"`  // load average of a minute, before and after
	Steal      float64     `json:"steal"` // share of all cores' time
	Throughput slicesRatio `json:"throughput"`
	CPU        slicesRatio `json:"cpu"`
	Error      string      `json:"error,omitempty"`
}

// slicesRatio is the second service over the first one, at 95 %.
type slicesRatio struct {
	Center float64 `json:"center"`
	Lo     float64 `json:"lo"`
	Hi     float64 `json:"hi"`
}

// BenchmarkSlices compares a service with itself, or with one of known cost, by the program itself,
// and adds a line for each comparison. Comparisons that have a line already are not repeated.
//
//	go test ./bench -run "^$" -bench "Slices$" -benchtime 1x -timeout 0 -slices.case go-aa
func BenchmarkSlices(b *testing.B) {
	done := map[string]bool{}
	for _, r := range readSlicesResults(b) {
		done[r.Case+strconv.Itoa(r.Seed)] = true
	}
	dir := b.TempDir()
	testsets.Build(b, filepath.Join(dir, "prony"), buildflags.Module+"/cmd/prony")
	buildUnits(b, dir)
	left := *slicesMost
	for _, q := range slicesQuestions {
		if *slicesCase == "" || !strings.HasPrefix(q.name, *slicesCase) {
			continue
		}
		for seed := 1; seed <= q.planned && left > 0; seed++ {
			if done[q.name+strconv.Itoa(seed)] {
				continue
			}
			left--
			r := q.run(b, dir, seed)
			addSlicesResult(b, r)
			b.Logf("%s %d: CPU %+.2f %% (%+.2f to %+.2f), throughput %+.2f %% (%+.2f to %+.2f), "+
				"%.0f s %s", r.Case, r.Seed, 100*(r.CPU.Center-1), 100*(r.CPU.Lo-1),
				100*(r.CPU.Hi-1), 100*(r.Throughput.Center-1), 100*(r.Throughput.Lo-1),
				100*(r.Throughput.Hi-1), r.Seconds, r.Error)
		}
	}
}

// buildUnits puts the services into a folder: that in Go, and the others of this case.
func buildUnits(b *testing.B, dir string) {
	b.Helper()
	builds := [][]string{{"go", "build", "-o", filepath.Join(dir, "units"), "."},
		{"cp", "units.js", "units.py", dir}}
	if strings.HasPrefix(*slicesCase, "jvm") {
		builds = append(builds, []string{"javac", "-d", dir, "Units.java"})
	}
	for _, args := range builds {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = filepath.Join("testdata", "units") // a module of its own
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%s: %v\n%s", args, err, out)
		}
	}
}

// run runs one comparison.
func (q slicesQuestion) run(b *testing.B, dir string, seed int) (r slicesResult) {
	b.Helper()
	for range q.beside {
		loop := exec.Command("sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			b.Fatal(err)
		}
		defer func() { _ = loop.Process.Kill(); _ = loop.Wait() }()
	}
	out := filepath.Join(dir, fmt.Sprintf("%s-%d", q.name, seed))
	command := func(extra string) string {
		return strings.TrimSpace(q.base+" "+extra) + " " + cmp.Or(q.command, "./units")
	}
	cmd := exec.Command("./prony", "versus", "-n", "first", "-n", "second", command(""),
		command(q.change), "--get", "/", "--blocks", strconv.Itoa(q.starts), "--slices",
		q.slices.String(), "--warmup", q.warmup.String(), "--measure", "200ms", "--seed",
		strconv.Itoa(seed), "--again=false", "--memory", "256MiB", "--out", out)
	cmd.Dir = dir
	r = slicesResult{Case: q.name, Seed: seed, Time: clock.Wall().UTC().Truncate(time.Second)}
	r.Load[0] = loadAverage()
	began := clock.Mono()
	text, err := cmd.CombinedOutput()
	r.Seconds = float64(clock.Mono()-began) / 1e9
	r.Load[1] = loadAverage()
	_, records, _, readErr := record.Read(out)
	if readErr != nil {
		r.Error = strings.TrimSpace(errors.Join(err, readErr).Error() + ": " + string(text))
		return r
	}
	r.fill(records)
	_ = os.RemoveAll(out)
	return r
}

// fill computes the ratios from the slices of all starts.
func (r *slicesResult) fill(records []*record.Record) {
	byStart := map[int]map[string]*record.Sliced{}
	for _, rec := range records {
		if rec.Outcome != record.Measured || len(rec.Loads) == 0 || rec.Loads[0].Slices == nil {
			continue
		}
		if byStart[rec.Block] == nil {
			byStart[rec.Block] = map[string]*record.Sliced{}
		}
		byStart[rec.Block][rec.Target.Name] = rec.Loads[0].Slices
		r.Rounds = max(r.Rounds, rec.Loads[0].Slices.Slices)
		r.Steal = max(r.Steal, rec.Loads[0].Host.StealShare)
	}
	var values [4][]float64
	for _, sides := range byStart {
		first, second := sides["first"], sides["second"]
		if first == nil || second == nil {
			continue
		}
		r.Starts++
		values[0] = append(values[0], first.ThroughputPerS())
		values[1] = append(values[1], second.ThroughputPerS())
		values[2] = append(values[2], first.CPUPerRequestNs())
		values[3] = append(values[3], second.CPUPerRequestNs())
	}
	if r.Starts < 2 {
		r.Error = "too few starts"
		return
	}
	ratio := func(a, b []float64) slicesRatio {
		x := stats.PairedRatio(a, b, 0.95)
		return slicesRatio{x.Center, x.Lo, x.Hi}
	}
	r.Throughput, r.CPU = ratio(values[0], values[1]), ratio(values[2], values[3])
}

func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	value, _, _ := strings.Cut(string(text), " ")
	out, _ := strconv.ParseFloat(value, 64)
	return out
}

func readSlicesResults(tb testing.TB) (all []slicesResult) {
	tb.Helper()
	f, err := os.Open(slicesFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r slicesResult
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			tb.Fatalf("%s: %v", slicesFile, err)
		}
		all = append(all, r)
	}
	return all
}

func addSlicesResult(tb testing.TB, r slicesResult) {
	tb.Helper()
	line, err := json.Marshal(r)
	if err != nil {
		tb.Fatal(err)
	}
	f, err := os.OpenFile(slicesFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.Write(append(line, '\n'))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		tb.Fatal(err)
	}
}
