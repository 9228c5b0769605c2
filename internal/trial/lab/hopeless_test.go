package lab

import (
	"strings"
	"testing"
	"time"

	"prony.example/internal/suite/adhoc"
	"prony.example/record"
)

// A run ends early if its first two starts have no good trial, and only then.
func TestHopeless(t *testing.T) {
	rec := func(block int, f *record.Failure) *record.Record {
		return &record.Record{Block: block, Failure: f}
	}
	peer := &record.Failure{Step: record.StepPeer, Error: "target b failed"}
	slow := &record.Failure{Step: "slices", Error: "no answer came"}
	dead := &record.Failure{Step: "ready", Error: "it ended"}
	stopped := &record.Failure{Step: "slices", Error: "stopped", Interrupted: true}
	check := func(want string, done ...*record.Record) {
		t.Helper()
		err := hopeless(done)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	check("")
	check("", rec(1, peer), rec(1, slow))
	check("slices: no answer came. If the service is slow, use fewer connections", rec(1, peer),
		rec(1, slow), rec(2, slow))
	check("ready: it ended", rec(1, dead), rec(2, dead))
	check("", rec(1, nil), rec(2, slow), rec(3, slow))
	check("", rec(1, slow), rec(2, stopped))
	if err := hopeless([]*record.Record{rec(1, dead), rec(2, dead)}); strings.Contains(err.Error(),
		"--connections") {
		t.Errorf("a service that ended is called slow: %v", err)
	}
}

// A request is reported as slow if all connections of the load would wait longer than a second.
func TestSlowRequests(t *testing.T) {
	m := Meeting{Connections: 64, CPUs: 1}
	took := func(all ...time.Duration) (out []adhoc.Answer) {
		for _, d := range all {
			out = append(out, adhoc.Answer{Duration: d})
		}
		return out
	}
	// 64 × 15 ms are 0.96 s, 64 × 100 ms are 6.4 s, and 5 × 100 ms are half a second.
	if text := m.slow("GET /", took(time.Second, 15*time.Millisecond)); text != "" {
		t.Error(text)
	}
	text := m.slow("GET /", took(100*time.Millisecond, 2*time.Second))
	for _, want := range []string{"takes 100ms alone, so 64 connections wait up to 6.4s",
		"--connections 5 --measure 10s"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	m.CPUs = 0
	if text := m.slow("GET /", took(time.Second)); text != "" {
		t.Error(text)
	}
}

// The default memory depends on the machine, and on what is free only if that is too little.
func TestUsualMemory(t *testing.T) {
	for _, c := range []struct{ total, available, want int64 }{
		{8000, 7900, 4000}, {8000, 5400, 4000}, {8000, 5300, 2000}, {8000, 100, 62}, {0, 0, 0},
	} {
		if got := usualMemory(c.total, c.available); got != c.want {
			t.Errorf("%d of %d free: %d, want %d", c.available, c.total, got, c.want)
		}
	}
}
