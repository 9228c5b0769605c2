package faults

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
	"prony.example/internal/observe/profile"
	"prony.example/record"
)

const repository = "../../.."

// programs are the real programs, each built once, as make build does.
var programs struct {
	sync.Mutex
	dir string
}

// TestMain removes the built programs. Programs started here receive SIGHUP, even if these tests
// run under nohup, whose children ignore it.
func TestMain(m *testing.M) {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	code := m.Run()
	if err := os.RemoveAll(programs.dir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// program returns the file of a command of this module.
func program(t *testing.T, name string) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "prony-faults-")
		if err != nil {
			t.Fatal(err)
		}
		programs.dir = dir
	}
	file := filepath.Join(programs.dir, name)
	if _, err := os.Stat(file); err == nil {
		return file
	}
	of := buildflags.Module
	if name == "prony-home" {
		of = testsets.Home
	}
	testsets.Build(t, file, of+"/cmd/"+name)
	return file
}

// scene is the place of one command line: a folder with a sound run and a small checkout.
type scene struct {
	t   *testing.T
	dir string
	url string
}

// server responds to every request at once; all scenes share it.
var server = sync.OnceValues(func() (string, error) {
	addr, _, err := truth.Start(truth.Fixed(0)) // it ends with the tests
	if err != nil {
		return "", err
	}
	return "http://" + addr.String() + "/", nil
})

func newScene(t *testing.T) *scene {
	t.Helper()
	url, err := server()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "scene")
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, dir: dir, url: url}
	t.Cleanup(func() { s.remove(dir, os.RemoveAll) })
	s.checkout()
	s.run()
	return s
}

