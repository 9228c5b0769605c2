package server

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// A plan's YAML is the suite as the form has it.
func TestPlanYAML(t *testing.T) {
	s := newSite(t, Options{Lab: desk{}})
	check := func(form, want, note string) {
		t.Helper()
		_, text := s.ask(t, http.MethodPost, "/plan", form)
		var p Plan
		err := json.Unmarshal([]byte(text), &p)
		notes := strings.Join(p.Notes, "; ")
		if err != nil || p.YAML != want || !strings.Contains(notes, note) ||
			(notes != "") != (note != "") {
			t.Errorf("%s: %v, %q\n%s\nwant %q\n%s", form, err, notes, p.YAML, note, want)
		}
	}
	check(`{}`, deskSuite, "")
	six := strings.Replace(deskSuite, "blocks: 4 ", "blocks: 6 ", 1)
	check(`{"blocks":6}`, six, "")
	check(`{"measure":"90s","limits":{"memory":"512MiB"}}`, strings.NewReplacer("closed",
		"closed, measure: 1m30s", "scen", "limits: {memory: 512MiB}\nscen").Replace(deskSuite), "")
	check(`{"agent":"otel-java/full"}`, deskSuite+
		"variants: [{name: otel-java-full, agent: otel-java/full}]\n", "")
	// A time is no key, and the blocks that it takes are not the suite's.
	check(`{"for":"5m","labels":{"a":"b"},"telemetry":true}`, "# Of the form alone, since a suite "+
		"has no keys for it: for 5m, labels, telemetry\n"+deskSuite, "")
	check(`{"suite":"prony.yaml"}`, "targets: {}\n", "")
	check(`{"blocks":6,"loads":["none"]}`, deskSuite, "") // with problems it is the file
	check(`{"blocks":2000}`, deskSuite, "the YAML is the file's own: ")
}

// An edited text is the form that makes it, or what no form says is named.
func TestFormOfYAML(t *testing.T) {
	s := newSite(t, Options{Lab: desk{}})
	check := func(name, text, want string, problems ...string) {
		t.Helper()
		body, err := json.Marshal(Edited{name, text})
		if err != nil {
			t.Fatal(err)
		}
		_, answer := s.ask(t, http.MethodPost, "/form", string(body))
		var got struct {
			Form     json.RawMessage
			Problems []string
		}
		err = json.Unmarshal([]byte(answer), &got)
		wrong := err != nil || string(got.Form) != want || len(got.Problems) != len(problems)
		for i := 0; !wrong && i < len(problems); i++ {
			wrong = !strings.Contains(got.Problems[i], problems[i])
		}
		if wrong {
			t.Errorf("%s: %v, %.600s\nwant %s, %q", text, err, answer, want, problems)
		}
	}
	edit := func(from, to string) string { return strings.Replace(deskSuite, from, to, 1) }
	check("", deskSuite, `{}`)
	check("canonical", edit("blocks: 4", "seed: 7\nblocks: 6"), `{"blocks":6,"seed":7}`)
	check("canonical", edit("closed", "closed, measure: 1500ms"), `{"measure":"1.5s"}`)
	check("canonical", edit("scen", "limits: {cpus: 0.5, memory: 512M}\nscen"),
		`{"limits":{"cpus":0.5,"memory":"512MiB"}}`)
	check("canonical", edit("scen", "targets: [go-nethttp]\nlaunchers: [docker]\nscen"),
		`{"targets":["go-nethttp"],"launcher":["docker"]}`)
	check("canonical", edit("scen", "variants: [{agent: otel-java/full}]\nscen"),
		`{"agent":"otel-java/full"}`)
	// What cannot be said so is named, and what is wrong has its line.
	check("canonical", edit("blocks: 4", "warmup: {max: 9s}\nblocks: 6"), `{"blocks":6}`,
		"warmup.max: a form cannot set it so; save the text as suites/NAME.yaml")
	check("canonical", edit("scen", "variants: [{agent: a/b}, {agent: c/d}]\nscen"), `{}`,
		"variants: a form cannot set it so")
	check("canonical", edit("blocks", "bloks"), `{}`, `YAML:3: unknown key "bloks"`)
	check("canonical", edit("blocks: 4", "blocks: 0\nseed: -1"), `{}`, "YAML:4: ")
	check("canonical", edit("blocks: 4", "blocks: 0\ntimeout: 0s"), `{}`, "YAML:3: blocks 0",
		"YAML:4: timeout 0s")
	check("canonical", "", `{}`, "it is empty")
	check("canonical", "a: [", `{}`, "YAML:1: ")
	// The catalog has the last word, and a text names no file.
	check("canonical", edit("scen", "targets: ['*', /bin/sh]\nscen"),
		`{"targets":["*","/bin/sh"]}`, `targets: there is no "*"`, `targets: there is no "/bin/sh"`)
	check("canonical", edit("GET /", "POST /, bodyFile: ../../go.mod"), `{}`,
		"a form cannot name the file ../../go.mod")
	check("prony.yaml", deskSuite, `{}`, "edit it in prony.yaml itself")
	check("none", deskSuite, `{}`, "there is none called")
	check("canonical", strings.NewReplacer("Which?", "Why?", "GET /}", "GET /}, {request: GET /b}").
		Replace(deskSuite), `{}`, "question: a form", "scenarios[0].requests: a form")
	wrong := make([]string, mostProblems+1) // each of 25 requests is; the last line counts the rest
	for i := range wrong {
		wrong[i] = "YAML:4: "
	}
	wrong[mostProblems] = "and 5 more"
	check("canonical", edit("{request: GET /}", strings.Repeat("{request: x}, ", 25)), `{}`,
		wrong...)
}

