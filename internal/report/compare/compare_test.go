package compare

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/format"
	"prony.example/record"
	"prony.example/stats"
)

// slower is 5 % slower on average: by 6 % in odd blocks and by 4 % in even ones.
var slower = scaled(drifting, 0.94, 0.96)

func TestRowsOfOneRunArePaired(t *testing.T) {
	s := runOf("r", noon, rows{"new": slower, "old": drifting})
	c := compare(t, at(s, "old"), at(s, "new"), Options{})
	if !c.Paired || len(c.Pairs) != 1 || c.ConfigHash == "" || len(c.Mismatches) > 0 {
		t.Fatalf("%d pairs, paired %v, method %q, unlike %v", len(c.Pairs), c.Paired, c.ConfigHash,
			c.Mismatches)
	}
	// Log ratios are ln 0.94 and ln 0.96 in turn, four times each: mean ln sqrt(0.9024), SD
	// (ln 0.96 - ln 0.94)/2 * sqrt(8/7) = 0.0112545, times t(0.975; 7) / sqrt(8) = 0.0094090.
	r := rowOf(t, c.Pairs[0], "peak", "throughput")
	near(t, "the ratio", r.Ratio.Center, math.Sqrt(0.9024))
	if math.Abs(r.Ratio.Lo-0.941050) > 1e-5 || math.Abs(r.Ratio.Hi-0.958928) > 1e-5 {
		t.Errorf("its interval is %v to %v", r.Ratio.Lo, r.Ratio.Hi)
	}
	check := func(load, metric, outcome, word string, higher bool) {
		r := rowOf(t, c.Pairs[0], load, metric)
		if r.Outcome != outcome || r.Text != word || (r.Better == Higher) != higher {
			t.Errorf("%s %s is %s (%s, %s is better), want %s (%s)", load, metric, r.Outcome,
				r.Text, r.Better, outcome, word)
		}
	}
	check("peak", "throughput", Worse, "slower", true)
	check("peak", "cpu_per_request", Worse, "more", false)
	check("peak", "rss_max", Indistinguishable, "no significant difference", false)
	check("half", "p99", Worse, "slower", false)
	check("half", "achieved", Indistinguishable, "no significant difference", true)
	check("", "artifact_size", Equal, "the same", false)
	if len(r.Blocks) != 8 || r.Blocks[0].Block != 1 {
		t.Errorf("blocks are %v", r.Blocks)
	}
	near(t, "the first block's ratio", r.Blocks[0].Ratio, 0.94)
	// In the other direction everything is better by the inverse.
	c = compare(t, at(s, "new"), at(s, "old"), Options{})
	r = rowOf(t, c.Pairs[0], "peak", "throughput")
	near(t, "the ratio", r.Ratio.Center, 1/math.Sqrt(0.9024))
	check("peak", "throughput", Better, "faster", true)
	check("peak", "cpu_per_request", Better, "less", false)
	check("half", "p50", Better, "faster", false)
}

// TestTargetsLendPrecision checks that seven targets give a better estimate of the noise than two:
// a ratio of one run equals the table's, and so does the number of blocks that would decide. Levels
// are those of the ratio, which may differ from the medians.
func TestTargetsLendPrecision(t *testing.T) {
	all := rows{"old": {10000, 10300, 9900}, "new": {10100, 9700, 10150}}
	for i, name := range []string{"c", "d", "e", "f", "g"} {
		all[name] = scaled([]float64{5000, 5200, 4900}, 1, 1+0.01*float64(i-2), 1)
	}
	s := runOf("r", noon, all)
	r := rowOf(t, compare(t, at(s, "old"), at(s, "new"), Options{}).Pairs[0], "peak", "throughput")
	study := table.Analyze(s.Records, table.Options{Baseline: "old"})
	i := slices.IndexFunc(study.Scenarios[0].Targets, func(x *table.Target) bool {
		return x.Name == "new"
	})
	m, _ := study.Scenarios[0].Targets[i].Metric("peak", "throughput")
	if r.Ratio.Assumption != stats.Moderated || *r.Ratio != *m.Ratio {
		t.Errorf("ratio is %+v, the table's %+v", *r.Ratio, *m.Ratio)
	}
	if alone := stats.PairedRatio(all["old"], all["new"], 0.95); r.Ratio.Hi/r.Ratio.Lo >=
		alone.Hi/alone.Lo {
		t.Errorf("%v is no narrower than alone, %v", *r.Ratio, alone)
	}
	// The medians are 10,000 and 10,100, the means 10,065 and 9,981: B is below A.
	if a, b := Level(r.A, r.Unit), Level(r.B, r.Unit); r.Change() > 0 ||
		!strings.HasPrefix(a, "10.1k/s") || !strings.HasPrefix(b, "9.98k/s") {
		t.Errorf("A %s, B %s, change %v", a, b, r.Change())
	}
	// Between two runs as well.
	r = rowOf(t, compare(t, at(s, "old"), at(runOf("b", noon, all), "new"),
		Options{}).Pairs[0], "peak", "throughput")
	if r.Ratio.Assumption != stats.Moderated {
		t.Errorf("between runs the ratio is %+v", *r.Ratio)
	}
}