// remove waits for a tool that ended with its caller and still works.
func (s *scene) remove(dir string, with func(string) error) {
	s.t.Helper()
	var err error
	for range 20 {
		if err = with(dir); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.t.Error(err)
}

func (s *scene) path(name string) string {
	for from, to := range map[string]string{"ROOT": "root", "RUN": "runs/one"} {
		if rest, ok := strings.CutPrefix(name, from); ok {
			return filepath.Join(s.dir, to, rest)
		}
	}
	return filepath.Join(s.dir, name)
}

func (s *scene) put(name, text string) {
	s.t.Helper()
	path := s.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// checkout is a catalog of one service, one suite and no agent.
func (s *scene) checkout() {
	s.t.Helper()
	manifest, err := os.ReadFile(filepath.Join(repository, "services/go-nethttp/service.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.put("ROOT/services/go-one/service.yaml",
		strings.ReplaceAll(string(manifest), "go-nethttp", "go-one"))
	s.put("ROOT/agents.yaml", "agents: []\n")
	s.put("ROOT/suites/canonical.yaml", `name: x
question: Is it read?
contract: hello
baseline: go-one
targets: [go-one]
blocks: 1
seed: 1
scenarios:
  - name: hello
    requests: [{request: GET /hello}]
loads:
  - {name: peak, model: closed, connections: 1, measure: 1s}
`)
}

// run makes the folder of a run of two targets in three blocks, with the files beside it.
func (s *scene) run() {
	s.t.Helper()
	dir := s.path("RUN")
	out, err := record.Create(dir, record.Run{ID: "one", Suite: "x", Question: "Is it read?",
		File: "suites/canonical.yaml", Baseline: "a/b", Blocks: 3,
		Command: []string{"prony", "run"}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer out.Close()
	for block := 1; block <= 3; block++ {
		for i, name := range []string{"a/b", "c/d"} {
			r := &record.Record{Trial: fmt.Sprintf("b%d-0%d-%c", block, i+1, name[0]),
				Block: block, Order: i, Scenario: "hello",
				Verdict: record.Verdict{Grade: record.Valid}}
			r.Target.Name = name
			r.Profiles = []record.Profile{{Kind: profile.CPU, File: "profiles/one.cpu.pb.gz"}}
			r.Loads = []record.Load{{Name: "peak", Model: record.Closed, Connections: 1,
				WindowNs: 1e9, Scheduled: 1000, Sent: 1000, Done: 1000, Answered: 1000,
				ThroughputPerS: 1000, InFlightMean: 1}}
			if err := out.Append(r); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	s.kept(dir)
}

// kept writes the files beside the records.
func (s *scene) kept(dir string) {
	s.t.Helper()
	stacks := profile.NewStacks(profile.CPU)
	stacks.Add([]string{"main", "serve"}, 100, 1e9)
	if err := os.MkdirAll(filepath.Join(dir, "profiles"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, "profiles/one.cpu.pb.gz"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	if err := stacks.Profile().Write(file); err != nil {
		s.t.Fatal(err)
	}
	s.put("RUN/telemetry/spans.ndjson", "")
	s.put("RUN/telemetry/logs.ndjson", "")
}

// service is a program that every lab can run: the sources of a service, built once.
var service = sync.OnceValues(func() (file string, err error) {
	programs.Lock()
	defer programs.Unlock()
	file = filepath.Join(programs.dir, "go-nethttp")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags=netgo,osusergo",
		"-o", file, ".")
	build.Dir = filepath.Join(repository, "services/go-nethttp")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build go-nethttp: %w: %s", err, out)
	}
	return file, nil
})

// furnish adds what a line needs beyond the usual files: go-two, a service that is built by a copy;
// another tool's output; data of a collector.
func (s *scene) furnish(text string) {
	s.t.Helper()
	if strings.Contains(text, "HEAD") {
		s.repository()
	}
	if strings.Contains(text, "sh-") || strings.Contains(text, "go-two") ||
		strings.Contains(text, "OTHER") {
		program(s.t, "prony") // also makes the folder
		file, err := service()
		if err != nil {
			s.t.Fatal(err)
		}
		two := fmt.Sprintf(manifest, file)
		s.put("ROOT/services/go-two/service.yaml", two)
		s.put("ROOT/services/go-three/service.yaml", strings.ReplaceAll(two, "go-two", "go-three"))
		s.put("OTHER/services/go-two/service.yaml", strings.Replace(two, "[mkdir, -p, bin]",
			"[sh, -c, echo last words; exit 7]", 1))
		s.put("OTHER/services/go-three/service.yaml", strings.NewReplacer("go-two", "go-three",
			"[mkdir, -p, bin]", "[sh, -c, sleep 1000 & wait]").Replace(two))
		s.put("ROOT/services/sh-slow/service.yaml", strings.NewReplacer("go-two", "sh-slow",
			"[mkdir, -p, bin]", "[sh, -c, sleep 1000 & wait]").Replace(two))
		s.put("ROOT/services/sh-mute/service.yaml", strings.NewReplacer("go-two", "sh-mute",
			`["{dir}/bin/go-two"]`, `[/bin/sleep, "1000"]`).Replace(two))
		if err := os.Remove(s.path("ROOT/agents.yaml")); err != nil { // otherwise it would need one
			s.t.Fatal(err)
		}
	}
	if strings.Contains(text, " agents") {
		s.put("ROOT/agents.yaml",
			"agents: [{name: none, about: Nothing at all., runtimes: [native]}]\n")
	}
	if strings.Contains(text, "SERVICE") {
		program(s.t, "prony")
		file, err := service()
		if err == nil {
			err = os.Symlink(file, s.path("SERVICE"))
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	if strings.Contains(text, "FOREIGN") {
		data, err := os.ReadFile(filepath.Join(repository, "internal/generator/testdata/hey.txt"))
		if err != nil {
			s.t.Fatal(err)
		}
		s.put("FOREIGN", string(data))
	}
	if strings.Contains(text, "telemetry serve") || strings.Contains(text, "SERVED") ||
		strings.Contains(text, "parquet") {
		program(s.t, "prony-home")
	}
	if strings.Contains(text, "SERVED") {
		e := s.try("", "telemetry", "serve", "--until-stdin-ends", "--dir", s.path("SERVED"),
			"--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--query", "127.0.0.1:0",
			"--zipkin", "127.0.0.1:0")
		if e.code != 0 {
			s.t.Fatal(e.stderr)
		}
	}
}

// manifest is the manifest of a service whose first step copies it.
const manifest = `name: go-two
language: Go
framework: net/http
version: "1.26"
about: It is there already.
contracts: [hello]
build:
  steps: [[mkdir, -p, bin], [cp, %q, bin/go-two]]
  artifact: bin/go-two
run:
  command: ["{dir}/bin/go-two"]
  health: /healthz
  ready: /readyz
targets:
  - {name: virtual, runtime: native, mode: virtual}
`
