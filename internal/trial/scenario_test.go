package trial

import (
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"prony.example/internal/generator"
	"prony.example/internal/suite"
	"prony.example/load"
	"prony.example/load/network"
	"prony.example/load/pace"
	"prony.example/load/template"
	"prony.example/record"
)

// words is a scenario with all features that the simplest one lacks.
const words = `name: owners
flow: true
keys: [3, 9]
zipf: 1.5
requests:
  - name: create
    request: POST /owners/{key}
    headers: {b: "{uuid}", a: x}
    body: '{"n": {seq}}'
    expect: {status: 201, size: 4}
    extract: {id: {json: id}, at: {header: location}}
    pause: 50ms
  - request: GET /owners/{id}
    expect: {body: "{id}"}
    checks:
      - {json: id, is: "{id}"}
  - request: GET /lorem
    expect: {lorem: 5}
`

func scenarioOf(t *testing.T, text string) suite.Scenario {
	t.Helper()
	s, err := suite.ReadScenario("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

func TestScenarioForTheGenerator(t *testing.T) {
	got, err := generator.Scenario(scenarioOf(t, words), "")
	if err != nil {
		t.Fatal(err)
	}
	create, read := got.Requests[0], got.Requests[1]
	// The order is that of the generator's numbers for the flow's variables.
	if len(create.Extract) != 2 || create.Extract[0].Var != "at" || create.Extract[1].Var != "id" {
		t.Errorf("extracted are %+v, want at and id", create.Extract)
	}
	if len(read.Checks) != 1 || read.Checks[0].String() != "json id is {id}" ||
		!read.Checks[0].Holds(
			nil,
			[]byte(`{"id": 7}`),
			&template.Values{Vars: [][]byte{nil, {'7'}}},
		) {
		t.Errorf("checks are %v", read.Checks)
	}
	create.Extract, read.Checks = nil, nil
	want := load.Scenario{Flow: true, KeyLo: 3, KeyHi: 9, Zipf: 1.5, Requests: []load.Request{
		{Name: "create", Method: "POST", Path: "/owners/{key}", Body: `{"n": {seq}}`,
			Type: "text/plain", Weight: 1, Status: 201, WantSize: 4, Pause: 50 * time.Millisecond,
			Headers: []load.Header{{Name: "a", Value: "x"}, {Name: "b", Value: "{uuid}"}}},
		{Method: "GET", Path: "/owners/{id}", Weight: 1, Status: 200, Want: "{id}", HasWant: true,
			WantSize: -1},
		{Method: "GET", Path: "/lorem", Weight: 1, Status: 200, Want: "Lorem", HasWant: true,
			WantSize: -1},
	}}
	got.Requests[0], got.Requests[1] = create, read
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestModeIsFilledIn(t *testing.T) {
	s := suite.Scenario{Requests: []suite.Request{{Request: "GET /hello/{mode}?k={key}"}}}
	got, err := generator.Scenario(s, "virtual")
	if err != nil || got.Requests[0].Path != "/hello/virtual?k={key}" {
		t.Errorf("%+v, %v", got.Requests[0], err)
	}
}

// A load like the warm-up continues it; one over a network does not.
func TestContinued(t *testing.T) {
	check := func(change func(*record.Load), want bool) {
		t.Helper()
		rec := &record.Record{Warmup: record.Warmup{Connections: 8},
			Loads: []record.Load{{Model: record.Closed, Connections: 8}}}
		rec.Loads[0].Series.IntervalNs = 1e9
		change(&rec.Loads[0])
		if got := continued(rec) != nil; got != want {
			t.Errorf("continued is %v, want %v", got, want)
		}
	}
	check(func(*record.Load) {}, true)
	check(func(l *record.Load) { l.Connections = 9 }, false)
	check(func(l *record.Load) { l.Network = &record.Network{DelayNs: 5e6} }, false)
}

func TestModelOfALoad(t *testing.T) {
	check := func(l suite.Load, want load.Spec) {
		t.Helper()
		var got load.Spec
		if model(&got, l); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v is offered as\n%+v, want\n%+v", l, got, want)
		}
	}
	check(suite.Load{Connections: 64}, load.Spec{Pacing: load.Precise})
	check(suite.Load{Churn: 10, Pacing: "frugal", Engine: "epoll"},
		load.Spec{Churn: 10, Pacing: load.Frugal, Describe: load.EngineInfo{Name: "epoll"}})
	d := network.Delay{RoundTrip: 5 * time.Millisecond, Jitter: time.Millisecond}
	check(suite.Load{Network: suite.Network{Delay: d}},
		load.Spec{Network: d, Pacing: load.Precise})
	think := load.Think{Kind: "uniform", Lo: time.Second, Hi: 2 * time.Second}
	words := suite.Think{Kind: suite.Uniform, Lo: suite.Duration(time.Second),
		Hi: suite.Duration(2 * time.Second)}
	// Without users, every connection pauses between requests.
	check(suite.Load{Connections: 64, Think: words},
		load.Spec{Pacing: load.Precise, Users: &load.Users{Number: pace.Flat(64), Think: think}})
	ramp := pace.Profile{Pieces: []pace.Piece{{ForNs: 1e9, From: 0, To: 20}}}
	check(suite.Load{Connections: 20, Think: words, Users: suite.Users{Profile: ramp}},
		load.Spec{Pacing: load.Precise, Users: &load.Users{Number: ramp, Think: think}})
	check(suite.Load{Connections: 20, Users: suite.Users{Profile: ramp}},
		load.Spec{Pacing: load.Precise, Users: &load.Users{Number: ramp}})
}

// A setup is no request of the load; variables of data and setup have the generator's numbers.
func TestSessionForTheGenerator(t *testing.T) {
	dir := t.TempDir()
	const data = "who\nann\nben\n"
	if err := os.WriteFile(filepath.Join(dir, "u.csv"), []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := suite.ReadScenario(filepath.Join(dir, "s.yaml"), []byte(`name: s
cookies: true
data: u.csv
rows: random
requests:
  - request: POST /login?of={who}
    setup: user
    headers: {x-key: "${PRONY_TEST_KEY}"}
    body: '{"user": "{who}"}'
    extract: {token: {header: set-cookie, regex: 't=(\d+)'}}
  - request: GET /{token}
    checks: [{body: true, is: "{token} {who}"}]
`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := generator.Scenario(*s, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Setup) != 1 || len(got.Requests) != 1 || !got.PerUser || !got.Cookies ||
		!got.Drawn || len(got.Rows) != 2 || got.Columns[0] != "who" ||
		got.Setup[0].Path != "/login?of={who}" {
		t.Errorf("it is %+v", got)
	}
	if !got.Requests[0].Checks[0].Holds(nil, []byte("7 ann"),
		&template.Values{Vars: [][]byte{[]byte("ann"), {'7'}}}) {
		t.Errorf("checks are %v", got.Requests[0].Checks)
	}
	// The first request to a service, which measures its start, is of the first row.
	t.Setenv("PRONY_TEST_KEY", "s3cret")
	f := &life{trial: Spec{Scene: *s}, scene: got, addr: netip.MustParseAddrPort("127.0.0.1:1")}
	r, err := f.firstRequest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path+"?"+r.URL.RawQuery != "/login?of=ann" ||
		r.Header.Get("X-Key") != "s3cret" || string(body) != `{"user": "ann"}` {
		t.Errorf("the first request is %s with %q and %s, %v", r.URL, r.Header, body, err)
	}
}