// TestRowsOfTwoRunsAreNot checks that the same numbers from two runs are not paired: blocks that
// differ by 30 % hide 5 %.
func TestRowsOfTwoRunsAreNot(t *testing.T) {
	a := runOf("a", noon, rows{"x": drifting})
	b := runOf("b", noon.Add(3*time.Hour), rows{"x": slower})
	c := compare(t, a, b, Options{})
	r := rowOf(t, c.Pairs[0], "peak", "throughput")
	want := stats.UnpairedRatio(drifting, slower, 0.95)
	if c.Paired || r.Outcome != Indistinguishable || *r.Ratio != want || len(r.Blocks) > 0 {
		t.Errorf("paired %v, %s, ratio %+v, want %+v", c.Paired, r.Outcome, *r.Ratio, want)
	}
	// SD 0.133 of eight trials a side: a difference below 20 % would have been missed.
	if !(r.Detectable > 0.2 && r.Detectable < 1) {
		t.Errorf("it sees %v", r.Detectable)
	}
	if !strings.HasPrefix(c.Warnings[0], "These runs are 3 hours apart and not paired") {
		t.Errorf("the first warning is %q", c.Warnings[0])
	}
	moved := a
	moved.Dir, moved.Head.ID = "elsewhere", "elsewhere" // a server names runs after folders
	if w := compare(t, a, moved, Options{}).Warnings; !strings.HasPrefix(w[0], "Both sides are "+
		"copies of one run") {
		t.Errorf("the first warning of a copy is %q", w[0])
	}
	soon := runOf("b", noon.Add(10*time.Second), rows{"x": slower})
	if w := compare(t, a, soon, Options{}).Warnings; !strings.HasPrefix(w[0], "These runs are "+
		"10 seconds apart") {
		t.Errorf("the first warning is %q", w[0])
	}
	if !slices.Equal(c.Reproduce, []string{"prony run a", "prony run b"}) {
		t.Errorf("to reproduce: %q", c.Reproduce)
	}
}

// TestTheSameArtifactRunInAnotherWay checks that one artifact in two modes, or with other
// arguments, is two subjects.
func TestTheSameArtifactRunInAnotherWay(t *testing.T) {
	check := func(want bool, change func(*record.Record)) {
		t.Helper()
		a, b := runOf("a", noon, rows{"x": drifting}), runOf("b", noon, rows{"x": drifting})
		for i := range b.Records {
			change(b.Records[i])
		}
		c := compare(t, at(a, "x"), at(b, "x"), Options{})
		const noise = "the same artifact, so differences come from noise"
		if got := strings.Contains(strings.Join(c.Warnings, "\n"), noise); got != want {
			t.Errorf("warnings %q", c.Warnings)
		}
	}
	check(true, func(*record.Record) {})
	check(false, func(r *record.Record) { r.Provenance.ServiceArgs = []string{"app", "-fast"} })
	check(false, func(r *record.Record) { r.Target.Mode = "virtual" })
}

