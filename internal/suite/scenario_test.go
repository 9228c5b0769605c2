package suite_test

import (
	"reflect"
	"strings"
	"testing"

	"prony.example/internal/suite"
)

const alone = `name: owners
flow: true
requests:
  - request: POST /owners
    body: a
    extract: {id: {json: id}}
  - request: GET /owners/{id}
`

// Objectives on routes name requests of every scenario, and messages show no invented names.
func TestNamesInMessages(t *testing.T) {
	check := func(objective, want string) {
		t.Helper()
		_, err := suite.Read("s.yaml", []byte("name: x\ncontract: hello\nscenarios:\n"+
			"  - {name: a, requests: [{request: GET /a}, {request: GET /b, name: b}]}\n"+
			"  - {name: m, requests: [{request: 'GET /{mode}'}, {request: GET /b, name: b}]}\n"+
			"loads: [{name: c, model: capacity, slo: '"+objective+"'}]\n"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", objective, err, want)
		}
	}
	check(`route "GET /nosuch" p99<5ms`, "s.yaml:6: scenario a: objective \"route GET /nosuch "+
		"p99<5ms\": the load has no such route; there are GET /a, b in ")
	check("route b p99<5ms", "")
	_, err := suite.Read("s.yaml", []byte("name: x\ncontract: hello\nscenarios:\n  - {name: a, "+
		"requests: [{request: GET /a}]}\nloads: [{name: c, model: capacity, slo: 'route \"GET "+
		"/a\" p99<5ms'}]\n"))
	if err == nil || !strings.Contains(err.Error(), "the load sends only one request") {
		t.Error(err)
	}
	_, err = suite.ReadScenario("s.yaml", []byte("name: x\nflow: true\nrequests:\n"+
		"  - {request: GET /, extract: {Up: {json: a}}}\n  - {request: 'GET /{v}'}\n"))
	if err == nil || strings.Contains(err.Error(), "misnamed") ||
		!strings.Contains(err.Error(), "known are key, ") {
		t.Error(err)
	}
}

// A scenario in a file of its own is read like one of a suite.
func TestReadScenario(t *testing.T) {
	got, err := suite.ReadScenario("testdata/s.yaml", []byte(alone))
	if err != nil {
		t.Fatal(err)
	}
	indented := strings.ReplaceAll(strings.TrimSpace(alone), "\n", "\n    ")
	s := read(t, "name: s\ncontract: hello\nscenarios:\n  - "+indented+
		"\nloads: [{name: first, model: closed}]\n")
	if !reflect.DeepEqual(*got, s.Scenarios[0]) {
		t.Errorf("alone it is %+v, in a suite %+v", *got, s.Scenarios[0])
	}
}

func TestReadScenarioSaysWhatIsWrong(t *testing.T) {
	check := func(old, new, want string) {
		t.Helper()
		if !strings.Contains(alone, old) {
			t.Fatalf("the scenario does not hold %q", old)
		}
		_, err := suite.ReadScenario("testdata/s.yaml", []byte(strings.Replace(alone, old, new, 1)))
		if err == nil || err.Error() != "testdata/s.yaml:"+want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	check("body: a", "body: a{id}",
		`5: {id} is used before a step has set its value in "body: a{id}"; use `+
			`this placeholder only in later steps`)
	check("body: a", "bodyFile: none", `5: read none: no such file or `+
		`directory in "bodyFile: none"; write the file's path relative to the suite's folder, `+
		`and keep the file in or below that folder`)
	check("body: a", "bodyFile: owner.json", `5: {ownerId}: there is no placeholder "ownerId" in `+
		`"bodyFile: owner.json"; known are id, key, seq, random, hex, uuid, pick, lab. The text `+
		`itself is {{ownerId}}`)
	check("body: a", "body: a{lab port}", `5: {lab port} is a placeholder for `+
		`responses, but this text is sent in a request in "body: a{lab port}"; only `+
		`expect.body and the key is of a check can have this placeholder`)
	check("body: a", "body: a\n    weight: 1", `6: each step of a flow is sent `+
		`once, so it cannot have a weight in "weight: 1"; remove weight`)
	check("owners/{id}", "owners/{mode}", `7: {mode} has no value here in "- `+
		`request: GET /owners/{mode}"; only the path of a request to a target can have {mode}`)
	check("flow: true", "flo: true",
		`2: unknown key "flo" in "flo: true"; did you mean "flow"?`)
	check("flow: true", "keys: [1, 2]\nflow: true", `2: the scenario has keys, `+
		`but no request uses {key} in "keys: [1, 2]"; remove keys, or put {key} into a path`)
	check("name: owners\n", "", " name is missing")
	check(alone, "", " it is empty")
	check("flow: true", "flow: true\n---", " the file contains several YAML documents; keep "+
		"one document and remove the lines ---")
}

func TestVariables(t *testing.T) {
	captures := func(names ...string) suite.Request {
		r := suite.Request{Extract: map[string]suite.Place{}}
		for _, n := range names {
			r.Extract[n] = suite.Place{}
		}
		return r
	}
	steps := []suite.Request{captures("b", "a"), captures("c", "a"), captures()}
	names, known := suite.Scenario{Requests: steps}.Variables()
	if !reflect.DeepEqual(names, []string{"a", "b", "c"}) ||
		!reflect.DeepEqual(known, []int{0, 2, 3}) {
		t.Errorf("variables %q, known %d; want a b c and 0 2 3", names, known)
	}
}

// Texts that YAML would read as numbers, booleans or several lines stay unchanged.
func TestTextsAreAsTheyStand(t *testing.T) {
	check := func(yaml string, want suite.Text) {
		t.Helper()
		s, err := suite.ReadScenario("s.yaml", []byte("name: a\nrequests:\n  - request: GET /\n"+
			"    checks: [{json: a, matches: b}]\n    headers:\n      accept: "+yaml+"\n"))
		if err != nil || s.Requests[0].Headers["accept"] != want {
			t.Errorf("%q is read as %+v, %v; want %q", yaml, s, err, want)
		}
	}
	check("1.50", "1.50")
	check("0x10", "0x10")
	check("true", "true")
	check(`"1"`, "1")
	check("''", "")
	check("|-\n        in a block", "in a block")
}

// HEAD and OPTIONS can be sent. Expectations for the body of a response to HEAD are errors: it has
// none.
func TestMethods(t *testing.T) {
	check := func(want, request string) {
		t.Helper()
		_, err := suite.ReadScenario("s.yaml", []byte("name: a\nflow: true\nrequests:\n"+
			"  - request: "+request+"\n  - request: GET /\n"))
		if want == "" && err != nil || want != "" && (err == nil ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", request, err, want)
		}
	}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		check("", method+" /a")
	}
	for _, method := range []string{"TRACE", "CONNECT", "head", "GETS"} {
		check(`"- request: `+method+` /a"`, method+" /a")
	}
	check("", "HEAD /\n    checks: [{header: etag, exists: true}]")
	check("", "HEAD /\n    extract: {tag: {header: etag}}\n    expect: {status: 204}")
	check("", "OPTIONS /\n    expect: {body: \"\"}")
	const none = "the response to a HEAD request has no body in "
	check(none+`"body: a"`, "HEAD /\n    expect:\n      body: a")
	check(none+`"size: 0"`, "HEAD /\n    expect:\n      size: 0")
	check(none+`"lorem: 5"`, "HEAD /\n    expect:\n      lorem: 5")
	check(none, "HEAD /\n    checks: [{header: a, exists: true}, {json: a, is: b}]")
	check(none, "HEAD /\n    checks: [{body: true, is: b}]")
	check(none, "HEAD /\n    extract: {tag: {regex: a}}")
}

// Paths are sent as prony load sends those of URLs.
func TestLineBeyondASCII(t *testing.T) {
	method, path := suite.Request{Request: "GET /grüße/{mode}?q={pick ä|b}&r=%41"}.Line("virtual")
	if method != "GET" || path != "/gr%C3%BC%C3%9Fe/virtual?q={pick %C3%A4|b}&r=%41" {
		t.Errorf("%s %s", method, path)
	}
}
