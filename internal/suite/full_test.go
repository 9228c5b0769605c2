package suite_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/strictyaml"
	"prony.example/internal/suite"
	"prony.example/load/pace"
)

// fullFile contains every key that TestReadKeepsWhatIsGiven… leaves out.
const fullFile = "testdata/full.yaml"

func full(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(fullFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readFull(t *testing.T, text string) *suite.Suite {
	t.Helper()
	s, err := suite.Read(fullFile, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReadOfFlowsAndFiles(t *testing.T) {
	s := readFull(t, full(t))
	check := func(name string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	flow, mix := s.Scenarios[0], s.Scenarios[1]
	list, create, update := flow.Requests[0], flow.Requests[1], flow.Requests[2]
	check("flow", flow.Flow, true)
	check("zipf", flow.Zipf, 1.1)
	check("name", list.Name, "list")
	check("headers", list.Headers, map[string]suite.Text{"accept": "application/json",
		"x-request-id": "{uuid}"})
	check("checks", list.Checks[1].Header, "content-type")
	check("extract", create.Extract["place"].Header, "location")
	check("pause", create.Pause, suite.Duration(100*time.Millisecond))
	check("body of the file", update.Content(), "{\"id\": {ownerId}, \"name\": \"{hex 8}\"}\n")
	check("its type", update.Type, "text/plain")
	check("a number as text", *update.Checks[2].Is, suite.Text("1.50"))
	check("a body that is not UTF-8", mix.Requests[1].Content(), "\xff\x00{{key}} {{nothing}}\n")
	check("the type of a header", mix.Requests[1].Type, "")
	names, known := flow.Variables()
	check("variables", names, []string{"ownerId", "place"})
	check("variables known", known, []int{0, 0, 2})

	people, steady, rising, again := s.Loads[0], s.Loads[1], s.Loads[2], s.Loads[3]
	check("users", people.Users.At(1e9), 10.0)
	check("connections of users", people.Connections, 20)
	check("think", people.Think, suite.Think{Kind: suite.Uniform,
		Lo: suite.Duration(500 * time.Millisecond), Hi: suite.Duration(1500 * time.Millisecond)})
	check("churn", people.Churn, 100)
	check("connections", steady.Connections, 64)
	check("pacing", steady.Pacing, "frugal")
	check("engine", steady.Engine, "epoll")
	check("the default engine", again.Engine, "")
	check("shape", rising.Schedule(1000).Rate.At(1e9), 500.0) // 50 % of 1,000
	check("arrivals of the shape", rising.Schedule(1000).Arrivals, pace.Poisson)
	check("trace", again.Schedule(0), pace.Schedule{Arrivals: pace.Replay,
		Trace: []int64{0, 25e7, 15e8}})
	if err := s.Override(suite.Override{}); err != nil {
		t.Error(err)
	}
	mix.Connections = 7
	check("users keep theirs", s.LoadsOf(mix)[0].Connections, 20)
	check("others do not", s.LoadsOf(mix)[1].Connections, 7)
}

// bare is the full suite without variants, which few targets can have.
func bare(t testing.TB) string {
	t.Helper()
	before, riders, _ := strings.Cut(full(t), "variants:\n")
	_, after, found := strings.Cut(riders, "columns:")
	if !found {
		t.Fatal("the full suite has no variants before its columns")
	}
	return before + "columns:" + after
}

func TestDriversMultiplyTrials(t *testing.T) {
	clinic := []suite.Target{{Name: "go", Service: "go", Contracts: []string{"petclinic"}}}
	trials := func(drivers string) (ids, names []string) {
		s := readFull(t, strings.Replace(bare(t), "drivers: [prony, wrk]\n", drivers, 1))
		for _, tr := range plan(t, s, clinic).Trials[:4] {
			ids, names = append(ids, tr.ID), append(names, tr.Driver)
		}
		return ids, names
	}
	check := func(drivers string, wantIDs, wantNames string) {
		t.Helper()
		ids, names := trials(drivers)
		if strings.Join(ids, " ") != wantIDs || strings.Join(names, " ") != wantNames {
			t.Errorf("%q: %s by %s, want %s by %s", drivers, ids, names, wantIDs, wantNames)
		}
	}
	check("drivers: [prony, wrk]\n", "b1-01-go-mix-prony b1-02-go-owners-prony "+
		"b1-03-go-owners-wrk b1-04-go-mix-wrk", "prony prony wrk wrk")
	one := "b1-01-go-owners b1-02-go-mix b2-03-go-mix b2-04-go-owners"
	check("drivers: [prony]\n", one, "prony prony prony prony")
	check("", one, "prony prony prony prony")
	check("drivers: [wrk]\n", one, "wrk wrk wrk wrk")
}

// An explicit default has the same hash as an omitted key.
func TestDefaultsHaveOnePlan(t *testing.T) {
	same := func(old, new string, want bool) {
		t.Helper()
		a := plan(t, read(t, whole), catalog)
		b := plan(t, read(t, strings.Replace(whole, old, new, 1)), catalog)
		if (a.Hash == b.Hash) != want || !want && reflect.DeepEqual(a.Suite, b.Suite) {
			t.Errorf("%q: hash %s, was %s; the same: want %v", new, b.Hash, a.Hash, want)
		}
	}
	same("loads:", "drivers: [prony]\nloads:", true)
	same("loads:", "drivers: [wrk]\nloads:", false)
	same("leadIn: 0s", "leadIn: 0s\n    engine: auto\n    pacing: precise\n    churn: 0", true)
	same("leadIn: 0s", "leadIn: 0s\n    engine: epoll", false)
	same("leadIn: 0s", "leadIn: 0s\n    think: 1s", false)
	same("rate: 20000", "rate: 20k", true)
	same("rate: 20000", "rate: ramp 1..20000 in 1s", false)
	same("weight: 3", "weight: 3\n        headers: {a: b}", false)
	// Pinned, so that a change of the hash is noticed: it makes runs differ from earlier ones.
	if got := plan(t, read(t, whole), catalog).Hash; got != "1ec00a98e2b0e50d" {
		t.Errorf("the plan's hash is %s", got)
	}
}

// The bytes of bodies and traces are part of the suite's hash and of the plan's.
func TestHashesFollowTheFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"owner.json", "blob.bin", "arrivals.trace"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, string(data))
	}
	clinic := []suite.Target{{Name: "go", Service: "go", Contracts: []string{"petclinic"}}}
	hashes := func() [2]string {
		t.Helper()
		s, err := suite.Read(filepath.Join(dir, "full.yaml"), []byte(bare(t)))
		if err != nil {
			t.Fatal(err)
		}
		return [2]string{s.Hash, plan(t, s, clinic).Hash}
	}
	before := hashes()
	if s := readFull(t, bare(t)); before != [2]string{s.Hash, plan(t, s, clinic).Hash} {
		t.Error("the folder changes the hashes")
	}
	for _, change := range []struct{ name, text string }{
		{"owner.json", strings.Repeat("x", 37)}, // the same length as before
		{"owner.json", "{}"}, {"blob.bin", "\xff"}, {"arrivals.trace", "# prony trace 1\n1\n"},
	} {
		write(t, dir, change.name, change.text)
		after := hashes()
		if after[0] == before[0] || after[1] == before[1] {
			t.Errorf("%s changes and the hashes do not: %v, %v", change.name, before, after)
		}
		before = after
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Only files in or below the suite's folder are read, with limited size.
func TestFilesThatCannotBeRead(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "suites")
	if err := os.MkdirAll(filepath.Join(dir, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, outside, "secret", "x")
	write(t, dir, "below/body", "x")
	write(t, dir, "large", strings.Repeat("x", 16<<20+1))
	if err := os.Symlink("../secret", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	check := func(name, want string) {
		t.Helper()
		text := strings.Replace(whole, "body: ab", "bodyFile: "+name, 1)
		_, err := suite.Read(filepath.Join(dir, "s.yaml"), []byte(text))
		if want != "" {
			want = filepath.Join(dir, "s.yaml") + ":22: read " + name + ": " + want + " in " +
				"\"bodyFile: " +
				name + `"; write the file's path relative to the suite's folder, and keep the ` +
				"file in or below that folder"
		}
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	check("below/body", "")
	check("below/../below/body", "")
	check("none", "no such file or directory")
	check("below", "it is not a regular file")
	check("large", "its size is 16777217 bytes, but at most 16777216 bytes are allowed")
	check("../secret", "path escapes from parent")
	check("link", "path escapes from parent")
	check(filepath.Join(outside, "secret"), "path escapes from parent")
}

// slips change one text of the full suite; a row is as in mistakes.
var slips = []struct {
	name, old, new, want string
	schema               bool
}{
	{"driver", "[prony, wrk]", "[prony, wrc]", `:3: drivers "wrc" is not one of prony, wrk, ` +
		`wrk2, hey, k6, h2load, jmeter in "drivers: [prony, wrc]"; did you mean "wrk"?`, true},
	{"driver twice", "[prony, wrk]", "[wrk, wrk]",
		`:3: drivers contains "wrk" twice; names must be unique in "drivers: [wrk, wrk]"`, true},
	{"flow with weights", "      - name: list", "      - name: list\n        weight: 1",
		`:11: each step of a flow is sent once, so it cannot have a weight in "weight: 1"; ` +
			`remove weight`, true},
	{"extract in a mix", "        weight: 2", "        extract: {id: {json: id}}",
		`:36: extract sets values for later steps, but the scenario is not a flow in "extract: ` +
			`{id: {json: id}}"; write "flow: true" if the requests are steps of a flow`, true},
	{"pause in a mix", "        weight: 2", "        pause: 1s", `:36: pause is the time ` +
		`between two steps, but the scenario is not a flow in "pause: 1s"; write "flow: true" ` +
		`if the requests are steps of a flow`, true},
	{"zipf", "zipf: 1.1", "zipf: 0", `:8: zipf 0 is outside of the range 0.01 to 10 in "zipf: ` +
		`0"`, true},
	{"zipf without keys", "  - name: mix", "  - name: mix\n    zipf: 1", `:34: zipf needs ` +
		`keys, but the scenario has no keys in "zipf: 1"; add keys to the scenario, such as ` +
		`[1, 50000]`, true},
	{"request's name twice", "name: create", "name: list",
		`:16: two requests have the name "list"; names must be unique in "- name: list"`, false},
	{"header's name", "accept: app", `"a b": app`, `:12: headers "a b" does not have the form ` +
		`of "accept" in "headers: {\"a b\": application/json, x-request-id: \"{uuid}\"}"`, true},
	{"headers' names", "accept: app", `"b c": x, "a b": app`,
		`:12: headers "a b" does not have the form of "accept" in "headers: {\"b c\": x, ` +
			`\"a b\": application/json, x-request-id: \"{uuid}\"}"` + "\n" + fullFile +
			`:12: headers "b c" does not have the form of "accept" in ` +
			`"headers: {\"b c\": x, \"a b\": application/json, x-request-id: \"{uuid}\"}"`, true},
	{"header's value", `"{uuid}"`, `"{uid}"`, `:12: {uid}: there is no placeholder "uid" in ` +
		`"headers: {accept: application/json, x-request-id: \"{uid}\"}"; did you mean {uuid}? ` +
		`The text itself is {{uid}}`, false},
	{"header over two lines", `"{uuid}"`, `"a\nb"`, `:12: header field x-request-id cannot ` +
		`contain line ends or other control characters in "headers: {accept: application/json, ` +
		`x-request-id: \"a\\nb\"}"`, false},
	{"header of the body", "accept:", "Content-Length:", `:12: header field Content-Length ` +
		`cannot be set: it follows from the body in "headers: {Content-Length: ` +
		`application/json, x-request-id: \"{uuid}\"}"; remove this header field`, false},
	{"header twice", "accept:", "X-Request-Id:", `:12: header field x-request-id is set twice ` +
		`in "headers: {X-Request-Id: application/json, x-request-id: \"{uuid}\"}"; remove one ` +
		`of the two header fields`, false},
	{"header of nothing", "accept: application/json", "accept: null", `:12: header field ` +
		`accept has no value in "headers: {accept: null, x-request-id: \"{uuid}\"}"; write "" ` +
		`for an empty value`,
		true},
	{"type twice", "bodyFile: blob.bin", "bodyFile: blob.bin\n        type: text/plain",
		`:40: type and the header field Content-Type both set the media type of the body in ` +
			`"headers: {Content-Type: application/octet-stream}"; remove type or the header ` +
			`field`, false},
	{"two bodies", "bodyFile: blob.bin", "bodyFile: blob.bin\n        body: a",
		`:38: the request has both body and bodyFile in "bodyFile: blob.bin"; remove body or ` +
			`bodyFile`, true},
	{"no such file", "bodyFile: blob.bin", "bodyFile: blob", `:38: read blob: no such file or ` +
		`directory in "bodyFile: blob"; write the file's path relative to the suite's folder, ` +
		`and keep the file in or below that folder`,
		false},
	{"key in a body without keys", "        weight: 2", "        body: '{key}'",
		`:36: {key} has no value: the scenario has no keys in "body: '{key}'"; add keys to the ` +
			`scenario, such as [1, 50000]`, false},
	{"pick of blanks", "{pick a|b}", "{pick a b|c}", `:35: a path cannot contain ' ' in "- ` +
		`request: GET /{pick a b|c}/{random 1..9}"; write %20 for this character in a path`, false},
	{"range", "{random 1..9}", "{random 9..1}", `:35: {random 9..1}: 9 is above 1 in ` +
		`"- request: GET /{pick a|b}/{random 9..1}"; write it as in {random 1..100}`, false},
	{"variable before its time", "body: '{\"name\"", "body: '{ownerId}{\"name\"",
		`:18: {ownerId} is used before a step has set its value in "body: '{ownerId}{\"name\": ` +
			`\"{hex 8}\", \"age\": {random 18..99}}'"; use this placeholder only in later steps`,
		false},
	{"check before its time", `{json: "#", matches: "^[0-9]+$"}`, `{json: "#", is: "{place}"}`,
		`:14: {place} is used before a step has set its value in "- {json: \"#\", is: ` +
			`\"{place}\"}"; use this placeholder only in later steps`, false},
	{"another check before its time", "contains: json", "contains: '{place}'",
		`:15: {place} is used before a step has set its value in "- {header: content-type, ` +
			`contains: '{place}'}"; use this placeholder only in later steps`, false},
	{"variable that is none", "/owners/{ownerId}\n", "/owners/{ownerid}\n", `:26: {ownerid}: ` +
		`there is no placeholder "ownerid" in "request: PUT /owners/{ownerid}"; did you mean ` +
		`{ownerId}?`,
		false},
	{"variable's name", "place: {header", "key: {header", `:23: {key} is a built-in ` +
		`placeholder in "key: {header: location}"; choose another name`, false},
	{"variable's form", "place: {header", "Place: {header", `:23: extract "Place" does not ` +
		`have the form of "ownerId" in "Place: {header: location}"`, true},
	{"two places", "{json: id}", "{json: id, body: true}", `:22: the check or extract has 2 ` +
		`sources of a value in "ownerId: {json: id, body: true}"; set exactly one of json, ` +
		`header, regex, and body: true`, true},
	{"no place", "{json: id}", "{body: false}", `:22: the check or extract has 0 sources of a ` +
		`value in "ownerId: {body: false}"; set exactly one of json, header, regex, and body: ` +
		`true`, false},
	{"key of a place", "{json: id}", "{jason: id}", `:22: unknown key "jason" in ` +
		`"ownerId: {jason: id}"; did you mean "json"?`, true},
	{"regex", "{json: id}", "{regex: a(}", ":22: find by regular expression: error parsing " +
		"regexp: " +
		"missing closing ): `a(`; the syntax is RE2's, without backreferences and lookaround in " +
		`"ownerId: {regex: a(}"`, false},
	{"no check", ", contains: json", "", `:15: the check has 0 conditions in "- {header: ` +
		`content-type}"; set exactly one of is, contains, matches and exists`, true},
	{"two checks of one", "exists: false", "exists: false, is: a", `:31: the check has 2 ` +
		`conditions in "- {header: x-error, exists: false, is: a}"; set exactly one of is, ` +
		`contains, matches and exists`,
		true},
	{"check of nothing", "header: content-type, contains", "contains",
		`:15: the check or extract has 0 sources of a value in "- {contains: json}"; set ` +
			`exactly one of json, header, regex, and body: true`, true},
	{"users' number", "ramp 0..20 in 2s, 20 for 3s", "0", `:43: users "0" never reach 1 in ` +
		`"users: 0"`, true},
	{"users of words", "ramp 0..20 in 2s, 20 for 3s", "ramp 0..20", `:43: users "ramp 0..20" ` +
		`must be a number over time, such as 100 or 'ramp 0..700 in 5m': piece 1 ("ramp ` +
		`0..20"): want "ramp 1000..5000 in 10s" in "users: ramp 0..20"`, false},
	{"more users than connections", "churn: 100", "connections: 19", `:45: 19 connections are ` +
		`too few for up to 20 users: each user needs its own connection in "connections: 19"; ` +
		`remove connections`,
		false},
	{"think", "exponential 1s", "gaussian 1s", `:48: think time "gaussian 1s" must have a form ` +
		`such as 1s, uniform 500ms..1500ms or exponential 1s in "think: gaussian 1s"`, true},
	{"churn", "churn: 100", "churn: -1", `:45: churn -1 is outside of the range 0 to 1000000 ` +
		`in "churn: -1"`,
		true},
	{"pacing", "frugal", "exact", `:49: pacing "exact" is not one of precise, frugal in ` +
		`"pacing: exact"`, true},
	{"engine", "engine: epoll", "engine: poll", `:50: engine "poll" is not one of auto, epoll, ` +
		`nethttp in "engine: poll"; did you mean "epoll"?`, true},
	{"open users", "maxConnections: 200", "users: 3", `:54: open load "rising" has users, but ` +
		`only closed loads can have users in "users: 3"; set model: closed, or remove users`,
		true},
	{"open think", "maxConnections: 200", "think: 3s", `:54: open load "rising" has a think ` +
		`time, but only closed loads can have a think time in "think: 3s"; set model: closed, ` +
		`or remove think`,
		true},
	{"shape of a stranger", "% of steady", "% of stead", `:53: rate is a share of "stead", but ` +
		`no earlier load has this name in "rate: ramp 10..90 in 2s % of stead"; did you mean ` +
		`"steady"?`, false},
	{"replay without a trace", "    trace: arrivals.trace\n", "", `:57: arrivals: replay needs ` +
		`a trace in "arrivals: replay"; add the key trace with the file's name`, true},
	{"replay with a rate", "trace: arrivals.trace", "trace: arrivals.trace\n    rate: 5",
		`:59: a load with arrivals: replay cannot have a rate: its trace defines the rate in ` +
			`"rate: 5"; remove rate`, true},
	{"trace without replay", "    arrivals: replay\n", "",
		`:57: trace requires arrivals: replay in "trace: arrivals.trace"; write "arrivals: ` +
			`replay"`, false},
	{"trace that is none", "trace: arrivals.trace", "trace: owner.json", `:58: read the trace: ` +
		`line 1: "{\"id\": {ownerId}, \"name\": \"{hex 8}\"}" is not "# prony trace 1"; a trace ` +
		`begins with that line in "trace: owner.json"`, false},
	{"closed with a trace", "churn: 100", "trace: arrivals.trace", `:45: closed load "people" ` +
		`has a trace, but a closed load sends a request when the last response is complete in ` +
		`"trace: arrivals.trace"; set model: open, or remove trace`, true},
}

func TestSlips(t *testing.T) {
	good := full(t)
	for _, row := range slips {
		t.Run(row.name, func(t *testing.T) {
			if !strings.Contains(good, row.old) {
				t.Fatalf("%s does not hold %q", fullFile, row.old)
			}
			_, err := suite.Read(fullFile, []byte(strings.Replace(good, row.old, row.new, 1)))
			if want := fullFile + row.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			var at *strictyaml.Error
			if !errors.As(err, &at) {
				t.Errorf("the error is a %T, want one that holds a *config.Error", err)
			}
		})
	}
}

func TestSchemaAgreesOnSlips(t *testing.T) {
	s, good := compiled(t), full(t)
	if err := validate(t, s, []byte(good)); err != nil {
		t.Errorf("the schema refuses a good suite: %v", err)
	}
	for _, row := range slips {
		err := validate(t, s, []byte(strings.Replace(good, row.old, row.new, 1)))
		if (err != nil) != row.schema {
			t.Errorf("%s: the schema says %v; does it find the mistake: want %v", row.name, err,
				row.schema)
		}
	}
}

// An edited suite is checked without opening any file that its own file does not name, and a suite
// with an error can be fixed.
func TestCheckEdited(t *testing.T) {
	own := full(t)
	check := func(data, text, want string) {
		t.Helper()
		err := suite.CheckEdited("testdata/full.yaml", []byte(data), text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	check(own, own, "")
	check(own, "bloks: 1\n"+own, `YAML:1: unknown key "bloks"`)
	check(own, strings.Replace(own, "bodyFile: blob.bin", "bodyFile: arrivals.trace", 1), "cannot "+
		"check a suite with the file arrivals.trace: the server opens only files that a saved "+
		"suite names")
	check(own, strings.Replace(own, "bodyFile: blob.bin", "bodyFile: /etc/passwd", 1),
		"cannot check a suite with the file /etc/passwd")
	check("name: [", strings.Replace(whole, "body: ab", "body: b", 1), "")
}
