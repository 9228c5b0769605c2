package suite_test

import (
	"encoding/json"
	"testing"

	"prony.example/internal/base/strictyaml"
	"prony.example/internal/suite"
)

func TestUnitsReadBackAsTheyAreWritten(t *testing.T) {
	check := func(in, want string, v interface {
		UnmarshalText([]byte) error
		String() string
	}) {
		t.Helper()
		if err := v.UnmarshalText([]byte(in)); err != nil || v.String() != want {
			t.Errorf("%q is read as %v (%v), want %s", in, v, err, want)
		}
		text, err := json.Marshal(v)
		if err != nil || string(text) != `"`+want+`"` {
			t.Errorf("%q is written as %s (%v)", in, text, err)
		}
		if err := v.UnmarshalText([]byte(want)); err != nil || v.String() != want {
			t.Errorf("%q is read back as %v (%v)", want, v, err)
		}
	}
	for in, want := range map[string]string{"0": "0s", "1500ms": "1.5s", "24h": "24h",
		"90m": "1h30m", "60s": "1m", "1h0m5s": "1h0m5s", "10m0s": "10m", "5µs": "5µs"} {
		check(in, want, new(suite.Duration))
	}
	for in, want := range map[string]string{"1GiB": "1GiB", "832M": "832MiB", "512k": "512KiB",
		"1.5G": "1536MiB", "1000B": "1000B", "1024B": "1KiB", "0B": "0B"} {
		check(in, want, new(strictyaml.Size))
	}
	for in, want := range map[string]string{"20000": "20000/s", "0.5/s": "0.5/s",
		"7% of peak": "7% of peak", "33.3% of a b": "33.3% of a b", "": "",
		"20k": "20000/s", "1e3": "1000/s", "50 % of peak": "50% of peak",
		"ramp 100..2k in 30s":            "ramp 100..2000 in 30s",
		"1000 for 10s, 2000":             "1000 for 10s, 2000",
		"sine 1000..5000 every 60s":      "sine 1000..5000 every 1m",
		"ramp 10..90.1 in 30s % of peak": "ramp 10..90.1 in 30s % of peak"} {
		check(in, want, new(suite.Rate))
	}
	for in, want := range map[string]string{"20": "20",
		"ramp 0..700 in 5m, 700 for 5m, ramp 700..0 in 200s": "ramp 0..700 in 5m, 700 for 5m, " +
			"ramp 700..0 in 3m20s"} {
		check(in, want, new(suite.Users))
	}
	for in, want := range map[string]string{"1s": "1s", "exponential 1m0s": "exponential 1m",
		"uniform 500ms..1500ms": "uniform 500ms..1.5s", "uniform 0..1s": "uniform 0s..1s"} {
		check(in, want, new(suite.Think))
	}
}

func TestUnitsThatAreNone(t *testing.T) {
	for _, bad := range []string{"1", "1 s", "s", "-1s", "1d", ".5s", "9999999h"} {
		if err := new(suite.Duration).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is read as a duration", bad)
		}
	}
	for _, bad := range []string{"1", "1MB", "0.3B", "-1M", "M", "99999999999G"} {
		if err := new(strictyaml.Size).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is read as a size", bad)
		}
	}
	for _, bad := range []string{"0", "0% of peak", "-5", "50%", "50% of ", "1/m", "ramp 0..0 " +
		"in 1s",
		"ramp 1..2", "ramp 0..10000001 in 1s", "ramp 1..1001 in 1s % of peak", "% of peak"} {
		if err := new(suite.Rate).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is read as a rate", bad)
		}
	}
	for _, bad := range []string{"", "0", "0.9", "65536", "many", "ramp 0..0.5 in 1s"} {
		if err := new(suite.Users).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is read as users", bad)
		}
	}
	for _, bad := range []string{"", "0", "1", "61m", "uniform 1s", "uniform 2s..1s",
		"uniform 0..0", "normal 1s", "exponential", "exponential 0", "constant 1s x"} {
		if err := new(suite.Think).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is read as a think time", bad)
		}
	}
}

// A share of a load that delivered 2,000/s.
func TestRatesOverTime(t *testing.T) {
	check := func(rate string, atNs int64, want float64) {
		t.Helper()
		var r suite.Rate
		if err := r.UnmarshalText([]byte(rate)); err != nil {
			t.Fatal(err)
		}
		if got := r.Profile(2000).At(atNs); got != want {
			t.Errorf("%s is %g/s after %d ns, want %g", rate, got, atNs, want)
		}
	}
	check("300", 5e9, 300)
	check("ramp 100..300 in 10s", 5e9, 200)
	check("25% of peak", 5e9, 500)
	check("ramp 10..90 in 10s % of peak", 5e9, 1000) // 50 % of 2,000
}
