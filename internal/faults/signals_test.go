package faults

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony/internal/tests"
)

// longest is how long a line may take until it is under way.
const longest = 15 * time.Second

// What is under way ends in order by whatever signal: within its time, with its code, and with
// nothing left running.
func TestSignalsAtWork(t *testing.T) {
	tests.Once(t, "every verb that works for long, ended by signals", programFiles)
	tests.Cores(t)
	for _, v := range verbs {
		for _, w := range v.works {
			for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
				t.Run(v.name+"/"+sig.String(), func(t *testing.T) { atWork(t, w, sig) })
			}
		}
	}
}

func atWork(t *testing.T, w work, sig syscall.Signal) {
	s := newScene(t)
	s.services()
	p := s.begin("", s.arguments(w.args)...)
	p.run(t)
	if w.until == "" {
		time.Sleep(2 * time.Second)
	}
	for began := time.Now(); !strings.Contains(s.said(), w.until); {
		if time.Sleep(20 * time.Millisecond); time.Since(began) > longest {
			t.Errorf("it has not said %q", w.until)
			break
		}
	}
	began := time.Now()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Error(err)
	}
	e := p.wait(t)
	if took := time.Since(began); took > ending {
		t.Errorf("it ended %s after %s", took, sig)
	}
	e.check(t)
	e.refused(t, w.code)
	if left := s.running(); len(left) > 0 {
		t.Errorf("it left %q running", left)
	}
}

// services are what lines that work have: a build and a start that take long, and a project.
func (s *scene) services() {
	s.t.Helper()
	const manifest = `name: NAME
language: Go
framework: none
version: "1"
about: It takes long.
contracts: [hello]
needs: []
build:
  steps: [STEP]
  artifact: made
run:
  command: [/bin/sleep, "60"]
  ready: /readyz
  health: /readyz
targets:
  - {name: virtual, runtime: native, mode: virtual}
`
	steps := map[string]string{"go-one": `[sleep, "60"]`, "go-two": "[touch, made]"}
	for name, step := range steps {
		s.put("ROOT/services/"+name+"/service.yaml",
			strings.NewReplacer("NAME", name, "STEP", step).Replace(manifest))
	}
	s.put("prony.yaml", "targets: {app: {command: '"+s.arguments("'APP'")[0]+"'}}\n"+
		"requests: [{request: GET /}]\n")
}

// said is what a line has said by now.
func (s *scene) said() string {
	text, err := os.ReadFile(s.path("home/stderr"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// running are the processes that have a scene's folder in their environment.
func (s *scene) running() (out []string) {
	s.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range all {
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), s.dir) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
			out = append(out, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return out
}