// TestControlTakesTheMachineOut checks a control in both runs. In the second run the machine is
// slower by 20 % and the target by another 5 %: the ratio is 0.76, and 0.95 divided by the
// control's.
func TestControlTakesTheMachineOut(t *testing.T) {
	a := runOf("a", noon, rows{"x": scaled(drifting, 2, 2.002), "same": drifting})
	b := runOf("b", noon.Add(time.Hour), rows{"x": scaled(drifting, 1.52, 1.5215),
		"same": scaled(drifting, 0.8)})
	plain := compare(t, at(a, "x"), at(b, "x"), Options{})
	r := rowOf(t, plain.Pairs[0], "peak", "throughput")
	if math.Abs(r.Ratio.Center-0.76) > 0.001 || r.Outcome == Silent {
		t.Errorf("without control the ratio is %v", r.Ratio.Center)
	}
	has(t, "warnings", strings.Join(plain.Warnings, "\n"), "the same artifact of same.")
	c := compare(t, at(a, "x"), at(b, "x"), Options{Control: "same"})
	r = rowOf(t, c.Pairs[0], "peak", "throughput")
	if math.Abs(r.Ratio.Center-0.95) > 0.001 || r.Outcome != Worse {
		t.Errorf("with control it is %v, %s", r.Ratio.Center, r.Outcome)
	}
	near(t, "the control's own", r.Control.Center, 0.8)
	if all := compare(t, a, b, Options{Control: "same"}); len(all.Pairs) != 1 {
		t.Errorf("the control is compared with itself: %d pairs", len(all.Pairs))
	}
	check := func(words string, from, to Side, control string) {
		_, err := Compare(from, to, Options{Control: control})
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("error is %v, want %q", err, words)
		}
	}
	check("its own change", a, rebuilt(b, "same", "of something else"), "same")
	check("already", at(a, "x"), at(a, "same"), "same")
	check(`"nobody" in results/a: no row has this name; the rows are same, x`, a, b, "nobody")
}

func rebuilt(s Side, target, hash string) Side {
	for _, r := range s.Records {
		if r.Target.Name == target {
			r.Artifact.SHA256 = hash
		}
	}
	return s
}

func TestUnlikeRunsAreRefused(t *testing.T) {
	check := func(want string, change func(*record.Record)) {
		t.Run(want, func(t *testing.T) {
			a, b := runOf("a", noon, rows{"x": drifting}), runOf("b", noon, rows{"x": drifting})
			for _, r := range b.Records {
				change(r)
			}
			a, b = at(a, "x"), at(b, table.RowName(b.Records[0].Target))
			_, err := Compare(a, b, Options{Refused: "hint"})
			var unlike *UnlikeError
			if !errors.As(err, &unlike) || len(unlike.Differences) != 1 ||
				unlike.Differences[0].String() != want ||
				!strings.HasSuffix(err.Error(), "\nhint") {
				t.Fatalf("error is %v, want %q", err, want)
			}
			c := compare(t, a, b, Options{Unlike: true})
			if len(c.Mismatches) != 1 || c.ConfigHash != "" || c.Banner() == "" {
				t.Errorf("unlike is %v, the method %q", c.Mismatches, c.ConfigHash)
			}
			for name, printer := range printers {
				var out strings.Builder
				if err := printer(&out, c); err != nil {
					t.Fatal(err)
				}
				d := unlike.Differences[0]
				has(t, name, out.String(), d.Aspect, format.Markdown(d.A), format.Markdown(d.B))
			}
		})
	}
	check("contract: hello against http", func(r *record.Record) { r.Contract = "http" })
	check("driver: prony against wrk", func(r *record.Record) { r.Target.Driver = "wrk" })
	check("limits asked: 1 CPUs, 1.0 GiB, 1 cores, load on 1 against 2 CPUs, 1.0 GiB, 1 cores, "+
		"load on 1", func(r *record.Record) { r.Limits.CPUs = 2 })
	check("limits in force: cpuset (cgroup v1) against none",
		func(r *record.Record) { r.Limits.InForce = nil })
	check("processor: EPYC against Xeon", func(r *record.Record) { r.Provenance.CPUModel = "Xeon" })
	check("cores: 2 against 4", func(r *record.Record) { r.Provenance.Cores = 4 })
	check("governor: none against powersave",
		func(r *record.Record) { r.Provenance.Governor = "powersave" })
	check("idle cores: halt against poll",
		func(r *record.Record) { r.Provenance.Idle = record.IdlePolls })
	check("hypervisor: false against true",
		func(r *record.Record) { r.Provenance.Hypervisor = true })
	check("kernel: Linux 6.18 against Linux 6.19",
		func(r *record.Record) { r.Provenance.Kernel = "6.19.0" })
	check("prony: v0.4 against v0.5", func(r *record.Record) { r.Provenance.Prony = "v0.5.0" })
	check("peak connections: 64 against 128",
		func(r *record.Record) { r.Loads[0].Connections = 128 })
	check("peak threads: 1 against 2", func(r *record.Record) { r.Loads[0].Threads = 2 })
	check("peak window: 10 s against 2 s", func(r *record.Record) { r.Loads[0].WindowNs = 2e9 })
	check("peak engine: epoll against uring",
		func(r *record.Record) { r.Loads[0].Generator.Engine = "uring" })
	check("peak generator: prony against wrk 4",
		func(r *record.Record) { r.Loads[0].Driver = "wrk 4" })
	check("half arrivals: poisson against constant",
		func(r *record.Record) { r.Loads[1].Arrivals = "constant" })
	check("half rate: 50% of peak against 70% of peak",
		func(r *record.Record) { r.Loads[1].RateOf = "70% of peak" })
	check("half rate: 50% of peak against 100/s",
		func(r *record.Record) { r.Loads[1].RateOf, r.Loads[1].RatePerS = "", 100 })
	check("half pacing: precise against frugal",
		func(r *record.Record) { r.Loads[1].Generator.Pacing = "frugal: select" })
	check("half model: open against not offered",
		func(r *record.Record) { r.Loads = r.Loads[:1] })
}

