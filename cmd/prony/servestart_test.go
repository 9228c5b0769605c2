package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/observe/host"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// A run started in a browser is one of the real program. It has all cores, outlives the server that
// started it, is found by the next one, excludes other runs, and ends on request.
func TestServeStarts(t *testing.T) {
	testsets.Once(t, "a run begun from afar", testsets.Needs{Files: []string{"services", "suites"}})
	d := serving(t)
	root := filepath.Dir(d.dir)
	t.Cleanup(d.stop)
	const form = `{"targets":["go-nethttp"],"blocks":20,"measure":"500ms","labels":{"a":"b,c"}}`
	post := func(want int, path, body string) string {
		t.Helper()
		got, _, text := d.ask("POST", "/api/v1"+path, body, "Content-Type", "application/json")
		if got != want {
			t.Fatalf("%s %s: %d %s, want %d", path, body, got, text, want)
		}
		return text
	}
	text := post(200, "/plan", form)
	if !strings.Contains(text, `"--targets=go-nethttp","--blocks=20"`) ||
		!strings.Contains(text, `"trial":"b20-20-go-nethttp"`) ||
		!strings.Contains(text, `"problems":[]`) {
		t.Errorf("the plan is %s", text)
	}
	const wrong = `unknown key \"bloks\"`
	if text := post(200, "/check", `{"yaml":"bloks: 4"}`); !strings.Contains(text, wrong) {
		t.Errorf("an unknown key of a suite is %s, want %s", text, wrong)
	}
	var begun struct{ ID string }
	if err := json.Unmarshal([]byte(post(202, "/runs", form)), &begun); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endRun(t, d.dir, begun.ID) })
	run := "/runs/" + begun.ID
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Wait() // it was killed
	d.start(root)
	entry := func() (e runs.Entry) {
		t.Helper()
		got, _, text := d.ask("GET", "/api/v1"+run, "")
		if err := json.Unmarshal([]byte(text), &e); err != nil || got != 200 {
			t.Fatalf("%d %s", got, text)
		}
		return e
	}
	over := time.Now().Add(3 * time.Minute)
	for e := entry(); e.Trials.Planned-e.Trials.Missing == 0; e = entry() {
		if e.State != runs.Running || time.Now().After(over) {
			_, _, log := d.ask("GET", "/api/v1"+run+"/log", "")
			t.Fatalf("the run is %+v\n%s", e, log)
		}
		time.Sleep(time.Second)
	}
	if text := post(409, "/runs", form); !strings.Contains(text, begun.ID) {
		t.Errorf("two at a time: %s", text)
	}
	post(202, run+"/stop", `{"reason":"that is enough"}`)
	for entry().State == runs.Running {
		if time.Now().After(over) {
			t.Fatal("it goes on")
		}
		time.Sleep(200 * time.Millisecond)
	}
	wasRun(t, filepath.Join(d.dir, begun.ID))
	_, _, events := d.ask("GET", "/api/v1"+run+"/events", "")
	for _, kind := range []string{"begin", "step", "tick", "trial", "end"} {
		if !strings.Contains(events, "\nevent: "+kind+"\n") {
			t.Errorf("no event %s in %.600s", kind, events)
		}
	}
}

// endRun ends a run that a test has left.
func endRun(t *testing.T, dir, id string) {
	t.Helper()
	runList, err := runs.Open(dir, runs.Options{Born: cgroup.Born})
	if err != nil {
		t.Error(err)
		return
	}
	for range 600 {
		lab, err := runList.Lab(id)
		if err != nil || lab == nil {
			return
		}
		_ = syscall.Kill(lab.PID, syscall.SIGINT) // it may just have ended
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("run %s does not end", id)
}

// wasRun checks whether a run was stopped with its reason, and had the same cores as without a
// server.
func wasRun(t *testing.T, dir string) {
	t.Helper()
	head, records, bad, err := record.Read(dir)
	if err != nil || len(bad) > 0 || len(records) == 0 {
		t.Fatalf("%d records, %v, %v", len(records), bad, err)
	}
	if !strings.Contains(strings.Join(head.Notes, " "), "that is enough") ||
		head.Labels["a"] != "b,c" {
		t.Errorf("its head says %q, %v", head.Notes, head.Labels)
	}
	cores, err := host.Cores()
	if err != nil {
		t.Fatal(err)
	}
	layout, err := host.Divide(cores, 1)
	if got := records[0].Limits.ServiceCores; err != nil || !slices.Equal(got, layout.Service) {
		t.Errorf("the service had cores %v of %v, %v", got, cores, err)
	}
}
