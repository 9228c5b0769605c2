package suite_test

import (
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/suite"
)

// FuzzRead requires that no file makes Read panic, and that an empty override of an accepted suite
// succeeds: the later check must not find errors that reading missed.
func FuzzRead(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(full(f)))
	for _, row := range mistakes {
		f.Add([]byte(row.new))
	}
	for _, row := range slips {
		f.Add([]byte(row.new))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := suite.Read("testdata/s.yaml", text)
		if err != nil {
			return
		}
		if err := s.Override(suite.Override{}); err != nil {
			t.Errorf("read, and refused by an empty override: %v", err)
		}
	})
}

// FuzzReadProject requires that an accepted prony.yaml has suites, and that each is accepted or
// refused with the name of the file.
func FuzzReadProject(f *testing.F) {
	f.Add([]byte("targets: {app: {url: 'http://127.0.0.1:1'}}\nrequests: [{request: GET /}]\n"))
	f.Add([]byte("targets:\n  a: {command: './app --port {port}', git: main, build: make}\n" +
		"  b: {image: 'app:1.2', port: 80, env: {A: 1}}\nrequests: [{request: GET /}]\n" +
		"suites: {s: {targets: [a, b], slos: ['p99 < 5ms'], gate: {maxLoss: 1%}}}\n"))
	f.Add([]byte("targets: {a: {compose: {service: web}}, 'b c': {command: x, matrix: " +
		"{threads: [1, 2]}, processes: [{command: y}]}}\nready: /health\nneeds: [{tool: go}]\n"))
	f.Add([]byte("targets: {contract: {url: x}}\n? [a]\n: b\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p *suite.Project
		var err error
		testsets.Allocates(t, 64<<20+20_000*uint64(len(text)), func() {
			p, err = suite.ReadProject("testdata/prony.yaml", text)
		})
		if err != nil {
			return
		}
		if len(p.Names) == 0 || len(p.Names) < len(p.Targets) {
			t.Errorf("accepted with %d names of %d targets", len(p.Names), len(p.Targets))
		}
		for _, name := range p.Experiments() {
			s, err := p.Suite(name)
			switch {
			case err != nil && !strings.Contains(err.Error(), "prony.yaml"):
				t.Errorf("the error does not name the file: %v", err)
			case err == nil:
				if err := s.Override(suite.Override{}); err != nil {
					t.Errorf("read, and refused by an empty override: %v", err)
				}
			}
		}
	})
}

// FuzzReadScenario requires that no file makes ReadScenario panic, and that finders and checks can
// be made of an accepted scenario.
func FuzzReadScenario(f *testing.F) {
	f.Add([]byte(alone))
	f.Add([]byte("name: a\nrequests: [{request: GET /, checks: [{body: true, is: '{seq}'}]}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := suite.ReadScenario("testdata/s.yaml", text)
		if err != nil {
			return
		}
		names, known := s.Variables()
		for i, r := range s.Requests {
			for _, c := range r.Checks {
				if _, err := c.Make(names[:known[i]]); err != nil {
					t.Errorf("read, and no check: %v", err)
				}
			}
			for _, e := range r.Extract {
				if _, err := e.Finder(); err != nil {
					t.Errorf("read, and no finder: %v", err)
				}
			}
		}
	})
}
