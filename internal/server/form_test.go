package server

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/launch/cgroup"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// TestForm checks that a form becomes a command line, in which no value can be interpreted as a
// flag, a list or a path, and that all names must exist.
func TestForm(t *testing.T) {
	suites := []Suite{{Name: "canonical", Argument: "suites/canonical.yaml",
		Scenarios: []string{"hello", "a, b", "x*"}, Loads: []string{"peak", "half"}},
		{Name: "prony.yaml"}, {Name: "broken", Problem: "line 3"}}
	targets := []Target{{Name: "java-jdk/virtual", Service: "java-jdk"}, {Name: "go"}}
	check := func(text, want, problem string) {
		t.Helper()
		f := Form{Suite: "canonical"}
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&f); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		args, problems := f.args(suites, targets)
		if got := strings.Join(args, " | "); problem == "" && got != "run | "+want &&
			got != want || len(problems) > 0 != (problem != "") ||
			!strings.Contains(strings.Join(problems, "; "), problem) {
			t.Errorf("%s: %s, %q; want %s, %s", text, got, problems, want, problem)
		}
	}
	const file = "suites/canonical.yaml"
	check(`{}`, file, "")
	check(`{"suite":"prony.yaml"}`, "run", "")
	check(`{"targets":["java-jdk","go"],"blocks":3,"seed":0,"telemetry":true}`,
		file+" | --targets=java-jdk,go | --blocks=3 | --seed=0 | --telemetry", "")
	check(`{"for":"5m","measure":"10s","limits":{"cpus":2,"memory":"512MiB"}}`,
		file+" | --for=5m | --measure=10s | --cpus=2 | --memory=512MiB", "")
	check(`{"scenarios":["a, b"],"launcher":["process","docker"],"agent":"otel-java/full"}`,
		file+` | --scenarios="a, b" | --launcher=process,docker | --agent=otel-java/full`, "")
	check(`{"labels":{"a":"b,c=d","e":"--out=/"}}`,
		file+` | --label="a=b,c=d" | --label=e=--out=/`, "")
	check(`{"loads":["peak"]}`, file+" | --loads=peak", "")
	check(`{"interleave":"blocks"}`, file+" | --interleave=blocks", "")
	for text, problem := range map[string]string{
		`{"suite":"../../etc/passwd"}`:      "suite: no suite",
		`{"suite":"--out"}`:                 "no suite has the name",
		`{"suite":"broken"}`:                "line 3",
		`{"suite":"suites/canonical.yaml"}`: "no suite has the name",
		`{"targets":["--out=/etc"]}`:        "targets: unknown value",
		`{"targets":["*"]}`:                 "unknown value",
		`{"targets":["go,java-jdk"]}`:       "unknown value",
		`{"scenarios":["x*"]}`:              "unknown value",
		`{"blocks":-1}`:                     "blocks",
		`{"blocks":1,"for":"5m"}`:           "blocks",
		`{"for":"x"}`:                       "not a time",
		`{"measure":"-1s"}`:                 "not a time",
		`{"limits":{"memory":"1 --out=x"}}`: "memory",
		`{"agent":"../x"}`:                  "agent",
		`{"agent":"a b"}`:                   "agent",
		`{"launcher":["a,b"]}`:              "launcher",
		`{"labels":{"a":"x\"y"}}`:           "must not contain quotes",
		`{"labels":{"a":"x\ny"}}`:           "labels",
		`{"loads":["p*"]}`:                  "loads: unknown value",
		`{"interleave":"duet"}`:             "slices or blocks",
	} {
		check(text, "", problem)
	}
}

// TestPlan checks that a plan has the problems of the form and of its run.
func TestPlan(t *testing.T) {
	s := newSite(t, Options{Lab: desk{}})
	for form, want := range map[string]string{`{}`: "", `{"suite":"none"}`: "no suite has the name",
		`{"agent":"bad/full"}`: "it is bad"} {
		answer, text := s.ask(t, "POST", "/plan", form)
		var p Plan
		if err := json.Unmarshal([]byte(text), &p); err != nil || answer.StatusCode != 200 ||
			len(p.Problems) > 0 != (want != "") ||
			!strings.Contains(strings.Join(p.Problems, ""), want) || p.Command[0] != "prony" {
			t.Errorf("%s: %d %s, want %s", form, answer.StatusCode, text, want)
		}
	}
}

// TestBegin checks that a run that begins is listed immediately, and that one that finds the
// machine in use, or fails, has a message and leaves no files.
func TestBegin(t *testing.T) {
	dir := t.TempDir()
	runList, err := runs.Open(dir, runs.Options{Born: cgroup.Born})
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, Options{Lab: desk{}, Runs: runList})
	diaries := filepath.Join(dir, record.Kept, "runs")
	put(t, "", dir, "there", "notes.txt")
	for name, age := range map[string]time.Duration{"old": 2 * time.Hour, "new": time.Minute,
		"there": 2 * time.Hour} {
		put(t, "said\n", diaries, name+".log")
		then := time.Now().Add(-age)
		if err := os.Chtimes(filepath.Join(diaries, name+".log"), then, then); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want int, do, says string) string {
		t.Helper()
		answer, text := s.ask(t, "POST", "/runs", `{"labels":{"do":"`+do+`"}}`)
		if answer.StatusCode != want || !strings.Contains(text, says) {
			t.Errorf("%s: %d %s, want %d %s", do, answer.StatusCode, text, want, says)
		}
		return text
	}
	check(409, "busy", "process 7")
	check(422, "break", "it broke")
	for name, kept := range map[string]bool{"old": false, "new": true, "there": true} {
		if _, err := os.Stat(filepath.Join(diaries, name+".log")); (err == nil) != kept {
			t.Errorf("the diary %s: %v", name, err)
		}
	}
	if x, err := runList.List(t.Context()); err != nil || len(x.Entries) != 0 {
		t.Errorf("runs that did not begin: %+v, %v", x, err)
	}
	var begun struct{ ID string }
	if err := json.Unmarshal([]byte(check(202, "run", `"id"`)), &begun); err != nil {
		t.Fatal(err)
	}
	for range 100 { // the shell writes the line after the file is there
		if lab, err := runList.Lab(begun.ID); err == nil && lab != nil {
			break
		}
		time.Sleep(lookEvery / 10)
	}
	x, err := runList.List(t.Context())
	if err != nil || len(x.Entries) != 1 || x.Entries[0].State != runs.Running {
		t.Errorf("a run under way is %+v, %v", x, err)
	}
	check(409, "run", begun.ID+" is in progress")
	answer, text := s.ask(t, "POST", "/runs/"+begun.ID+"/stop", `{"reason":"x"}`)
	if answer.StatusCode != http.StatusAccepted {
		t.Errorf("stop: %d %s", answer.StatusCode, text)
	}
	_, err = os.Stat(filepath.Join(dir, begun.ID, record.StopFile))
	files, _ := filepath.Glob(filepath.Join(diaries, "*.log"))
	if err != nil || !slices.ContainsFunc(files, func(name string) bool {
		return strings.HasSuffix(name, begun.ID+".log")
	}) {
		t.Errorf("it leaves %q, %v", files, err)
	}
}