// printers has all formats of a comparison; JSON and CSV have their own escapes.
var printers = map[string]func(w *strings.Builder, c Comparison) error{
	"text":     func(w *strings.Builder, c Comparison) error { return Text(w, c) },
	"markdown": func(w *strings.Builder, c Comparison) error { return Markdown(w, c) },
	"json":     func(w *strings.Builder, c Comparison) error { return JSON(w, c) },
	"csv":      func(w *strings.Builder, c Comparison) error { return CSV(w, c) },
}

// TestRequestsBindWhereTheyAreKnown checks that requests are binding, except for an old run that
// did not record them.
func TestRequestsBindWhereTheyAreKnown(t *testing.T) {
	a, b := runOf("a", noon, rows{"x": drifting}), runOf("b", noon, rows{"x": drifting})
	b.Head.Requests = map[string][]string{"read": {"POST /hello"}}
	if _, err := Compare(a, b, Options{}); err == nil ||
		!strings.Contains(err.Error(), "requests: GET /hello against POST /hello") {
		t.Errorf("error is %v", err)
	}
	b.Head.Requests = nil
	c := compare(t, a, b, Options{})
	if len(c.Differences) != 1 ||
		c.Differences[0].String() != "requests: GET /hello against unknown" {
		t.Errorf("told is %v", c.Differences)
	}
}

// TestWhatIsNoPartOfTheMethod checks that properties that change between runs, or are compared, are
// not binding.
func TestWhatIsNoPartOfTheMethod(t *testing.T) {
	check := func(told int, change func(*record.Record)) {
		t.Helper()
		a, b := runOf("a", noon, rows{"x": drifting}), runOf("b", noon, rows{"x": drifting})
		for _, r := range b.Records {
			change(r)
		}
		c := compare(t, a, b, Options{})
		if len(c.Differences) != told {
			t.Errorf("told is %v, want %d", c.Differences, told)
		}
	}
	check(0, func(r *record.Record) { r.Provenance.Seed, r.Provenance.PlanHash = 7, "x" })
	check(0, func(r *record.Record) { r.Provenance.Commit, r.Provenance.Dirty = "beef", true })
	check(0, func(r *record.Record) { r.Artifact.SHA256, r.Target.Version = "x", "2" })
	check(0, func(r *record.Record) { r.Limits.ServiceCores = []int{0} })
	check(0, func(r *record.Record) {
		r.Limits.InForce = []record.Limit{
			{Kind: record.LimitCores, By: record.ByCgroup1, Cores: []int{0}}}
	})
	check(0, func(r *record.Record) { r.Loads[1].Generator.Pacing = "precise: until 90µs before" })
	check(0, func(r *record.Record) { r.Loads[1].RatePerS *= 2 }) // a result
	check(1, func(r *record.Record) { r.Provenance.Kernel = "6.18.45" })
	check(1, func(r *record.Record) { r.Provenance.Prony = "v0.4.2" })
	check(1, func(r *record.Record) { r.Provenance.SuiteHash = "x" })
}

