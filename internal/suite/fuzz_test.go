package suite_test

import (
	"testing"

	"prony.example/internal/suite"
)

// FuzzRead wants that no file makes Read panic, and that whatever it accepts can be overridden with
// nothing: what reading lets through, the later check must not find fault with.
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

// FuzzReadScenario wants that no file makes ReadScenario panic, and that whatever it accepts can be
// made into finders and checks.
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

// FuzzAsked wants that no text makes a form of a suite panic, that a suite's own text asks for
// nothing, and that what can be written of an override asks for it.
func FuzzAsked(f *testing.F) {
	for _, text := range []string{whole, full(f), spare, shared, searching} {
		f.Add([]byte(text))
	}
	other, err := suite.ReadOriginal("testdata/s.yaml", []byte(whole))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _, _ = other.Asked(string(text)) // most of it is none
		o, err := suite.ReadOriginal("testdata/s.yaml", text)
		if err != nil {
			return
		}
		if v, others, err := o.Asked(string(text)); err != nil || len(others) > 0 ||
			v.Blocks+len(v.Targets)+len(v.Loads)+len(v.Scenarios)+len(v.Agents) > 0 {
			t.Errorf("as it is it asks for %+v, %q, %v", v, others, err)
		}
		edited, err := o.With(suite.Override{Blocks: 77})
		if err != nil {
			return // such as what no library writes
		}
		if v, others, err := o.Asked(edited); err != nil || len(others) > 0 ||
			v.Blocks != 77 && edited != string(text) {
			t.Errorf("77 blocks are %+v, %q, %v of\n%s", v, others, err, edited)
		}
	})
}
