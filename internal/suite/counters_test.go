package suite

import (
	"strings"
	"testing"
)

// Backend calls of requests refer to the target's counters, and the requests are the same with and
// without them.
func TestCounters(t *testing.T) {
	read := func(counters, asks string) (*Project, error) {
		return ReadProject("prony.yaml", []byte("targets:\n  shop:\n    command: ./shop\n"+
			"    processes: [{name: db, command: ./db}]\n    counters: {"+counters+"}\n"+
			"requests: [{request: GET /"+asks+"}]\n"))
	}
	const database = "database: {postgres: 'postgres://a:b@127.0.0.1:{db.port}/x'}"
	p, err := read(database, ", backendCalls: {database: 2}")
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Suite("")
	if err != nil || s.Scenarios[0].Requests[0].BackendCalls["database"] != 2 {
		t.Fatalf("it asks %v, error %v", s.Scenarios, err)
	}
	bare, err := read(database, "")
	if err != nil {
		t.Fatal(err)
	}
	without, err := bare.Suite("")
	if err != nil || without.SceneHash(without.Scenarios[0]) != s.SceneHash(s.Scenarios[0]) {
		t.Errorf("with asks other requests are sent, error %v", err)
	}
	check := func(counters, asks, want string) {
		t.Helper()
		if _, err := read(counters, asks); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s %s: it says %v, want %q", counters, asks, err, want)
		}
	}
	check(database, ", backendCalls: {databas: 1}",
		"prony.yaml:6: no target has the counter databas in")
	check(database, ", backendCalls: {database: 0}",
		"prony.yaml:6: the request has database: 0 backend calls")
	check(database, ", backendCalls: {database: 0.5}", "prony.yaml:6:")
	check(database, ", setup: run, backendCalls: {database: 1}}, {request: GET /",
		"prony.yaml:6: a setup request cannot have backendCalls: setup is not part of a window")
	check("db: {}", "", "prony.yaml:5: the counter db must have either postgres or metrics")
	check("db: {postgres: a, metrics: b}", "", "must have either postgres or metrics")
	check("db: {metrics: b}", "", "prony.yaml:5: series is missing")
	check("db: {postgres: a, series: b}", "", "prony.yaml:5: series is allowed only with metrics")
	check("db: {metrics: a, series: b, statements: true}", "",
		"statements is allowed only with postgres")
	check("db: {postgres: 'postgres://a:b@h:{dbs.port}/x'}", "", "{dbs.port} names a process "+
		"that the target does not have")
	if _, err := ReadScenario("s.yaml", []byte("name: a\nrequests: [{request: GET /, "+
		"backendCalls: {database: 1}}]\n")); err == nil ||
		!strings.Contains(err.Error(), "this load has no targets") {
		t.Errorf("of a load alone: %v", err)
	}
}
