package suite_test

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/strictyaml"
	"prony.example/internal/suite"
)

// spare is a suite that leaves out what it can, in one line each; shared is one of anchors.
const (
	spare = `# of nothing more than it takes
name: spare
launchers: [docker]
scenarios: [{name: one, requests: [{request: GET /}]}, {name: two, requests: [{request: GET /b}]}]
loads: [{name: a, model: closed}, {name: b, model: closed, measure: 3s}] # two
`
	shared = `name: shared
scenarios:
  - name: one
    requests: &asked
      - request: GET /
  - name: two
    requests: *asked
loads:
  - &first {name: a, model: closed, measure: 4s}
  - {name: b, model: closed, connections: 8}
`
	searching = `name: searching
scenarios: [{name: one, requests: [{request: GET /}]}]
loads:
  - {name: most, model: capacity, slo: p99<50ms, budget: 40s} # as long as it takes
  - {name: half, model: open, rate: 50% of capacity}
`
)

func original(t *testing.T, file, text string) *suite.Original {
	t.Helper()
	o, err := suite.ReadOriginal(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// writes wants of an override that it changes a text as the swaps do, and nothing else.
func writes(t *testing.T, text string, v suite.Override, swaps ...string) {
	t.Helper()
	want := text
	for i := 0; i < len(swaps); i += 2 {
		if !strings.Contains(want, swaps[i]) {
			t.Fatalf("there is no %q in\n%s", swaps[i], want)
		}
		want = strings.Replace(want, swaps[i], swaps[i+1], 1)
	}
	got, err := original(t, "s.yaml", text).With(v)
	if err != nil || got != want {
		t.Errorf("%+v: %v\n%s\nwant\n%s", v, err, got, want)
	}
}

// What an override makes of a suite is written into its own text, and nothing else of it moves.
func TestWith(t *testing.T) {
	check := func(text string, v suite.Override, swaps ...string) {
		t.Helper()
		writes(t, text, v, swaps...)
	}
	canonical, err := os.ReadFile("../../suites/canonical.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, seven := string(canonical), uint64(7)
	check(text, suite.Override{})
	check(text, suite.Override{For: suite.Duration(time.Minute)}) // no key says it
	check(text, suite.Override{Blocks: 9, Seed: &seven, Targets: []string{"go-nethttp"}},
		"blocks: 4", "blocks: 9", "seed: 42", "seed: 7",
		"[rust-axum, go-nethttp, java-netty, node-express, python-flask]", "[go-nethttp]")
	check(text, suite.Override{Limits: suite.Limits{CPUs: 2, Memory: 1 << 29}},
		"{cpus: 1, memory: 1GiB}", "{cpus: 2, memory: 512MiB}")
	check(text, suite.Override{Measure: suite.Duration(10 * time.Second)},
		"measure: 2s", "measure: 10s", "measure: 2s", "measure: 10s")
	check(text, suite.Override{Loads: []string{"peak"}},
		text[strings.Index(text, "  # Latency"):], "")
	check(text, suite.Override{Launchers: []string{"process", "docker"}},
		"drain: 1s\n", "drain: 1s\nlaunchers: [process, docker]\n")
	check(text, suite.Override{Agents: []string{"otel-java/full"}},
		"drain: 1s\n", "drain: 1s\nvariants: [{name: otel-java-full, agent: otel-java/full}]\n")
}

// So it is where a text leaves out what is asked for, has it on one line, or says something of it.
func TestWithAnyText(t *testing.T) {
	check := func(text string, v suite.Override, swaps ...string) {
		t.Helper()
		writes(t, text, v, swaps...)
	}
	check(spare, suite.Override{Blocks: 2, Limits: suite.Limits{CPUs: 0.5}},
		"launchers:", "blocks: 2\nlimits: {cpus: 0.5}\nlaunchers:")
	check(spare, suite.Override{Scenarios: []string{"two"}, Loads: []string{"a"},
		Measure: suite.Duration(time.Second)},
		"{name: one, requests: [{request: GET /}]}, ", "",
		"closed}, {name: b, model: closed, measure: 3s}", "closed, measure: 1s}")
	check(spare, suite.Override{Launchers: []string{"process"}}, "[docker]", "[process]")
	check("variants:\n  - name: x # ours\n    env: {A: b}\n"+spare, suite.Override{Agents: []string{
		"a/b"}}, "A: b}\n", "A: b}\n  - {name: a-b, agent: a/b}\n")
	const said = `name: said
scenarios: # below
  # the first
  - {name: one, requests: [{request: GET /}]}

  # the second
  - {name: two, requests: [{request: GET /}]}
loads: [{name: a, model: closed}]
`
	first := said[strings.Index(said, "  # the first"):strings.Index(said, "\n  # the second")]
	check(said, suite.Override{Scenarios: []string{"two"}}, first, "")
	check(whole, suite.Override{Loads: []string{"half"}}, // and the one that it is a share of
		whole[strings.Index(whole, "  - name: fixed"):], "")
	// A search needs room for its windows, and so does the capacity that it finds rates by.
	check(searching, suite.Override{Measure: suite.Duration(4 * time.Second)},
		"budget: 40s}", "budget: 1m, measure: 4s}", "capacity}", "capacity, measure: 4s}",
		"measure: 4s}\n", "measure: 4s}\n", "capacity, measure: 4s}\n",
		"capacity, measure: 4s}\ncapacity: {measure: 4s}\n")
	// What is left of anchors would not be read: the values come alone.
	check(shared, suite.Override{Scenarios: []string{"two"}, Blocks: 2},
		shared, `name: shared
blocks: 2
scenarios:
  - name: two
    requests:
      - request: GET /
loads:
  - name: a
    model: closed
    measure: 4s
  - name: b
    model: closed
    connections: 8
`)
	_, err := original(t, "s.yaml", whole).With(suite.Override{Loads: []string{"none"}})
	if err == nil || !strings.Contains(err.Error(), `no load matches "none"`) {
		t.Errorf("a load that is not there: %v", err)
	}
}

// What an edited text asks for is what an override can say, and what it cannot is named.
func TestAsked(t *testing.T) {
	text := whole
	check := func(from, to, want, others, problem string) {
		t.Helper()
		if !strings.Contains(text, from) {
			t.Fatalf("there is no %q", from)
		}
		v, left, err := original(t, "s.yaml", text).Asked(strings.Replace(text, from, to, 1))
		got, fault := said(t, v), ""
		if err != nil {
			got, fault = "", err.Error()
		}
		if got != want || strings.Join(left, " ") != others || !strings.Contains(fault, problem) ||
			(fault != "") != (problem != "") {
			t.Errorf("%q for %q: %s, %q, %s; want %s, %s, %s", to, from, got, left, fault, want,
				others, problem)
		}
	}
	ok := func(from, to, want string) { t.Helper(); check(from, to, want, "", "") }
	ok("", "# said\n", "{}")
	ok("blocks: 2", "blocks: 5", `{"Blocks":5}`)
	ok("blocks: 2\n", "", `{"Blocks":3}`) // the default
	ok("seed: 7", "seed: 0", `{"Seed":0}`)
	ok("[all]", "[go, java/virtual]", `{"Targets":["go","java/virtual"]}`)
	ok("{cpus: 0.5, memory: 832M}", "{cpus: 2, memory: 832M}", `{"Limits":{"cpus":2}}`)
	ok("memory: 832M", "memory: 1GiB", `{"Limits":{"memory":"1GiB"}}`)
	ok("scenarios:\n", "launchers: [docker]\nscenarios:\n", `{"Launchers":["docker"]}`)
	ok("scenarios:\n", "variants: [{agent: otel-java/full}]\nscenarios:\n",
		`{"Agents":["otel-java/full"]}`)
	at := strings.Index(whole, "  - name: other")
	ok(whole[at:strings.Index(whole, "loads:")], "", `{"Scenarios":["cached read"]}`)
	at = strings.Index(whole, "  - name: fixed")
	ok(whole[at:], "", `{"Loads":["half"]}`)
	lead := "lead: 0s\n"
	for _, row := range []struct{ from, to, want, others string }{
		{"max: 1m30s", "max: 1m", "{}", "warmup.max"},
		{"name: quick", "name: slow", "{}", "name"},
		{"targets: [all]\n", "", "{}", "targets"}, // an override keeps them
		{"baseline: go\n", "columns: [mean]\n", "{}", "baseline columns"},
		{"timeout: 3s\n", "", "{}", "timeout"},
		{"GET /file?size=2", "GET /", "{}", "scenarios[1].requests[0].request"},
		{"- name: other\n    connections: 1000", "- name: third", "{}",
			"scenarios[1].name scenarios[1].connections"},
		{lead, lead + "    measure: 3s\n", "{}", "loads[0].measure"}, // of one of them
		{"measure: 100ms", "measure: 1s", "{}", "loads[2].measure"},
		{lead, lead + "  - {name: more, model: closed}\n", "{}", "loads"},
		{"loads:\n", "observe: {gc: true}\nloads:\n", "{}", "observe.gc"},
		{"loads:\n", "variants: [{agent: a/b, env: {A: b}}]\nloads:\n", `{"Agents":["a/b"]}`,
			"variants[0].env"},
		{"loads:\n", "variants: [{name: a, env: {A: b}}]\nloads:\n", "{}", "variants"},
		{"blocks: 2\nseed: 7", "blocks: 9\nseed: 7\nresolution: 5%", `{"Blocks":9}`,
			"resolution"},
	} {
		check(row.from, row.to, row.want, row.others, "")
	}
	check("blocks: 2", "bloks: 2", "", "", `YAML:6: unknown key "bloks" in "bloks: 2"; did you `+
		`mean "blocks"?`)
	check("blocks: 2", "blocks: 2000", "", "", "YAML:6: blocks 2000 is outside 1 to 1000")
	check("blocks: 2", "blocks: [2", "", "", `YAML:7: ',' or ']' must be specified`)
	check("name: quick", "name: !x quick", "", "", "no YAML tags")
	check(whole, "", "", "", "it is empty")
	for _, key := range []string{"bodyFile: /etc/passwd", "bodyFile: original_test.go"} {
		check("body: ab", key, "", "", "a form cannot name the file")
	}
	text = spare
	ok("[docker]", "[process]", `{"Launchers":["process"]}`)
	ok("launchers: [docker]\n", "", `{"Launchers":["process"]}`) // the default
	ok("launchers", "targets: []\nlaunchers", "{}")
	check("[{name: one", "[{name: ten, requests: [{request: GET /}]}] # ", "{}", "scenarios", "")
}

// What one text names another may name, too, and no file is read for it.
func TestAskedOfFiles(t *testing.T) {
	text := full(t)
	o := original(t, fullFile, text)
	v, others, err := o.Asked(strings.Replace(text, "bodyFile: owner", "bodyFile: blob.bin # ", 1))
	if want := "scenarios[0].requests[2].bodyFile"; err != nil || said(t, v) != "{}" ||
		strings.Join(others, " ") != want {
		t.Errorf("another file that it names: %s, %q, %v; want %s", said(t, v), others, err, want)
	}
	for _, row := range [][2]string{{"owner.json", "full.yaml"}, {"arrivals.trace", "blob.bin"},
		{"flow: true", "flow: true\n    data: full.yaml"}} {
		_, _, err := o.Asked(strings.Replace(text, row[0], row[1], 1))
		if err == nil || !strings.Contains(err.Error(), "a form cannot name the file") {
			t.Errorf("%s: %v", row[1], err)
		}
	}
}

// made is the suite that an override makes of a text, as JSON.
func made(t *testing.T, file, text string, v suite.Override) (string, error) {
	t.Helper()
	s, err := suite.Read(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Override(v); err != nil {
		return "", err
	}
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), nil
}

// Whatever is asked of whichever suite, its text asks for the same, and is written alike again.
func TestTextsGoBothWays(t *testing.T) {
	texts := map[string]string{"spare.yaml": spare, "shared.yaml": shared, "whole.yaml": whole,
		"searching.yaml": searching, fullFile: full(t)}
	files, err := filepath.Glob("../../suites/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d suites: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	const seed, draws = 11, 8
	r := rand.New(rand.NewPCG(seed, 4))
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		text := texts[file]
		o := original(t, file, text)
		s, err := suite.Read(file, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		written := 0
		for k := range draws {
			v := anything(r, s)
			want, err := made(t, file, text, v)
			if err != nil {
				continue // such as rates that are shares of a load that is left out
			}
			written++
			edited, err := o.With(v)
			if err != nil {
				t.Errorf("seed %d, %s, %d: %s: %v", seed, file, k, said(t, v), err)
				continue
			}
			back, others, err := o.Asked(edited)
			if err != nil || len(others) > 0 {
				t.Errorf("seed %d, %s, %d: %s comes back as %s, %q, %v of\n%s", seed, file, k,
					said(t, v), said(t, back), others, err, edited)
				continue
			}
			got, err := made(t, file, text, back)
			again, err2 := o.With(back)
			if err = errors.Join(err, err2); err != nil || got != want || again != edited {
				t.Errorf("seed %d, %s, %d: %s comes back as %s, %v of\n%s\nthen\n%s", seed, file,
					k, said(t, v), said(t, back), err, edited, again)
			}
		}
		if written < draws/4 {
			t.Errorf("seed %d: %s was written %d times", seed, file, written)
		}
	}
}

// anything is an override of what a form has.
func anything(r *rand.Rand, s *suite.Suite) (v suite.Override) {
	maybe := func() bool { return r.IntN(3) == 0 }
	some := func(names []string) []string {
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		return names[:1+r.IntN(len(names))]
	}
	if maybe() {
		v.Blocks = 1 + r.IntN(30)
	}
	if maybe() {
		seed := r.Uint64N(1 << 53)
		v.Seed = &seed
	}
	if maybe() {
		v.Measure = suite.Duration(100+r.IntN(100_000)) * suite.Duration(time.Millisecond)
	}
	if maybe() {
		v.Targets = some([]string{"go-nethttp", "java-spring/virtual", "a b", "all", "*"})
	}
	if maybe() {
		v.Limits.CPUs = float64(1+r.IntN(40)) / float64(1+r.IntN(4))
	}
	if maybe() {
		v.Limits.Memory = strictyaml.Size(16+r.IntN(4096)) << 20
	}
	if maybe() {
		v.Launchers = some(slices.Clone(suite.Launchers))
	}
	if maybe() {
		v.Agents = some([]string{"otel-java/full", "one", "two/x"})
	}
	if maybe() {
		var names []string
		for _, sc := range s.Scenarios {
			names = append(names, sc.Name)
		}
		v.Scenarios = some(names)
	}
	if maybe() {
		var names []string
		for _, l := range s.Loads {
			names = append(names, l.Name)
		}
		v.Loads = some(names)
	}
	return v
}

// said is an override in JSON, without what it leaves alone.
func said(t *testing.T, v suite.Override) string {
	t.Helper()
	out := struct {
		Blocks    int            `json:",omitempty"`
		Seed      *uint64        `json:",omitempty"`
		Measure   suite.Duration `json:",omitempty"`
		Targets   []string       `json:",omitempty"`
		Limits    map[string]any `json:",omitempty"`
		Scenarios []string       `json:",omitempty"`
		Loads     []string       `json:",omitempty"`
		Launchers []string       `json:",omitempty"`
		Agents    []string       `json:",omitempty"`
	}{Blocks: v.Blocks, Seed: v.Seed, Measure: v.Measure, Targets: v.Targets,
		Scenarios: v.Scenarios, Loads: v.Loads, Launchers: v.Launchers, Agents: v.Agents,
		Limits: map[string]any{}}
	if v.Limits.CPUs != 0 {
		out.Limits["cpus"] = v.Limits.CPUs
	}
	if v.Limits.Memory != 0 {
		out.Limits["memory"] = v.Limits.Memory
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
