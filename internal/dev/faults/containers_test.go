package faults

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// contained measures one image; its window is longer than the time until the fault.
const contained = "versus --image IMAGE --get / --aa=false --blocks 1 -c 4 --warmup 1s " +
	"--measure 8s --out OUT"

// containerFaults are faults of the container of a service under load. Each is a command of docker,
// to which the container's name is appended.
var containerFaults = []struct{ name, docker, says string }{
	{"its command is killed", "kill", "the service ended"},
	{"it is removed by another hand", "rm --force", "the service ended"},
	{"it is paused", "pause", "no good response"},
}

// image builds an image of a server that responds with hello, or skips the test. Its program has
// this name.
func (s *scene) image(program string) (name string) {
	s.t.Helper()
	if out, err := exec.Command("docker", "version").CombinedOutput(); err != nil {
		s.t.Skipf("there is no Docker engine here: %s", out)
	}
	s.put("image/main.go", `package main

import "net/http"

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) })
	panic(http.ListenAndServe(":8080", nil))
}
`)
	s.put("image/Dockerfile", strings.ReplaceAll("FROM scratch\nCOPY app /app\nEXPOSE 8080\n"+
		"ENTRYPOINT [\"/app\"]\n", "/app", "/"+program))
	name = fmt.Sprintf("prony-test-fault:%d", os.Getpid())
	for _, line := range [][]string{
		{"go", "build", "-trimpath", "-tags=netgo,osusergo", "-o", "app", "main.go"},
		{"docker", "build", "--quiet", "--tag", name, "."}} {
		cmd := exec.Command(line[0], line[1:]...)
		cmd.Dir = s.path("image")
		if out, err := cmd.CombinedOutput(); err != nil {
			s.t.Fatalf("%q: %v: %s", line, err, out)
		}
	}
	s.t.Cleanup(func() {
		if out, err := exec.Command("docker", "image", "rm", name).CombinedOutput(); err != nil {
			s.t.Errorf("remove the image: %v: %s", err, out)
		}
	})
	return name
}

// containers returns the containers of a lab, in any state.
func (s *scene) containers(lab int) []string {
	s.t.Helper()
	out, err := exec.Command("docker", "ps", "--all", "--format", "{{.Names}}", "--filter",
		fmt.Sprintf("name=prony-%d-", lab)).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	return strings.Fields(string(out))
}

// loaded waits until the container of a trial has been up for settled. The earlier one for the
// check is gone when the null server is measured.
func (s *scene) loaded(p *start) (name string) {
	s.t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		said, err := os.ReadFile(s.path("home/stderr"))
		if err != nil {
			s.t.Fatal(err)
		}
		if !strings.Contains(string(said), "calibrate the generator") {
			continue
		}
		if up := s.containers(p.cmd.Process.Pid); len(up) == 1 {
			time.Sleep(settled)
			return up[0]
		}
	}
	s.t.Error("no container was up in time")
	return ""
}

// The fault of a container is in the record of its trial, and nothing of it remains.
func TestContainers(t *testing.T) {
	testsets.Once(t, "a container that ends while it is measured", programFiles)
	more := testsets.More(t, programFiles)
	s := newScene(t)
	args := s.arguments(strings.Replace(contained, "IMAGE", s.image("app"), 1))
	for i, f := range containerFaults {
		if !more && i > 0 {
			break
		}
		t.Run(f.name, func(t *testing.T) {
			of := &scene{t: t, dir: s.dir, url: s.url}
			if err := os.RemoveAll(of.path("OUT")); err != nil {
				t.Fatal(err)
			}
			p := of.begin("", args...)
			p.bound = hung
			p.run(t)
			name := of.loaded(p)
			line := append(strings.Fields(f.docker), name)
			if out, err := exec.Command("docker", line...).CombinedOutput(); err != nil {
				t.Errorf("%q: %v: %s", line, err, out)
			}
			e := p.wait(t)
			e.check(t)
			e.refused(t, cli.Invalid)
			of.tidy(p.cmd.Process.Pid)
			if left := of.containers(p.cmd.Process.Pid); len(left) > 0 {
				t.Errorf("containers are left: %v", left)
			}
			_, records, bad, err := record.Read(of.path("OUT"))
			if err != nil || len(bad) > 0 || len(records) != 1 {
				t.Fatalf("%d records, bad %v, error %v\n%s", len(records), bad, err, e.stderr)
			}
			r := records[0]
			said := fmt.Sprintf("%+v", r.Verdict.Findings)
			if r.Failure != nil {
				said = r.Failure.Error
			}
			if r.Verdict.Grade != record.Invalid || !strings.Contains(said, f.says) {
				t.Errorf("%s is %s, by %s, want %q", r.Trial, r.Verdict.Grade, said, f.says)
			}
		})
	}
}

// The next lab removes the container of a killed lab.
func TestContainerOfAKilledLab(t *testing.T) {
	testsets.Long(t, "a lab that is killed while a container is up", programFiles)
	s := newScene(t)
	args := s.arguments(strings.Replace(contained, "IMAGE", s.image("app"), 1))
	p := s.begin("", args...)
	p.run(t)
	name := s.loaded(p)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
	if left := s.containers(p.cmd.Process.Pid); !slices.Contains(left, name) {
		t.Fatalf("%s did not outlive its lab, so that this test says nothing: %v", name, left)
	}
	if e := s.try("", append(args, "--plan")...); e.code != cli.Fine {
		t.Errorf("exit %d: %s", e.code, e.stderr)
	}
	if left := s.containers(p.cmd.Process.Pid); len(left) > 0 {
		t.Errorf("containers are left: %v", left)
	}
}
