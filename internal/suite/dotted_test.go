package suite_test

import (
	"strings"
	"testing"

	"prony.example/internal/suite"
)

// TestDottedTarget checks that the name of a target may have a dot: its matrix and its service of a
// Compose file count, and errors name it.
func TestDottedTarget(t *testing.T) {
	const requests = "\nrequests: [{request: GET /}]\n"
	p, err := suite.ReadProject("prony.yaml", []byte("targets:\n  app.v1:\n    command: ./a\n"+
		"    matrix: {env: {GOGC: [50, 100]}}\n  web.v1: {compose: {service: web}}"+requests))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Names, " "); got != "app.v1-GOGC-50 app.v1-GOGC-100 web.v1" {
		t.Errorf("the targets are %s", got)
	}
	_, err = suite.ReadProject("prony.yaml", []byte("targets:\n  app.v1: {dir: a}"+requests))
	const want = "prony.yaml:2: the target app.v1 has no command"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v", err)
	}
}

// TestFewConnections checks that scenarios and matrices give a load the connections that it can
// have.
func TestFewConnections(t *testing.T) {
	check := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	const grows = "  - {name: grows, model: open, rate: 1, maxConnections: 100}\n"
	_, err := suite.Read("s.yaml", []byte(whole+grows))
	check(err, `begins with 1000 connections, which exceeds maxConnections 100`)
	const few = "requests: [{request: GET /}]\nloads: [{name: a, model: closed, generators: 4}]\n"
	_, err = suite.ReadProject("prony.yaml", []byte("targets: {a: {command: ./a, matrix: "+
		"{connections: [2, 64]}}}\n"+few))
	check(err, `2 connections of load "a" are too few for 4 generators`)
}

// TestFirstGet checks that the path that shows readiness is constant, and as it is sent.
func TestFirstGet(t *testing.T) {
	s := suite.Suite{Scenarios: []suite.Scenario{{Requests: []suite.Request{
		{Request: "GET /{random 1..9}"}, {Request: "POST /a"}, {Request: "GET /é"}}}}}
	if got := s.FirstGet(); got != "/%C3%A9" {
		t.Errorf("it is %q", got)
	}
}
