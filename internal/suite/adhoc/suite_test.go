package adhoc

import (
	"strings"
	"testing"

	"prony.example/internal/suite"
)

// The suite of a command line has the same defaults as a file's: the hash of its plan equals that
// of the same suite in a file. Every value is checked, and named by its key.
func TestSuiteOfALine(t *testing.T) {
	body := "hello"
	held := []Held{{Request: suite.Request{Request: "GET /", Weight: 1,
		Expect: suite.Expect{Status: 200, Body: &body}}}}
	o := Options{Baseline: "a", Connections: 64, Blocks: 5, CPUs: 1, MemoryBytes: 1<<30 + 12345,
		SLO: "p99<20ms"}
	s, err := Suite(held, o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan([]suite.Target{{Name: "a", Contracts: []string{""}},
		{Name: "b", Contracts: []string{""}}})
	if err != nil || p.Hash != "77fd48aeea3bd1bf" || len(s.Hash) != 16 {
		t.Errorf("plan %s of suite %s, error %v", p.Hash, s.Hash, err)
	}
	check := func(want string, change func(*Options)) {
		t.Helper()
		wrong := o
		change(&wrong)
		if _, err := Suite(held, wrong); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	check("suite versus: blocks: blocks 5000 is outside of the range 1 to 1000",
		func(o *Options) { o.Blocks = 5000 })
	check("loads[0].connections: connections 70000 is", func(o *Options) { o.Connections = 70000 })
	check("limits.memory: memory 0B is outside", func(o *Options) { o.MemoryBytes = 1 })
	check(`loads[2].slo: parse objective "x"`, func(o *Options) { o.SLO = "x" })
}
