package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/trial"
	"prony.example/record"
)

// All targets of the mock world are equally fast, so that five blocks decide that no difference
// matters.
func TestRunForATime(t *testing.T) {
	testsets.Whole(t, "whole runs")
	root := checkout(t)
	run := func(most string, more ...string) (string, string, *record.Schedule, []*record.Record) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "r")
		out, said, exit := say(t, mock{}, append([]string{"run", "--root", root, "--out", dir,
			"--for", most}, more...)...)
		if exit != cli.Fine && exit != cli.Invalid {
			t.Fatalf("exit %d: %s", exit, said)
		}
		s, err := record.ReadSchedule(dir)
		if err != nil || s == nil {
			t.Fatalf("%v, %v: %s", s, err, said)
		}
		_, records, bad, err := record.Read(dir)
		if err != nil || len(bad) > 0 {
			t.Fatal(err, bad)
		}
		return out, said, s, records
	}
	out, said, s, records := run("10m", "--targets", manyTargets)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	has(t, "the last line", lines[len(lines)-1], "all comparisons are decided; another 5 min "+
		"would allow ",
		" trials of each of ")
	has(t, "the report", out, "--for 10m0s")
	has(t, "what it said", said, "trials each for 10m0s, seed 42")
	if s.Ended != "decided" || len(s.Looks) != 5 || len(s.Looks[4].Decided) == 0 ||
		s.Looks[4].Open != 0 || s.ForNs != 600e9 || s.SpentNs > s.ForNs {
		t.Errorf("%+v", s)
	}
	if last := records[len(records)-1]; last.Block != 5 {
		t.Errorf("%d trials to block %d", len(records), last.Block)
	}

	// A time with room for only some blocks is not exceeded.
	out, _, s, records = run("80s", "--targets", manyTargets)
	if s.Ended != "time" || s.SpentNs > s.ForNs || records[len(records)-1].Block < 2 ||
		s.Next.Open == 0 {
		t.Errorf("%+v", s)
	}
	has(t, "the last line", out, " open; another 5 min would allow ")

	// A single target has no comparison: the whole time is for its blocks.
	_, said, s, records = run("1m", "--targets", "go-nethttp")
	if s.Ended != "time" || len(records) < 4 {
		t.Errorf("%d trials, %+v", len(records), s)
	}
	if strings.Contains(said, "is enough for about") {
		t.Error(said)
	}
	_, said, _, _ = run("14s", "--targets", "go-nethttp")
	has(t, "what it said", said, "14s is enough for about ")
}

func TestRunForRefuses(t *testing.T) {
	root := checkout(t)
	check := func(want string, args ...string) {
		t.Helper()
		_, said, exit := say(t, mock{}, append(args, "--root", root)...)
		if exit != cli.Misused || !strings.Contains(said, want) {
			t.Errorf("%v: exit %d, %q, want %q", args, exit, said, want)
		}
	}
	check("exclude each other", "run", "--for", "5m", "--blocks", "3")
	check("must be greater than 0", "run", "--for", "0s")
	check("--for cannot be combined with --aa", "plan", "--for", "5m", "--aa")
}

// A plan for a time lists only its first start, because later ones depend on results.
func TestPlanForATime(t *testing.T) {
	out, _, exit := say(t, mock{}, "plan", "--root", checkout(t), "--for", "5m", "--targets",
		"go-nethttp,rust-axum")
	has(t, "the plan", out, "starts of 2 trials each for 5m0s · about 5 min",
		"It does not begin a start")
	rows := strings.Count(out, "go-nethttp ") + strings.Count(out, "rust-axum ")
	if exit != cli.Fine || rows != 2 || strings.Contains(out, "is enough for about") {
		t.Errorf("exit %d, %d rows:\n%s", exit, rows, out)
	}
	out, _, _ = say(t, mock{}, "plan", "--root", checkout(t), "--for", "20s", "--targets",
		"go-nethttp,rust-axum")
	has(t, "a plan for a short time", out, "20s is enough for about 1 whole start, too few for ")
}

// The prediction for the next minutes.
func TestBought(t *testing.T) {
	check := func(n record.Next, want string) {
		t.Helper()
		n.ForNs, n.Targets = 300e9, []string{"a", "b"}
		if got := bought(&n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check(record.Next{Blocks: 6, Open: 1, Resolves: 0.034, Would: 0.021}, "1 comparison open; "+
		"another 5 min would allow 6 trials of each of a, b and detect differences of 2.1 %; "+
		"now it detects 3.4 %")
	check(record.Next{Blocks: 3, Open: 1, Resolves: 53e12, Would: 0.64}, "1 comparison open; "+
		"another 5 min would allow 3 trials of each of a, b and detect differences of 64 %; "+
		"now it detects only large ones")
	check(record.Next{Blocks: 3, Open: 1, Resolves: 53e12, Would: 2.5}, "1 comparison open; "+
		"another 5 min would allow 3 trials of each of a, b")
	check(record.Next{Blocks: 1}, "all comparisons are decided; another 5 min would allow 1 "+
		"trial of each of a, b")
	check(record.Next{BlockNs: 420e9, Open: 2}, "2 comparisons open; another 5 min would allow "+
		"no trial of a, b, which take 7 min together")
}

// A plan without work is refused; without the flag, the suite's number applies.
func TestPlanOfNothing(t *testing.T) {
	for _, flag := range [][]string{{"--blocks", "0"}, {"--measure", "0s"}, {"--warmup", "0s"}} {
		_, said, exit := say(t, mock{}, append([]string{"plan", "--root", checkout(t)}, flag...)...)
		has(t, "the error", said, flag[0]+" must be greater than 0, got "+flag[1])
		if exit != cli.Misused {
			t.Errorf("%v: exit %d", flag, exit)
		}
	}
}

// A resumed run continues counting, and estimates the remaining time by its own trials.
func TestResumedProgressCountsOn(t *testing.T) {
	var out strings.Builder
	s := &progressLine{w: &out, total: 6}
	s.Trial(trial.Event{Step: "resumed", Before: 4})
	s.Trial(trial.Event{Trial: "b2-05-a", Step: "done", Record: &record.Record{Trial: "b2-05-a"}})
	has(t, "the line", out.String(), "5/6 b2-05-a")
	s.began, s.endedAt = 1, 1+int64(time.Minute)
	if _, left := s.course(1 + int64(time.Minute)); left != time.Minute {
		t.Errorf("%v are left, want 1m: one of two trials took one", left)
	}
}

// The user's labels are in the run's head and in every report, and are limited in size.
func TestLabels(t *testing.T) {
	root, dir := checkout(t), filepath.Join(t.TempDir(), "r")
	out, said, exit := say(t, mock{}, "run", "--root", root, "--targets", "go-nethttp",
		"--blocks", "2", "--label", "pr=7", "--label", "branch=main", "--out", dir)
	has(t, "the report", out, "Labels: branch=main, pr=7.")
	head, _, _, err := record.Read(dir)
	if exit != cli.Fine || err != nil || head.Labels["pr"] != "7" {
		t.Errorf("exit %d, %v, %v\n%s", exit, head.Labels, err, said)
	}
	check := func(want string, label ...string) {
		t.Helper()
		_, said, exit := say(t, mock{}, append([]string{"run", "--root", root, "--label"},
			label...)...)
		if exit != cli.Misused || !strings.Contains(said, want) {
			t.Errorf("%.20q: exit %d, %q", label, exit, said)
		}
	}
	check("must be formatted as key=value", "pr")
	check("bytes, but at most 4096 are allowed", "x="+strings.Repeat("y", 5000))
}
