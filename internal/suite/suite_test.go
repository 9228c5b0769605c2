package suite_test

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/strictyaml"
	"prony.example/internal/suite"
	"prony.example/record"
)

// whole is a suite with every kind of value; rows change one line of it.
const whole = `name: quick
question: How fast?
contract: hello
targets: [all]
baseline: go
blocks: 2
seed: 7
limits: {cpus: 0.5, memory: 832M}
timeout: 3s
warmup:
  connections: 8
  min: 0s
  max: 1m30s
scenarios:
  - name: cached read
    keys: [1, 9]
    requests:
      - request: GET /hello/{mode}?key={key}
        expect:
          body: value-{key}
      - request: POST /load
        body: ab
        weight: 3
        expect: {size: 4}
  - name: other
    connections: 1000
    requests:
      - request: GET /file?size=2
        expect: {lorem: 2, status: 206}
loads:
  - name: peak
    model: closed
    leadIn: 0s
  - name: half
    model: open
    rate: 50% of peak
  - name: fixed
    model: open
    rate: 20000
    arrivals: constant
    measure: 100ms
`

func read(t *testing.T, text string) *suite.Suite {
	t.Helper()
	s, err := suite.Read("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReadKeepsWhatIsGivenAndFillsInTheRest(t *testing.T) {
	s := read(t, whole)
	check := func(name string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	check("file", s.File, "s.yaml")
	check("cpus", s.Limits.CPUs, 0.5)
	check("memory", s.Limits.Memory, strictyaml.Size(832<<20)) // M is MiB
	check("timeout", s.Timeout, suite.Duration(3*time.Second))
	check("warmup", s.Warmup, suite.Warmup{Connections: 8, Max: suite.Duration(90 * time.Second)})
	check("seed", s.Seed, uint64(7))

	one, two := s.Scenarios[0], s.Scenarios[1]
	check("keys", one.Keys, suite.Keys{1, 9})
	check("weight", one.Requests[0].Weight, 1) // the default
	check("weight given", one.Requests[1].Weight, 3)
	check("status", one.Requests[1].Expect.Status, 200) // the default, beside an explicit key
	check("status given", two.Requests[0].Expect.Status, 206)
	check("body", *one.Requests[0].Expect.Body, "value-{key}")
	check("size", *one.Requests[1].Expect.Size, int64(4))
	check("lorem", *two.Requests[0].Expect.Lorem, int64(2))
	check("type", one.Requests[1].Type, "text/plain")
	check("no type", one.Requests[0].Type, "")

	peak, half, fixed := s.Loads[0], s.Loads[1], s.Loads[2]
	check("lead given as zero", peak.Lead, suite.Duration(0))
	check("lead", half.Lead, suite.Duration(200*time.Millisecond))
	check("connections", peak.Connections, 64)
	check("closed arrivals", peak.Arrivals, "")
	check("closed rate", peak.Rate.String(), "")
	check("open arrivals", half.Arrivals, suite.Poisson)
	check("share", half.Rate.String(), "50% of peak")
	check("rate", fixed.Rate.String(), "20000/s")
	check("arrivals", fixed.Arrivals, suite.Constant)
	check("measure", fixed.Measure, suite.Duration(100*time.Millisecond))
	check("drain", fixed.Drain, suite.Duration(time.Second))

	method, path := one.Requests[0].Line("virtual")
	check("method", method, "GET")
	check("path", path, "/hello/virtual?key={key}")

	// A scenario's connections replace those of loads and warm-up, only in the returned values.
	check("connections of other", s.LoadsOf(two)[2].Connections, 1000)
	check("connections of cached read", s.LoadsOf(one)[2].Connections, 64)
	check("warm-up of other", s.WarmupOf(two).Connections, 1000)
	check("warm-up of cached read", s.WarmupOf(one).Connections, 8)
	check("the scenario by name", s.Scenario("other").Connections, 1000)
}

func TestReadAgreesWithTheCanonicalSuite(t *testing.T) {
	text, err := os.ReadFile("../../suites/canonical.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := read(t, string(text))
	const ms = suite.Duration(time.Millisecond)
	want := []suite.Load{
		{Name: "peak", Model: record.Closed, Connections: 32, Lead: 200 * ms, Measure: 800 * ms,
			Drain: 1000 * ms},
		{Name: "half", Model: record.Open, Connections: 32, Lead: 200 * ms, Measure: 800 * ms,
			Drain: 1000 * ms, Arrivals: "poisson", Rate: suite.Rate{Share: 0.5, Of: "peak"}},
	}
	for i := range want {
		if !reflect.DeepEqual(s.Loads[i], want[i]) {
			t.Errorf("load %d is %+v, want %+v", i, s.Loads[i], want[i])
		}
	}
	if s.Baseline != "go-nethttp" || s.Seed != 42 || s.Blocks != 4 ||
		s.Limits != (suite.Limits{CPUs: 1, Memory: 1 << 30}) {
		t.Errorf("canonical is %+v", s)
	}
}

func TestAliases(t *testing.T) {
	s := read(t, `name: quick
contract: http
scenarios:
  - name: root
    requests:
      - {request: GET /, expect: &empty {body: "", status: 204}}
      - {request: GET /no-read, expect: *empty}
warmup: {min: &second 1s, max: *second}
loads: [{name: first, model: open, rate: &r 50/s}, {name: last, model: open, rate: *r}]
`)
	if s.Warmup.Max != s.Warmup.Min || s.Loads[1].Rate.PerS != 50 {
		t.Errorf("aliases are read as %v and %v", s.Warmup, s.Loads[1].Rate)
	}
	e := s.Scenarios[0].Requests[1].Expect
	if e.Status != 204 || e.Body == nil || *e.Body != "" {
		t.Errorf("the alias is read as %+v", e)
	}
}

func TestHashIsOfTheBytes(t *testing.T) {
	// printf abc | sha256sum begins ba7816bf8f01cfea, but a suite must be complete: so compare two.
	a, b := read(t, whole), read(t, whole+"# a comment\n")
	if len(a.Hash) != 16 || a.Hash == b.Hash || a.Hash != read(t, whole).Hash {
		t.Errorf("hashes %q and %q", a.Hash, b.Hash)
	}
}

// mistakes change one text of whole; want is the whole error. schema means that the published
// schema also finds the error.
var mistakes = []struct {
	name, old, new, want string
	schema               bool
}{
	{"unknown key", "seed: 7", "sed: 7",
		`s.yaml:7: unknown key "sed" in "sed: 7"; did you mean "seed"?`, true},
	{"unknown key of a load", "leadIn: 0s", "leadInn: 0s",
		`s.yaml:33: unknown key "leadInn" in "leadInn: 0s"; did you mean "leadIn"?`, true},
	{"unknown key of a request", "weight: 3", "wieght: 3",
		`s.yaml:23: unknown key "wieght" in "wieght: 3"; did you mean "weight"?`, true},
	{"no name", "name: quick\n", "", `s.yaml: name is missing`, true},
	{"bad name", "name: quick", "name: Quick One", `s.yaml:1: name "Quick One" does not have ` +
		`the form of "canonical" in "name: Quick One"`, true},
	{"contract", "contract: hello", "contract: helo", `s.yaml:3: contract "helo" is not one of ` +
		`hello, http, compute, petclinic in "contract: helo"; did you mean "hello"?`, true},
	{"blocks", "blocks: 2", "blocks: 0",
		`s.yaml:6: blocks 0 is outside of the range 1 to 1000 in "blocks: 0"`, true},
	{"seed", "seed: 7", "seed: 9007199254740992", // 2^53
		`s.yaml:7: seed 9007199254740992 is outside of the range 0 to 9007199254740991 in ` +
			`"seed: 9007199254740992"`, true},
	{"cpus", "cpus: 0.5", "cpus: 0", `s.yaml:8: cpus 0 is outside of the range 0.1 to 1024 in ` +
		`"limits: {cpus: 0, memory: 832M}"`, true},
	{"cpus not a number", "cpus: 0.5", "cpus: .nan", `s.yaml:8: cpus must be a decimal ` +
		`number, not .nan in "limits: {cpus: .nan, memory: 832M}"; write a decimal number, ` +
		`such as 2 or 0.5, without quotes`, true},
	{"memory", "memory: 832M", "memory: 1M", `s.yaml:8: memory 1MiB is outside of the range ` +
		`16MiB to 1024GiB in "limits: {cpus: 0.5, memory: 1M}"`, false},
	{"memory in powers of ten", "memory: 832M", "memory: 1GB",
		`s.yaml:8: size "1GB" is not a number with a binary unit, such as 1GiB or 832M in ` +
			`"limits: {cpus: 0.5, memory: 1GB}"`, true},
	{"timeout without unit", "timeout: 3s", "timeout: 3",
		`s.yaml:9: duration "3" must be a number with a unit, such as 2s, 200ms or 1m30s in ` +
			`"timeout: 3"`,
		true},
	{"timeout of nothing", "timeout: 3s", "timeout: 0",
		`s.yaml:9: timeout 0s is outside of the range 1ms to 1h in "timeout: 0"`, false},
	{"negative", "min: 0s", "min: -1s",
		`s.yaml:12: duration "-1s" must be a number with a unit, such as 2s, 200ms or 1m30s in ` +
			`"min: -1s"`, true},
	{"duration of a list", "min: 0s", "min: [1s]",
		`s.yaml:12: a single plain value is required in "min: [1s]"`, true},
	{"warm-up upside down", "min: 0s", "min: 2m",
		`s.yaml:12: warmup.min 2m exceeds warmup.max 1m30s in "min: 2m"`, false},
	{"warm-up of compilers upside down", "min: 0s", "min: 0s\n  minCompiling: 2m",
		`s.yaml:13: warmup.minCompiling 2m exceeds warmup.max 1m30s in "minCompiling: 2m"`, false},
	{"warm-up on a quota", "min: 0s", "min: 0s\n  cores: all", `s.yaml:13: warmup.cores all: ` +
		`limits.cpus 0.5 is a CPU quota, which additional cores do not raise in "cores: all"; ` +
		`remove warmup.cores, or set limits.cpus to a whole number`, false},
	{"warm-up elsewhere", "min: 0s", "min: 0s\n  cores: every",
		`s.yaml:13: cores "every" is not one of own, all in "cores: every"`, true},
	{"pattern", "targets: [all]", "targets:\n  - all\n  - '[x'",
		`s.yaml:6: target pattern "[x" is malformed in "- '[x'"`, false},
	{"one key", "keys: [1, 9]", "keys: [1]", `s.yaml:16: keys must be a list of the first and ` +
		`the last key, such as [1, 50000] in "keys: [1]"`, true},
	{"three keys", "keys: [1, 9]", "keys: [1, 2, 3]", `s.yaml:16: keys must be a list of the ` +
		`first and the last key, such as [1, 50000] in "keys: [1, 2, 3]"`, true},
	{"keys upside down", "keys: [1, 9]", "keys: [9, 1]",
		`s.yaml:16: keys 9 to 1: the last key must not be less than the first ` +
			`in "keys: [9, 1]"`, false},
	{"no keys", "    keys: [1, 9]\n", "", `s.yaml:17: {key} has no value: the scenario has no ` +
		`keys in "- request: GET /hello/{mode}?key={key}"; add keys to the scenario, such as ` +
		`[1, 50000]`,
		false},
	{"idle keys", "    connections: 1000", "    keys: [1, 2]",
		`s.yaml:26: the scenario has keys, but no request uses {key} in "keys: [1, 2]"; remove ` +
			`keys, or put {key} into a path`, false},
	{"scenario's connections", "connections: 1000", "connections: 0",
		`s.yaml:26: connections 0 is outside of the range 1 to 65535 in "connections: 0"`, true},
	{"placeholder", "GET /hello/{mode}?", "GET /hello/{moed}?",
		`s.yaml:18: {moed}: there is no placeholder "moed" in ` +
			`"- request: GET /hello/{moed}?key={key}"; did you mean {mode}?`, false},
	{"brace", "GET /file?", "GET /{?", `s.yaml:28: a path cannot contain '{' in "- request: ` +
		`GET /{?size=2"; write %7B for this character in a path`, false},
	{"percent", "GET /file?", "GET /5%?", `s.yaml:28: the % in "%?s" begins no escape such as ` +
		`%20 in "- request: GET /5%?size=2"; write %25 for a percent sign`, false},
	{"no method", "POST /load", "/load", `s.yaml:21: request "/load" does not have the form of ` +
		`"GET /hello/{mode}?key={key}" in "- request: /load"`, true},
	{"no request", "      - request: POST /load\n        body", "      - body",
		`s.yaml:21: request is missing in "- body: ab"`, true},
	{"mode in a body", "body: ab", "body: a{mode}", `s.yaml:22: {mode} has no value here in ` +
		`"body: a{mode}"; only the path of a request to a target can have {mode}`, false},
	{"placeholder in a body", "body: ab", "body: a{sec}", `s.yaml:22: {sec}: there is no ` +
		`placeholder "sec" in "body: a{sec}"; did you mean {seq}? The text itself is ` +
		`{{sec}}`, false},
	{"mode in an answer", "value-{key}", "value-{mode}", `s.yaml:20: {mode} has no value here ` +
		`in "body: value-{mode}"; only the path of a request to a target can have {mode}`, false},
	{"key in an answer", "expect: {size: 4}", `expect: {body: "{key}"}`,
		`s.yaml:24: {key} has no value: no request before this response uses {key} in "expect: ` +
			`{body: \"{key}\"}"`, false},
	{"type without body", "body: ab", "type: text/html",
		`s.yaml:22: type is the media type of a body, but the request has no body in "type: ` +
			`text/html"`, true},
	{"type", "body: ab", "body: ab\n        type: text",
		`s.yaml:23: type "text" does not have the form of "application/json" in "type: text"`,
		true},
	{"weight", "weight: 3", "weight: 0",
		`s.yaml:23: weight 0 is outside of the range 1 to 1000000 in "weight: 0"`, true},
	{"status", "status: 206", "status: 102", `s.yaml:29: status 102 is outside of the range ` +
		`200 to 616 in "expect: {lorem: 2, status: 102}"`, true},
	{"two checks", "lorem: 2, status: 206", "lorem: 2, size: 2", `s.yaml:29: expect has size ` +
		`and lorem, but only one check of the body is possible in "expect: {lorem: 2, size: ` +
		`2}"; remove all but one of these checks`, true},
	{"size", "size: 4", "size: -1",
		`s.yaml:24: size -1 is outside of the range 0 to 1073741824 in "expect: {size: -1}"`, true},
	{"lorem", "lorem: 2", "lorem: 16777217", `s.yaml:29: lorem 16777217 is outside of the ` +
		`range 0 to 16777216 in "expect: {lorem: 16777217, status: 206}"`, true},
	{"scenario twice", "name: other", "name: cached read",
		`s.yaml:25: scenarios contains "cached read" twice; names must be unique in "- name: ` +
			`cached read"`, false},
	{"scenario's name", "name: other", "name: a/b",
		`s.yaml:25: name "a/b" does not have the form of "cached read" in "- name: a/b"`, true},
	{"load twice", "name: fixed", "name: half",
		`s.yaml:37: loads contains "half" twice; names must be unique in "- name: half"`, false},
	{"no model", "    model: closed\n", "", `s.yaml:31: model is missing in "- name: peak"`, true},
	{"model", "model: closed", "model: close", `s.yaml:32: model "close" is not one of closed, ` +
		`open, capacity in "model: close"; did you mean "closed"?`, true},
	{"connections", "leadIn: 0s", "connections: 0",
		`s.yaml:33: connections 0 is outside of the range 1 to 65535 in "connections: 0"`, true},
	{"measure", "measure: 100ms", "measure: 99ms",
		`s.yaml:41: measure 99ms is outside of the range 100ms to 24h in "measure: 99ms"`, false},
	{"arrivals", "arrivals: constant", "arrivals: poison", `s.yaml:40: arrivals "poison" is ` +
		`not one of poisson, constant, replay in "arrivals: poison"; did you mean "poisson"?`,
		true},
	{"open without rate", "    rate: 20000\n", "", `s.yaml:37: open load "fixed" has no rate ` +
		`in "- name: fixed"; add a rate such as "rate: 20000/s" or "rate: 50% of peak"`, true},
	{"closed with rate", "leadIn: 0s", "rate: 1/s",
		`s.yaml:33: closed load "peak" has a rate, but the rate of a closed load results from ` +
			`its connections in "rate: 1/s"; set model: open, or remove rate`, true},
	{"closed with arrivals", "leadIn: 0s", "arrivals: poisson",
		`s.yaml:33: closed load "peak" has arrivals, but a closed load sends a request when ` +
			`the last response is complete in "arrivals: poisson"; set model: open, or remove ` +
			`arrivals`, true},
	{"rate of nothing", "rate: 20000", "rate: 0",
		`s.yaml:39: rate "0" must be greater than 0 in "rate: 0"`, true},
	{"rate of words", "rate: 20000", "rate: fast", `s.yaml:39: rate "fast" must be a number of ` +
		`requests per second such as 20000/s, or a share of an earlier load such as 50% of ` +
		`peak, or a shape: piece 1 ("fast"): "fast" is not a number such as 1000, 0.5, 20k or ` +
		`1M; want "1000" in "rate: fast"`, true},
	{"rate too high", "rate: 20000", "rate: 10000001",
		`s.yaml:39: rate "10000001" exceeds 10000000/s in "rate: 10000001"`, true},
	{"share too high", "rate: 50% of peak", "rate: 1001% of peak",
		`s.yaml:36: rate "1001% of peak" exceeds 1000% in "rate: 1001% of peak"`, false},
	{"share of a stranger", "rate: 50% of peak", "rate: 50% of peek",
		`s.yaml:36: rate is a share of "peek", but no earlier load has this name in "rate: 50% ` +
			`of peek"; did you mean "peak"?`, false},
	{"share of a later load", "rate: 50% of peak", "rate: 50% of fixed",
		`s.yaml:36: rate is a share of "fixed", but no earlier load has this name in "rate: ` +
			`50% of fixed"; earlier closed loads are peak`, false},
	{"share of an open load", "rate: 20000", "rate: 50% of half",
		`s.yaml:39: rate is a share of "half", but the rate can only be a share of a closed ` +
			`load's throughput in "rate: 50% of half"`, false},
	{"tag", "targets: [all]", "targets: !all", // a null for the schema
		`s.yaml:4: YAML tags such as !all are not allowed; quote the value if it begins with ` +
			`an exclamation mark`, true},
	{"not YAML", "targets: [all]", "targets: [all",
		`s.yaml:5: ',' or ']' must be specified in "baseline: go"`, true},
	{"two documents", "loads:", "---\nloads:", // for the schema the first lacks loads
		`s.yaml: the file contains several YAML documents; keep one document and remove the ` +
			`lines ---`, true},
}

func TestMistakes(t *testing.T) {
	for _, row := range mistakes {
		t.Run(row.name, func(t *testing.T) {
			if !strings.Contains(whole, row.old) {
				t.Fatalf("whole does not hold %q", row.old)
			}
			_, err := suite.Read("s.yaml", []byte(strings.Replace(whole, row.old, row.new, 1)))
			if err == nil || err.Error() != row.want {
				t.Errorf("got  %v\nwant %s", err, row.want)
			}
			if _, ok := errors.AsType[*strictyaml.Error](err); !ok {
				t.Errorf("the error is a %T, want one that holds a *config.Error", err)
			}
		})
	}
}

func TestAllMistakesAreReportedAtOnce(t *testing.T) {
	text := strings.NewReplacer("blocks: 2", "blocks: 0", "weight: 3", "weight: 0",
		"50% of peak", "50% of peek").Replace(whole)
	_, err := suite.Read("s.yaml", []byte(text))
	if got := strings.Count(err.Error(), "\n") + 1; got != 3 {
		t.Errorf("%d lines, want 3:\n%v", got, err)
	}
}

// A warm-up on all cores is a configuration of its own, and the default needs no name.
func TestWarmUpCores(t *testing.T) {
	text := func(cores string) string {
		return strings.NewReplacer("cpus: 0.5", "cpus: 1", "min: 0s",
			"min: 0s"+cores).Replace(whole)
	}
	hash := func(s *suite.Suite) string { return s.SceneHash(s.Scenarios[0]) }
	usual, own := read(t, text("")), read(t, text("\n  cores: own"))
	all := read(t, text("\n  cores: all"))
	if own.Warmup != usual.Warmup || hash(own) != hash(usual) ||
		all.Warmup.Cores != suite.AllCores || hash(all) == hash(usual) {
		t.Errorf("%+v, %+v and %+v", usual.Warmup, own.Warmup, all.Warmup)
	}
	first, equal := read(t, text("\n  compilers: first")), read(t, text("\n  compilers: equal"))
	if first.Warmup != usual.Warmup || hash(first) != hash(usual) || hash(equal) == hash(usual) {
		t.Errorf("%+v, %+v and %+v", usual.Warmup, first.Warmup, equal.Warmup)
	}
	check := func(o suite.Override, want string) {
		t.Helper()
		if err := all.Override(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	check(suite.Override{Launchers: []string{"process", "docker"}},
		"targets of launcher docker cannot be moved to other cores")
}

func TestEmptyFilesAreErrors(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n"} {
		if _, err := suite.Read("s.yaml", []byte(text)); err == nil {
			t.Errorf("%q is read as a suite", text)
		}
	}
}

// A run with a time budget has more blocks than fit into it, and a warm-up that does not depend on
// it.
func TestOverrideFor(t *testing.T) {
	check := func(most, warmup time.Duration, blocks int, want time.Duration) {
		t.Helper()
		s := read(t, strings.Replace(whole, "max: 1m30s", "max: 8s", 1))
		err := s.Override(suite.Override{For: suite.Duration(most), Blocks: 0,
			Warmup: suite.Duration(warmup)})
		if err != nil || s.Blocks != blocks || s.Warmup.Max != suite.Duration(want) ||
			s.For != suite.Duration(most) {
			t.Errorf("for %v: %d blocks, warm-up %v, %v", most, s.Blocks, s.Warmup.Max, err)
		}
	}
	s := read(t, whole)
	least := s.Warmup.Min
	for _, l := range s.Loads {
		least += l.Lead + l.Measure
	}
	check(10*time.Duration(least), 0, 11, 30*time.Second)
	check(time.Duration(least), 0, 2, 30*time.Second)
	check(5000*time.Duration(least), 0, 1000, 30*time.Second)
	check(10*time.Duration(least), 12*time.Second, 11, 12*time.Second)
}