func TestInvalidTrialsAreLeftOutAloud(t *testing.T) {
	s := runOf("r", noon, rows{"new": slower, "old": drifting})
	for _, r := range s.Records {
		if r.Block == 3 && r.Target.Name == "new" {
			r.Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{{
				Rule: "errors", Grade: record.Invalid, Text: &record.Words{Observed: "2 %",
					Limit: "0.1 %"}}}}
		}
		if r.Block == 5 && r.Target.Name == "old" {
			r.Outcome, r.Loads = record.Failed, nil
			r.Failure = &record.Failure{Step: "ready", Error: "no answer\nin 30 s"}
		}
	}
	c := compare(t, at(s, "old"), at(s, "new"), Options{})
	p := c.Pairs[0]
	r := rowOf(t, p, "peak", "throughput")
	if r.Ratio.N != 6 || p.B.Counts.Invalid != 1 || p.A.Counts.Failed != 1 || p.A.Blocks != 7 {
		t.Errorf("%d pairs, counts %v and %v, %d blocks", r.Ratio.N, p.A.Counts, p.B.Counts,
			p.A.Blocks)
	}
	has(t, "warnings", strings.Join(c.Warnings, "\n"), "b5-old failed: no answer.",
		"b3-new is INVALID: errors (2 %, limit 0.1 %)")
}

// TestComparesWithAStudy checks that several comparisons of one run may share its analysis, which
// has the options of the report.
func TestComparesWithAStudy(t *testing.T) {
	run := runOf("r", noon, rows{"x": slower, "y": drifting})
	alone := compare(t, at(run, "x"), at(run, "y"), Options{})
	study := table.Analyze(run.Records, table.Options{Baseline: "y", Notes: []string{"a note"}})
	run.Study = &study
	shared := compare(t, at(run, "x"), at(run, "y"), Options{})
	if a, b := sprint(t, alone), sprint(t, shared); a != b {
		t.Errorf("with a study of the run the comparison is\n%s\nand without\n%s", b, a)
	}
	other := Options{Confidence: 0.99}
	if c := compare(t, at(run, "x"), at(run, "y"), other); c.Confidence != 0.99 ||
		sprint(t, c) == sprint(t, shared) {
		t.Error("a study of another confidence is taken")
	}
}

