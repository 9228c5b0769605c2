package suite_test

import (
	"testing"

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
