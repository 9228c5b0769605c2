package record

import (
	"fmt"
	"math"
	"reflect"
	"testing"
)

// TestMeasurable checks the bound of numbers on both sides, and that the error names the field,
// wherever it is. Fields that are not exported have no bound: a time.Time has larger numbers.
func TestMeasurable(t *testing.T) {
	type part struct {
		hidden float64
		Seen   float64 `json:"seen,omitempty"`
	}
	type whole struct {
		Count int64   `json:"count"`
		Name  string  `json:"name"`
		At    *part   `json:"at"`
		Parts []part  `json:"parts"`
		Share float32 `json:"share"`
	}
	check := func(v whole, want string) {
		t.Helper()
		got := ""
		if err := measurable(reflect.ValueOf(v)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", v, got, want)
		}
	}
	const beyond = " is beyond ±4e+18, the limit of numbers in records"
	below := math.Nextafter(greatest, 0)
	check(whole{}, "")
	check(whole{Count: -int64(below), At: &part{Seen: below}, Parts: []part{{Seen: -below}}}, "")
	check(whole{At: &part{hidden: 9e18}, Parts: []part{{hidden: math.NaN()}}}, "")
	for number, text := range map[float64]string{greatest: "4e+18", -greatest: "-4e+18",
		math.Inf(1): "+Inf", math.Inf(-1): "-Inf", math.NaN(): "NaN"} {
		want := fmt.Sprintf("seen: the number %s%s", text, beyond)
		check(whole{At: &part{Seen: number}}, "at: "+want)
		check(whole{Parts: []part{{Seen: 1}, {Seen: number}}}, "parts: "+want)
	}
	check(whole{Count: greatest}, "count: the number 4e+18"+beyond)
	check(whole{Share: float32(math.NaN())}, "share: the number NaN"+beyond)
}
