package suite_test

import (
	"testing"

	"prony/internal/suite"
)

// FuzzRead wants that no file makes Read panic, and that whatever it accepts can be overridden with
// nothing: what reading lets through, the later check must not find fault with.
func FuzzRead(f *testing.F) {
	f.Add([]byte(whole))
	for _, row := range mistakes {
		f.Add([]byte(row.new))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := suite.Read("s.yaml", text)
		if err != nil {
			return
		}
		if err := s.Override(suite.Override{}); err != nil {
			t.Errorf("read, and refused by an empty override: %v", err)
		}
	})
}
