package suite

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/service/counters"
)

// Several errors are always reported in the same order.
func TestProjectOrder(t *testing.T) {
	text := []byte("targets:\n  up:\n    command: ./up {a.port}\n    env: {X: '{b.port}', " +
		"Y: '{c.port}'}\n    processes: [{name: db, command: './db {d.port}'}]\n" +
		"requests: [{request: GET /}]\n")
	_, first := ReadProject("prony.yaml", text)
	for range 20 {
		if _, err := ReadProject("prony.yaml", text); err == nil || err.Error() != first.Error() {
			t.Fatalf("%v\n\nat first:\n%v", err, first)
		}
	}
}

func TestAllProblemsOfAProjectAtOnce(t *testing.T) {
	check := func(text string, want ...string) {
		t.Helper()
		_, err := ReadProject("p.yaml", []byte(text))
		got := strings.Split(fmt.Sprint(err), "\n")
		for i, line := range got {
			place, problem, _ := strings.Cut(line, " ")
			problem, _, _ = strings.Cut(problem, ` in "`)
			got[i] = place + " " + problem
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	check("targets:\n  a: {command: ./a, enviroment: {X: '1'}}\nbaselin: a\nlimits: {cpu: 1}\n"+
		"requests:\n  - {reqest: GET /}\nsuites:\n  peak: {blocks: 1.5}\n",
		`p.yaml:2: unknown key "enviroment"`, `p.yaml:3: unknown key "baselin"`,
		`p.yaml:4: unknown key "cpu"`, `p.yaml:6: unknown key "reqest"`,
		"p.yaml:8: blocks must be a whole number, not 1.5")
	check("targets: {a: {command: ./a}}\nlimits: {cpus: 1,5}\nrequests: [{request: GET /}]\n",
		`p.yaml:2: unknown key "5"`)
	check("targets: {a: {}}\nwarmup: {min: 5s, max: 1s}\ncolumns: [nosuch]\nsuites:\n"+
		"  x: {requests: [{request: GET}]}\n  y: {requests: [{request: GET /}], blocks: -1}\n",
		"p.yaml:1: the target a has no command, url, image or compose",
		"p.yaml:2: warmup.min 5s exceeds warmup.max 1s",
		`p.yaml:3: columns "nosuch" is not one of `+strings.Join(Columns, ", "),
		`p.yaml:5: request "GET" does not have the form of "GET /hello/{mode}?key={key}"`,
		"p.yaml:6: blocks -1 is outside of the range 1 to 1000")
}

// small is a project with all of its own keys.
const small = `targets:
  old: {command: './app --port {port}', needs: [{tool: ruby, version: ruby --version}]}
  new: {command: ./app, build: go build, git: main, env: {GOGC: 400}, dir: sub}
  up:
    url: http://127.0.0.1:8081
baseline: old
ready: /health
startup: 10s
needs: [{tool: sh}]
limits: {cpus: 0.5, memory: 512M}
requests:
  - request: GET /items/1
    headers: {Accept: text/html}
    expect: {status: 200}
    weight: 3
  - GET: 1
suites:
  peak:
    targets: [old, up]
    loads: [{name: all, model: closed}]
    blocks: 7
  users:
    scenarios:
      - name: walk
        requests: [{request: GET /walk}]
`

func TestProject(t *testing.T) {
	text := strings.Replace(small, "  - GET: 1\n", "  - request: GET /b\n", 1)
	p, err := ReadProject("prony.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Names, " "); got != "old new up" {
		t.Errorf("targets in the order %s", got)
	}
	if n := p.Targets["new"]; n.Env["GOGC"] != "400" || n.Dir != "sub" || n.Git != "main" {
		t.Errorf("new is %+v", n)
	}
	check := func(name, suiteName, scenario, load string, requests, blocks, targets int) *Suite {
		t.Helper()
		s, err := p.Suite(name)
		if err != nil {
			t.Fatal(err)
		}
		if s.Name != suiteName || s.Scenarios[0].Name != scenario || s.Loads[0].Name != load ||
			len(s.Scenarios[0].Requests) != requests || s.Blocks != blocks ||
			len(s.Targets) != targets || s.Baseline != "old" || s.Limits.CPUs != 0.5 {
			t.Errorf("suite %q is %+v", name, s)
		}
		return s
	}
	s := check("", "project", "requests", "peak", 2, 3, 0)
	err = s.Hold(func(asked []Request, others []string) ([]Request, error) {
		if len(asked) != 2 || !asked[0].Given || asked[1].Given || len(others) != 0 {
			t.Errorf("asked are %+v, others %v", asked, others)
		}
		for i := range asked {
			asked[i].Expect.Status = 201
		}
		return asked, nil
	})
	if q := s.Scenarios[0].Requests; err != nil || q[0].Expect.Status != 200 ||
		q[1].Expect.Status != 201 {
		t.Errorf("what is held is %+v, error %v", q, err)
	}
	check("peak", "peak", "requests", "all", 2, 7, 2)
	check("users", "users", "walk", "peak", 1, 3, 0)
}

// Variables of the environment are filled in only when the request is sent; setups are not sent,
// and neither are requests with their cookies.
func TestProjectHoldsWithEnvironment(t *testing.T) {
	p, err := ReadProject("prony.yaml", []byte(`targets: {a: {command: ./app}}
scenarios:
  - name: user
    requests:
      - {request: POST /login, body: '{"p":"${PASSWORD}"}', setup: user}
      - {request: 'GET /${WHO}', headers: {Authorization: '${TOKEN}'}}
      - {request: 'GET /all'}
      - {request: 'GET /{seq}'}
  - name: cookies
    cookies: true
    requests:
      - {request: POST /login, setup: run}
      - {request: GET /me}
`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Suite("")
	if err != nil {
		t.Fatal(err)
	}
	err = s.Hold(func(asked []Request, others []string) ([]Request, error) {
		if len(asked) != 2 || asked[0].Request != "GET /${WHO}" ||
			asked[1].Request != "GET /all" || strings.Join(others, ",") != "GET /{seq},GET /me" {
			t.Errorf("asked are %+v, others %v", asked, others)
		}
		return asked, nil
	})
	if got := s.FirstGet(); err != nil || got != "/all" {
		t.Errorf("the first that is asked is %q, error %v", got, err)
	}
}

// A target with a matrix becomes one for each combination, and its name stands for all of them.
func TestProjectMatrix(t *testing.T) {
	read := func(matrix string) (*Project, error) {
		return ReadProject("prony.yaml", []byte(`targets:
  app: {command: 'java {gc} -jar a.jar', env: {A: b}, matrix: {`+matrix+`}}
  app-n-1: {command: ./b}
baseline: app
requests: [{request: GET /}]
suites: {one: {targets: [app]}}
`))
	}
	p, err := read("env: {GOGC: [50, 100]}, args: {gc: ['-XX:+UseG1GC', ''], n: [-n 2]}")
	if err != nil {
		t.Fatal(err)
	}
	rows := "app-GOGC-50-gc-XX-UseG1GC-n-n-2 app-GOGC-50-gc-n-n-2 " +
		"app-GOGC-100-gc-XX-UseG1GC-n-n-2 app-GOGC-100-gc-n-n-2"
	if got := strings.Join(p.Names, " "); got != rows+" app-n-1" {
		t.Errorf("the targets are %s", got)
	}
	first, last := p.Targets[p.Names[0]], p.Targets[p.Names[3]]
	if first.Command != "java -XX:+UseG1GC -jar a.jar -n 2" || first.Env["GOGC"] != "50" ||
		first.Env["A"] != "b" || last.Command != "java  -jar a.jar -n 2" ||
		last.Env["GOGC"] != "100" {
		t.Errorf("the first is %+v, the last %+v", first, last)
	}
	page, err := os.ReadFile("../../docs/project.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "The `matrix` of a target")
	_, shown, _ = strings.Cut(shown, "```yaml\n")
	shown, _, _ = strings.Cut(shown, "```")
	there, err := ReadProject("prony.yaml", []byte(shown+"requests: [{request: GET /}]\n"))
	if err != nil || len(there.Names) != 4 || there.Names[0] != "app-POOL-8-gc-XX-UseG1GC" {
		t.Errorf("the page's is %+v, error %v", there, err)
	}
	s, err := p.Suite("one")
	if err != nil || strings.Join(s.Targets, " ") != rows || s.Baseline != p.Names[0] {
		t.Errorf("one is of %v against %s, error %v", s.Targets, s.Baseline, err)
	}
	if p, err := read("connections: [8, 64], env: {X: [1]}"); err != nil || p.Names[1] !=
		"app-connections-64-X-1" || p.Targets[p.Names[1]].Connections != 64 {
		t.Errorf("with connections: %v, error %v", p, err)
	}
	for matrix, want := range map[string]string{
		"":                  "prony.yaml:2: the matrix has no axis",
		"env: {X: []}":      "with the axis X, the matrix makes 0 targets",
		"env: {A: [1]}":     "the target itself sets the variable A",
		"env: {X: [1, 1]}":  "two targets have the name app-X-1",
		"args: {n: [1]}":    "two targets have the name app-n-1",
		"args: {port: [1]}": "args need a command",
		"connections: []":   "with the axis connections, the matrix makes 0 targets",
		"connections: [0]":  "a load cannot have 0 connections",
		"connections: [x]":  "connections",
		"body: []":          "with the axis body, the matrix makes 0 targets",
		"body: [0B]":        "the generator cannot make a body of 0B",
		"body: [17MiB]":     "write a body size from 1B to 16MiB",
		"body: [1KB]":       "is not a number with a binary unit",
		"body: [1B]":        "the matrix of app changes the body, but no request of",
		"bodies: [1B]":      `unknown key "bodies"`,
		"env: {1X: [1]}":    `env "1X" does not have the form of "GOGC"`,
		"env: {X: [" + strings.Repeat("1, ", 64) + "1]}": "with the axis X, the matrix makes " +
			"65 targets",
		"env: {X: [" + strings.Repeat("1", 58) + "]}": "is longer than 63 characters",
	} {
		if _, err := read(matrix); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: it says %v, want %q", matrix, err, want)
		}
	}
}

// Rows of a matrix have bodies of their own in requests that can have one.
func TestProjectBodies(t *testing.T) {
	bodies := func(scenes string) (*Project, error) {
		return ReadProject("prony.yaml", []byte("targets: {app: {url: 'http://127.0.0.1:1', "+
			"matrix: {body: [3B, 1MiB]}}}\nscenarios: ["+scenes+"]\n"))
	}
	if p, err := bodies("{name: a, requests: [{request: PUT /, body: x}]}"); err != nil ||
		strings.Join(p.Names, " ") != "app-body-3B app-body-1MiB" ||
		p.Targets["app-body-1MiB"].Body != 1<<20 {
		t.Errorf("with bodies: %+v, error %v", p, err)
	}
	_, err := bodies("{name: a, protocol: grpc, requests: [{request: POST /a.B/C, body: x}]}")
	if err == nil || !strings.Contains(err.Error(), "a sends gRPC messages, "+
		"whose size cannot be changed") {
		t.Errorf("with bodies of gRPC it says %v", err)
	}
}

// Each error has its line and the probable intention.
func TestProjectMistakes(t *testing.T) {
	check := func(old, with string, wants ...string) {
		t.Helper()
		text := strings.Replace(small, "  - GET: 1\n", "", 1)
		if !strings.Contains(text, old) {
			t.Fatalf("there is no %q", old)
		}
		_, err := ReadProject("prony.yaml", []byte(strings.Replace(text, old, with, 1)))
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: it says %v, want %q", with, err, want)
			}
		}
	}
	check("baseline:", "basline:", `prony.yaml:6: unknown key "basline"`,
		`did you mean "baseline"?`)
	check("baseline: old", "contract: hello",
		"prony.yaml:6: only targets of the catalog have contracts")
	check("    url:", "    command: x\n    url:",
		"prony.yaml:6: the target up has both command and url")
	check("    url: http://127.0.0.1:8081", "    env: {A: b}",
		"prony.yaml:5: the target up has no command, url, image or compose",
		"add command, url, image or compose to the target")
	check("    url: http://127.0.0.1:8081", "    image: a:1\n    build: x",
		"prony.yaml:6: build requires a command, but target up is defined by image")
	check("    url:", "    port: 1\n    url:", "prony.yaml:5: port requires an image or a command")
	check("    url:", "    build: x\n    url:", "prony.yaml:5: build requires a command")
	check("build: go build, ", "", "prony.yaml:3: git requires build, because a revision has")
	system := func(processes string) string {
		return "    processes: [" + processes + "]\n    command: ./up {db.port}"
	}
	url := "    url: http://127.0.0.1:8081"
	check(url, system("{name: db, command: ./db}, {name: db, command: ./b}"),
		`prony.yaml:5: targets.up.processes contains "db" twice`)
	check(url, system("{name: dbs, command: ./db}"),
		`prony.yaml:6: {db.port} names a process that the target does not have`,
		`did you mean "dbs"?`)
	check(url, system("{name: db, command: ./db}, {name: up, command: ./b}"),
		"prony.yaml:5: a process has the name of its target, up")
	check(url, system("{name: DB, command: ./db}"), `name "DB" does not have the form of "db"`)
	check(url, system("{name: db}"), "prony.yaml:5: command is missing")
	check(url, system("{name: db, command: ./db, ready: x}"), `ready "x" is not a path`)
	check(url, system("{name: db, command: ./db, share: 0}"), "prony.yaml:5: share 0 is outside")
	check(url, system("{name: db, command: ./db, env: {X: '{xx.port}'}}"),
		"prony.yaml:5: {xx.port} names a process that the target does not have")
	check("    url:", "    processes: [{name: db, command: ./db}]\n    url:",
		"prony.yaml:5: processes start before the target's command, but target up has no command")
	check(url, "    compose: {file: a.yaml}", "prony.yaml:5: compose.service is missing")
	check(url, "    compose: {service: web, port: 0}", "prony.yaml:5: port 0 is outside")
	check(url, "    build: x\n    compose: {service: web}",
		"prony.yaml:5: build requires a command, but target up is defined by compose")
	check("    url:", "    compose: {service: web}\n    url:",
		"prony.yaml:5: the target up has both url and compose")
	check("    url:", "    urll:", `prony.yaml:5: unknown key "urll"`, `did you mean "url"?`)
	check("ready: /health", "ready: health", `prony.yaml:7: ready "health" is not a path that `+
		"begins with /")
	check("  old: {", "  a b: {", `targets "a b" does not have the form of "old"`)
	check("    weight: 3", "    weight: 0", "prony.yaml:15: weight 0 is outside")
	check("    weight: 3", "    wait: 3", `prony.yaml:15: unknown key "wait"`)
	check("    blocks: 7", "    blocks: 0", "prony.yaml:20: blocks 0 is outside")
	check("    blocks: 7", "    ready: /x", `prony.yaml:20: unknown key "ready"`)
	check("requests:\n  - r", "scenarios:\n  - r", "unknown key")
	check("limits: {", "scenarios: [{name: a, requests: [{request: GET /}]}]\nlimits: {",
		"the file has both requests and scenarios")
	check("needs: [{tool: sh}]", "needs: [{version: sh}]", "prony.yaml:9: tool is missing")
	check("limits: {cpus: 0.5, memory: 512M}", "warmup: {cores: all}", "prony.yaml:10: "+
		"warmup.cores all: target up has no command", "measure up in another suite")
	check("    blocks: 7", "    warmup: {cores: all}\n    limits: {cpus: 1}", "prony.yaml:20: "+
		"warmup.cores all: target up has no command")
}

// Targets with a command may be warmed up on all cores, whatever else the file contains.
func TestProjectWarmedOnAllCores(t *testing.T) {
	sound := strings.NewReplacer("    blocks: 7", "    warmup: {cores: all}\n    limits: {cpus: 1}",
		"[old, up]", "[old]", "  - GET: 1\n", "").Replace(small)
	if _, err := ReadProject("prony.yaml", []byte(sound)); err != nil {
		t.Errorf("of what commands start: %v", err)
	}
	for _, targets := range []string{"", "targets: [all], ", "targets: ['*p'], "} {
		_, err := ReadProject("prony.yaml", []byte(`targets: {up: {url: 'http://127.0.0.1:1'}}
requests: [{request: GET /}]
suites: {one: {`+targets+`limits: {cpus: 1}, warmup: {cores: all}}}
`))
		if err == nil || !strings.Contains(err.Error(), "target up has no command") {
			t.Errorf("%s: error %v", targets, err)
		}
	}
}

// walk visits each row of a project's own keys.
func TestEveryRowOfAProjectIsChecked(t *testing.T) {
	p := &Project{Targets: map[string]Source{"a": {Needs: []Need{{}},
		Processes: []Process{{}}, Counters: map[string]counters.Place{"b": {}}}}, Needs: []Need{{}}}
	visited := map[*parameter]bool{}
	walk(reflect.ValueOf(p).Elem(), project, "", func(row *parameter, _ reflect.Value, _ string) {
		visited[row] = true
	})
	for i := range projectParameters {
		if !visited[&projectParameters[i]] {
			t.Errorf("%s is not checked", projectParameters[i].key)
		}
	}
}

// A file of another form than a mapping is refused.
func TestProjectIsMapping(t *testing.T) {
	for _, text := range []string{"0", "[a]", "a", "&a {targets: {}}", "*a", "null"} {
		_, err := ReadProject("prony.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "prony.yaml: the file is not a mapping") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSuiteOfNone(t *testing.T) {
	p, err := ReadProject("prony.yaml", []byte("targets: {a: {command: ./a}}\n"+
		"requests: [{request: GET /}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `prony.yaml has no suites, so it has no suite "prony.yaml"; leave out the name`
	if _, err := p.Suite("prony.yaml"); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
