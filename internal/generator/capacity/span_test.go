package capacity

import (
	"slices"
	"strings"
	"testing"
)

func TestConnections(t *testing.T) {
	for text, want := range map[string][]int{
		"1..8": {1, 2, 4, 8}, "1..5": {1, 2, 4, 5}, "3..4": {3, 4}, "7": {7},
		"50, 100,200": {50, 100, 200},
	} {
		if got, err := Connections(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("Connections(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string][]float64{
		"1000..8000": {1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000},
		"0.5,1e3":    {0.5, 1000},
	} {
		if got, err := Rates(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("Rates(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestSpanRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"": "must be a list", "x": "must be a list", "1..": "must be a list",
		"0..5": "must be a list",
		"-1":   "must be a list", "NaN": "must be a list", "5..1": "must be a rising sequence",
		"1,1":  "must be a rising sequence",
		"1..1": "must be a rising sequence", "1.5": "not a whole number",
		"2000000": "up to 1048576",
	} {
		if got, err := Connections(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Connections(%q) = %v, %v, want %q", text, got, err, want)
		}
	}
	if got, err := Rates("1..2e8"); err == nil {
		t.Errorf("Rates took %v", got)
	}
}