// sprint returns a comparison as JSON.
func sprint(t *testing.T, c Comparison) string {
	t.Helper()
	var b strings.Builder
	if err := JSON(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWhichRowsStandAgainstEachOther(t *testing.T) {
	all := runOf("r", noon, rows{"x": slower, "x@base": drifting, "y": slower, "y@base": drifting})
	other := runOf("o", noon, rows{"x": slower, "z": slower})
	aa := runOf("aa", noon, rows{"x": drifting})
	for _, r := range runOf("aa", noon, rows{"x": slower}).Records {
		r.Target.Arm = "b"
		aa.Records = append(aa.Records, r)
	}
	for _, r := range aa.Records[:len(drifting)] {
		r.Target.Arm = "a"
	}
	images := runOf("i", noon, rows{"x": slower, "y": drifting})
	for _, r := range images.Records {
		r.Target.Launcher = "docker"
	}
	several := runOf("s", noon, rows{"x": slower, "y": drifting})
	several.Records = append(several.Records, images.Records...)
	check := func(want string, a, b Side) {
		t.Helper()
		c, err := Compare(a, b, Options{Unlike: true})
		var got []string
		for _, p := range c.Pairs {
			got = append(got, p.A.Target+">"+p.B.Target)
		}
		slices.Sort(got)
		got = append(got, c.Missing...)
		if err != nil {
			got = []string{err.Error()}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	}
	check("x@base>x y@base>y", all, all)
	check("x>y", at(all, "x"), at(all, "y"))
	check("x>x z is only in B x@base is only in A y@base is only in A y is only in A", all, other)
	check("y>z", at(all, "y"), at(other, "z"))
	check("x>x", at(all, "x"), other)
	check("x>x", all, at(other, "x"))
	check("x (a)>x (b)", aa, aa)
	check("x in docker>y in docker", at(images, "x"), at(images, "y"))
	check("x in docker>y in docker", at(images, "x in docker"), at(images, "y"))
	check("x>x in docker", at(several, "x"), at(several, "x in docker"))
	check(`find "q" in results/r: no row has this name; the rows are x, x@base, y, y@base`, at(all,
		"q"), other)
	check("compare rows of results/o: name two rows, such as results/o:x results/o:z", other, other)
	check("compare results/aa with results/o: no row is in both runs; name one row of each, such "+
		"as results/aa:x (a) results/o:x", aa, other)
}

func TestHolm(t *testing.T) {
	var rows []*Row
	for _, p := range []float64{0.04, 0.01, 0.03} {
		rows = append(rows, &Row{Ratio: &stats.Ratio{P: p}, share: 1. / 3})
	}
	mine := slices.Clone(rows)
	correct(rows)
	// 0.01*3 = 0.03; 0.03*2 = 0.06; 0.04*1 = 0.04, but not below 0.06.
	near(t, "0.04", mine[0].PHolm, 0.06)
	near(t, "0.01", mine[1].PHolm, 0.03)
	near(t, "0.03", mine[2].PHolm, 0.06)
}

// TestAskedFirst checks that the primary metric gets four fifths of the error rate, and that the
// others share the rest. The first requested metric with a value is the primary one.
func TestAskedFirst(t *testing.T) {
	few := []float64{10000, 10000, 10000, 10000}
	s := runOf("r", noon, rows{"old": few, "new": scaled(few, 0.94, 0.96, 0.95, 0.975)})
	metrics := []string{"peak/throughput", "peak/cpu_per_request", "half/p99"}
	look := func(first ...string) (Comparison, Row) {
		c := compare(t, at(s, "old"), at(s, "new"), Options{Metrics: metrics, First: first})
		return c, rowOf(t, c.Pairs[0], "peak", "throughput")
	}
	c, r := look()
	if r.share != 1./float64(c.Tests) || r.requested {
		t.Errorf("unasked it has %v of the error of %d", r.share, c.Tests)
	}
	asked, first := look("peak/nothing", "peak/throughput", "half/p99")
	if asked.Tests != c.Tests || c.Tests != 3 || first.share != 0.8 || !first.requested {
		t.Errorf("asked for first it has %v of the error of %d", first.share, asked.Tests)
	}
	if _, last := look("half/p99"); last.share != 0.1 || last.Detectable <= r.Detectable ||
		first.Detectable >= r.Detectable {
		t.Errorf("asked for last it has %v; it sees %v, %v, and first %v", last.share,
			last.Detectable, r.Detectable, first.Detectable)
	}
	// 0.03/0.8 = 0.0375; then 0.2 is left for two of 0.1 each: 0.01*2 and 0.5*1. But 0.01 weighs
	// 0.1, so that it comes after 0.03, and 0.02 is not below 0.0375.
	rows := []*Row{{share: 0.1}, {share: 0.8}, {share: 0.1}}
	for i, p := range []float64{0.01, 0.03, 0.5} {
		rows[i].Ratio = &stats.Ratio{P: p}
	}
	mine := slices.Clone(rows)
	correct(rows)
	near(t, "the asked one's 0.03", mine[1].PHolm, 0.0375)
	near(t, "another's 0.01", mine[0].PHolm, 0.0375)
	near(t, "another's 0.5", mine[2].PHolm, 0.5)
}

// TestRowsCostEachOtherPower checks that a p of 0.03 is significant for one row but not among many.
func TestRowsCostEachOtherPower(t *testing.T) {
	few := []float64{10000, 10000, 10000, 10000}
	s := runOf("r", noon, rows{"old": few, "new": scaled(few, 0.94, 0.96, 0.95, 0.985)})
	one := compare(t, at(s, "old"), at(s, "new"), Options{Metrics: []string{"peak/throughput"}})
	many := compare(t, at(s, "old"), at(s, "new"), Options{})
	a, b := one.Pairs[0].Rows, rowOf(t, many.Pairs[0], "peak", "throughput")
	if len(a) != 1 || one.Tests != 1 || a[0].Outcome != Worse || b.Outcome != Indistinguishable {
		t.Errorf("%d rows, %d tests: %s at p %v; of %d it is %s at %v", len(a), one.Tests,
			a[0].Outcome, a[0].PHolm, many.Tests, b.Outcome, b.PHolm)
	}
	const chance = "not significant after correcting for multiple metrics"
	same := compare(t, at(runOf("r", noon, rows{"old": few, "new": scaled(few, 1.02, 0.98, 1, 1)}),
		"old"), at(runOf("r", noon, rows{"old": few, "new": scaled(few, 1.02, 0.98, 1, 1)}), "new"),
		Options{Metrics: []string{"peak/throughput"}}).Pairs[0].Rows[0]
	if b.Text != chance || same.Text == chance || same.Outcome != Indistinguishable {
		t.Errorf("among many it %s; what is alike %s", b.Text, same.Text)
	}
	if !(b.Detectable > a[0].Detectable) {
		t.Errorf("among many it sees %v, alone %v", b.Detectable, a[0].Detectable)
	}
}

func TestRatesThatDifferAreTold(t *testing.T) {
	s := runOf("r", noon, rows{"new": slower, "old": drifting})
	c := compare(t, at(s, "old"), at(s, "new"), Options{})
	// Medians of half the rates: (10500+11000)/4 = 5375; of the slower ones (10080+10340)/4 = 5105.
	has(t, "warnings", strings.Join(c.Warnings, "\n"),
		"half: old and new were each offered 50 % of peak, which is 5.38k/s and 5.11k/s")
	peak := compare(t, at(s, "old"), at(s, "new"), Options{Metrics: []string{"peak/throughput"}})
	if strings.Contains(strings.Join(peak.Warnings, "\n"), "were each offered") {
		t.Errorf("warned of a load that is not shown: %q", peak.Warnings)
	}
	same := compare(t, s, runOf("b", noon, rows{"old": drifting}), Options{})
	if strings.Contains(strings.Join(same.Warnings, "\n"), "were each offered") {
		t.Error("equal rates are told")
	}
}

// TestNotesAreShort checks that each reason for missing numbers appears once, and that tools appear
// only if one service was built twice.
func TestNotesAreShort(t *testing.T) {
	s := runOf("r", noon, rows{"new": slower, "old": drifting})
	for _, r := range s.Records {
		r.Provenance.Tools = map[string]string{"go": "1.26"}
		r.Target.Language = "Go"
		if r.Target.Name == "new" {
			r.Warmup.Steady, r.Start.ReadyNs = false, 0
			r.Provenance.Tools["go"] = "1.27"
		}
	}
	c := compare(t, at(s, "old"), at(s, "new"), Options{})
	var out strings.Builder
	if err := Text(&out, c); err != nil {
		t.Fatal(err)
	}
	has(t, "text", out.String(), "  both have no time to peak, warm-up cost: in 8 of 8",
		"  B has no time to ready: in 8 of 8 trials the start was not timed\n",
		"  B has no time to steady: in 8 of 8")
	if len(c.Differences) > 0 {
		t.Errorf("told is %v", c.Differences)
	}
	for _, r := range s.Records {
		r.Target.Service = "one"
	}
	c = compare(t, at(s, "old"), at(s, "new"), Options{})
	if len(c.Differences) != 1 || c.Differences[0].String() != "tools: go 1.26 against go 1.27" {
		t.Errorf("told is %v", c.Differences)
	}
}

func TestOneBlockSaysNothing(t *testing.T) {
	s := runOf("r", noon, rows{"old": {10000}, "new": {5000}})
	c := compare(t, at(s, "old"), at(s, "new"), Options{})
	r := rowOf(t, c.Pairs[0], "peak", "throughput")
	if r.Outcome != Silent || r.Text != "needs n >= 2" || c.Tests != 0 || !math.IsNaN(r.PHolm) {
		t.Errorf("outcome %s %q, %d tests, p %v", r.Outcome, r.Text, c.Tests, r.PHolm)
	}
	near(t, "the change", r.Change(), -0.5)
}
