package compare

import "testing"

// TestOnlyTheControl checks that two runs with only the control in common have nothing to compare.
func TestOnlyTheControl(t *testing.T) {
	a := runOf("a", noon, rows{"go": drifting, "rust": drifting})
	b := runOf("b", noon, rows{"go": drifting})
	_, err := Compare(a, b, Options{Control: "go"})
	if err == nil {
		t.Fatal("it compares nothing")
	}
	has(t, "the refusal", err.Error(), "divide by go", "the only row", "leave out --control")
}
