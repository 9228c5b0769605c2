package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// several is a project of one target with several processes. db is started first, and front
// responds only once db has confirmed that it runs.
func several(db string) string {
	return `targets:
  shop:
    command: ./front
    env: {DB: '{db.port}'}
    processes:
      - {name: db, command: '` + db + `', share: 0.5}
      - {name: cache, command: ./app, ready: /, env: {X: '{of its own}{own}'}}
startup: 60s
limits: {cpus: 1, memory: 512M}
warmup: {min: 0s, max: 300ms, connections: 2}
blocks: 1
requests: [{request: GET /}]
loads: [{name: peak, model: closed, connections: 2, measure: 1s}]
`
}

// ofSeveral is a folder with the programs of several.
func ofSeveral(t *testing.T) {
	t.Helper()
	ownFolder(t)
	for name, text := range map[string]string{
		"front": "#!/bin/sh\n[ \"$(cat at)\" = \"$DB\" ] || { echo db is not at $DB; exit 9; }\n" +
			"exec ./app\n",
		"db":    "#!/bin/sh\necho $$ > pid; echo $PORT > at; exec ./app\n",
		"brief": "#!/bin/sh\necho $PORT > at; ./app & \nsleep 1.2; kill $!; exit 3\n",
		"late":  "#!/bin/sh\necho $$ > pid; exec sleep 60\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// ended waits for the end of the process whose id is in a file.
func ended(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("pid")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
}

// A system of a project's file is started in order, each process with its port in the others'
// variables, and is one subject in the record.
func TestProjectMeasuresSystem(t *testing.T) {
	testsets.Once(t, "a project of several processes", testsets.Needs{})
	ofSeveral(t)
	stdout, stderr, exit := inProject(t, several("./db"), "run")
	if exit != cli.Fine && exit != cli.Invalid {
		t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
	}
	runs, err := filepath.Glob(filepath.Join(record.Kept, "run", "*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v, error %v", runs, err)
	}
	r := only(t, runs[0])
	if r.Outcome != record.Measured || len(r.Loads) != 1 || r.Loads[0].Errors.Total() != 0 {
		t.Fatalf("it is %s: %+v, loads %+v", r.Outcome, r.Failure, r.Loads)
	}
	var names []string
	for _, p := range r.Processes {
		names = append(names, p.Name)
	}
	if got := strings.Join(names, " "); got != "db cache shop" {
		t.Errorf("its processes are %s", got)
	}
	ended(t)
}

// Errors of one of several processes are reported with its name, and the others are ended.
func TestProjectRefusesSystem(t *testing.T) {
	testsets.Once(t, "projects of several processes that are refused", testsets.Needs{})
	ofSeveral(t)
	check := func(db, startup string, wants ...string) {
		t.Helper()
		stdout, stderr, exit := inProject(t, strings.Replace(several(db), "60s", startup, 1), "run")
		if exit != cli.Failed || stdout != "" {
			t.Errorf("%s: exit %d\n%s", db, exit, stdout)
		}
		has(t, "what is said", stderr, wants...)
	}
	check("sh -c \"echo bye; exit 3\"", "60s", "start shop: wait for process db: ",
		"the service exited before it was ready", "ended: db: exit status 3", "db: bye")
	check("./late", "3s",
		"start shop: wait for process db: wait until a process listens on 127.0.0.1:",
		"must listen on 127.0.0.1 at the port in $PORT")
	ended(t)
	check("./none", "60s", "process db: program ./none was not found")
	_, stderr, _ := inProject(t, several("./brief"), "run")
	has(t, "what is said", stderr, "db: exit status 3")
}