// Whatever a form says, its text is that form again.
func TestFormsComeBack(t *testing.T) {
	const seed = 23
	r := rand.New(rand.NewPCG(seed, 5))
	one := Suite{Name: "both", Path: "both.yaml", YAML: `name: both
targets: [all] # of them
limits: {cpus: 1}
scenarios:
  - {name: one, requests: [{request: GET /}]}
  - name: two # as often
    requests: [{request: GET /b}]
loads:
  - {name: peak, model: closed, measure: 1s}
  - name: half
    model: open
    rate: 50% of peak
  - {name: fixed, model: open, rate: 100}
`}
	for k := range 60 {
		var f Form
		pick := func(set func()) {
			if r.IntN(2) == 0 {
				set()
			}
		}
		pick(func() { f.Targets = [][]string{{"go"}, {"java/virtual", "go"}}[r.IntN(2)] })
		pick(func() { f.Scenarios = [][]string{{"one"}, {"two"}}[r.IntN(2)] })
		pick(func() { f.Loads = [][]string{{"half"}, {"fixed"}, {"peak"}}[r.IntN(3)] })
		pick(func() { f.Blocks = 4 + r.IntN(90) })
		pick(func() { seed := uint64(r.IntN(40)); f.Seed = &seed })
		pick(func() { f.Measure = []string{"100ms", "3s", "1m30s", "1h"}[r.IntN(4)] })
		pick(func() { f.Limits.CPUs = []float64{0.5, 2, 3.25}[r.IntN(3)] })
		pick(func() { f.Limits.Memory = []string{"512MiB", "17MiB", "3GiB"}[r.IntN(3)] })
		pick(func() { f.Launcher = [][]string{{"docker"}, {"process", "docker"}}[r.IntN(2)] })
		pick(func() { f.Agent = []string{"otel-java/full", "a/b"}[r.IntN(2)] })
		text, err := one.as(f)
		if err != nil {
			t.Errorf("seed %d, %d: %+v: %v", seed, k, f, err)
			continue
		}
		got, problems := one.asked(text)
		if !reflect.DeepEqual(got, f) || len(problems) > 0 {
			t.Errorf("seed %d, %d: %+v comes back as %+v, %q of\n%s", seed, k, f, got, problems,
				text)
		}
		again, err := one.as(got)
		if err != nil || again != text {
			t.Errorf("seed %d, %d: %v\n%s\nand then\n%s", seed, k, err, text, again)
		}
	}
}
