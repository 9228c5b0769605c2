package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/observe/profile"
	"prony.example/record"
)

// addProfiles gives each record of a run a CPU profile: 100 samples of 10 ms, of which the target's
// own handler has 30, or 60 if the target's name contains the word virtual.
func addProfiles(t *testing.T, run string) {
	t.Helper()
	_, records, bad, err := record.Read(run)
	if err != nil || len(bad) > 0 || len(records) == 0 {
		t.Fatal(len(records), bad, err)
	}
	if err := os.MkdirAll(filepath.Join(run, "profiles"), 0o755); err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	for _, r := range records {
		own := int64(30)
		if strings.Contains(r.Target.Name, "virtual") {
			own = 60
		}
		stacks := profile.NewStacks(profile.CPU)
		stacks.Add([]string{"main", "serve", "handle"}, own, own*10e6)
		stacks.Add([]string{"main", "serve", "read"}, 100-own, (100-own)*10e6)
		p := stacks.Profile()
		profile.Describe(p, "a test's", "event: none")
		file := "profiles/" + r.Trial + ".cpu.pb.gz"
		out, err := os.Create(filepath.Join(run, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Write(out); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		r.Profiles = []record.Profile{
			{Kind: profile.CPU, Tool: "test 1", Load: "peak", File: file, Samples: 100,
				DurationNs: 2e9},
			{Kind: profile.Alloc, Tool: "test 1", Load: "peak", Failed: "no such event"},
		}
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	if err := os.WriteFile(filepath.Join(run, "trials.ndjson"), lines.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// profiled is a run of two targets with two blocks each, and profiles.
func profiled(t *testing.T) (run string, records []*record.Record) {
	t.Helper()
	root := checkout(t)
	run = filepath.Join(root, "results", "RUN")
	if _, stderr, exit := say(t, mock{}, "run", "--root", root, "--out", run, "--targets",
		manyTargets, "--blocks", "3"); exit != cli.Fine {
		t.Fatal(stderr)
	}
	addProfiles(t, run)
	_, records, _, err := record.Read(run)
	if err != nil {
		t.Fatal(err)
	}
	return run, records
}

const (
	platform = "java-jdk/platform"
	virtual  = "java-jdk/virtual"
)

func TestProfile(t *testing.T) {
	testsets.Whole(t, "profiles")
	run, records := profiled(t)
	blocks := 0
	var trial string
	for _, r := range records {
		if r.Target.Name == virtual {
			blocks++
			trial = r.Trial
		}
	}
	if blocks < 2 {
		t.Fatalf("%s has %d trials", virtual, blocks)
	}
	check := func(exit int, want []string, args ...string) {
		t.Helper()
		stdout, stderr, got := say(t, mock{}, append([]string{"profile", run}, args...)...)
		if got != exit {
			t.Errorf("%q: exit %d, want %d: %s", args, got, exit, stderr)
		}
		has(t, strings.Join(args, " "), strings.Join(strings.Fields(stdout+stderr), " "), want...)
	}
	// The blocks of a target are added up: 60 samples of 10 ms in each of, for example, 5 are 3 s.
	check(cli.Fine, []string{"java-jdk/virtual, cpu:", "by test 1", "60.0%", "handle",
		"100.0% serve"}, "--target", virtual)
	check(cli.Fine, []string{"100 samples, 1.00 s in total, by test 1, in windows of 2s",
		"event: none",
		"600 ms 60.0% 600 ms 60.0% handle"}, "--trial", trial)
	// 60 % here, 30 % there: +30 points for the handler, and -30 points for read.
	check(cli.Fine, []string{"against java-jdk/platform, cpu:", "+30.0p",
		"60.0% 30.0% +30.0p handle", "-30.0p", "40.0% 70.0% -30.0p read"},
		"--target", virtual, "--diff", platform)
	check(cli.Fine, []string{"-30.0p"}, "--target", platform, "--diff", run+":"+virtual)
	check(cli.Fine, []string{"+0.0p"}, "--target", platform, "--diff", run)
	check(cli.Fine, []string{"+30.0p"}, "--trial", trial, "--diff", platform)
	check(cli.Fine, []string{"-30.0p"}, "--target", platform, "--diff", trial)
	check(cli.Misused, []string{"choose one with --target", platform, virtual})
	check(cli.Misused, []string{`--kind "heat": there are cpu, alloc, lock, offcpu`}, "--kind",
		"heat")
	check(cli.Misused, []string{"the file name must end with"}, "-o", "x.png")
	check(cli.Misused, []string{"with --diff, only .html"}, "-o", "x.folded", "--diff", virtual)
	check(cli.Misused, []string{"--top must be at least 0, got -1"}, "--top", "-1")
	check(cli.Failed, []string{"has no alloc profile of java-jdk/virtual", "profiling failed",
		"no such event"}, "--target", virtual, "--kind", "alloc")
	check(cli.Failed, []string{"has no lock profile; the run has these profiles:",
		"java-jdk/virtual alloc"},
		"--kind", "lock")
	check(cli.Failed, []string{"--diff gone: ", "has no cpu profile of gone"}, "--target", virtual,
		"--diff", "gone")
}

func TestProfileFiles(t *testing.T) {
	run, _ := profiled(t)
	dir := t.TempDir()
	write := func(name string, args ...string) []byte {
		t.Helper()
		file := filepath.Join(dir, name)
		args = append([]string{"profile", run, "--target", virtual, "-o", file}, args...)
		if _, stderr, exit := say(t, mock{}, args...); exit != cli.Fine {
			t.Fatalf("%q: exit %d: %s", args, exit, stderr)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	p, err := pprof.ParseData(write("a.pb.gz"))
	if err != nil || profile.Top(p, 1)[0].Name != "handle" {
		t.Errorf("pprof: %v, error %v", p, err)
	}
	has(t, "folded", string(write("a.folded")), "main;serve;handle ", "main;serve;read ")
	has(t, "html", string(write("a.html")), "<title>java-jdk/virtual, cpu · Prony</title>",
		`"handle"`, "test 1", `class="figure flame"`)
	has(t, "html of a difference", string(write("d.html", "--diff", platform)), `"against":true`)
	var said struct {
		Top     []profile.Row
		Changes []profile.Change
		Flame   profile.Frame
	}
	if err := json.Unmarshal(write("d.json", "--diff", platform, "--top", "1"), &said); err != nil {
		t.Fatal(err)
	}
	if len(said.Top) != 1 || len(said.Changes) != 1 || said.Flame.Name != "all" {
		t.Errorf("json: %+v", said)
	}
}

// A run without profiles reports how to take some; a deleted file is reported.
func TestProfileOfNothing(t *testing.T) {
	root := checkout(t)
	run := filepath.Join(root, "results", "RUN")
	if _, stderr, exit := say(t, mock{}, "run", "--root", root, "--out", run, "--targets",
		manyTargets, "--blocks", "3"); exit != cli.Fine {
		t.Fatal(stderr)
	}
	_, stderr, exit := say(t, mock{}, "profile", run)
	if exit != cli.Failed {
		t.Errorf("exit %d", exit)
	}
	has(t, "a run without", stderr, "has no cpu profile", "prony run --profile cpu")
	addProfiles(t, run)
	if err := os.RemoveAll(filepath.Join(run, "profiles")); err != nil {
		t.Fatal(err)
	}
	_, stderr, exit = say(t, mock{}, "profile", run, "--target", virtual)
	if exit != cli.Failed {
		t.Errorf("exit %d", exit)
	}
	has(t, "a run whose files are gone", stderr, "may have been deleted")
}
