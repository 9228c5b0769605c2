package main

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// --trace and --traces request a file, a share, or both.
func TestTraceFlag(t *testing.T) {
	file := filepath.Join(t.TempDir(), "arrivals")
	if err := os.WriteFile(file, []byte("# prony trace 1\n0\n0.5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plan := func(args ...string) (load.Spec, error) {
		f := &loadFlags{}
		c := &cobra.Command{Use: "load"}
		f.add(c)
		f.addModel(c)
		if err := c.ParseFlags(args); err != nil {
			return load.Spec{}, err
		}
		o, err := f.plan(t.Context(), "http://127.0.0.1:1/")
		if err != nil {
			return load.Spec{}, err
		}
		return o.spec, nil
	}
	check := func(share float64, arrivals string, args ...string) {
		t.Helper()
		s, err := plan(args...)
		if err != nil || s.Trace.Share != share || s.Schedule.Arrivals != arrivals {
			t.Errorf("%q: share %g, arrivals %q, %v; want %g and %q", args, s.Trace.Share,
				s.Schedule.Arrivals, err, share, arrivals)
		}
	}
	check(0, "")
	check(0.01, "", "--traces", "1%")
	check(0.0025, pace.Poisson, "--traces=0.25%", "--rate", "100")
	check(1, "", "--traces", "100%", "--users", "3")
	check(0, pace.Replay, "--trace", file)
	check(0.5, pace.Replay, "--trace", file, "--traces", "50%")
	// Two arrivals with 0.5 s between them, and a gap of 0.25 s, their mean from the start.
	if s, err := plan("--trace", file); err != nil || s.Window != 750*time.Millisecond {
		t.Errorf("a window of %v, %v, want 750ms", s.Window, err)
	}
	wrong := func(want string, args ...string) {
		t.Helper()
		if _, err := plan(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	for _, bad := range []string{"101%", "-1%", "NaN%", "one%", "%", "1"} {
		wrong("share", "--traces", bad)
	}
	wrong("define different loads", "--trace", file, "--rate", "1")
	wrong("no such file", "--trace", file+".gone")
	// Two loads of one command line have different trace ids.
	a, errA := plan("--traces", "1%")
	b, errB := plan("--traces", "1%")
	if errA != nil || errB != nil || a.Trace.Salt == b.Trace.Salt {
		t.Errorf("salts %d and %d, %v, %v", a.Trace.Salt, b.Trace.Salt, errA, errB)
	}
}

// A load sends the arrivals of a --trace file, without a rate.
func TestTraceFileIsReplayed(t *testing.T) {
	testsets.Live(t)
	url, asked := counted(t)
	file := filepath.Join(t.TempDir(), "arrivals")
	if err := os.WriteFile(file, []byte("# prony trace 1\n0\n0.05\n0.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, stderr, exit := offeredOf(t, url, "--trace", file, "-d", "200ms", "--lead-in", "0s")
	if unspoilt(exit) != cli.Fine || got.Load.Arrivals != pace.Replay || got.Load.RatePerS != 15 ||
		got.Load.Answered != 3 || asked.Load() != 3 {
		t.Errorf("exit %d, %d answered of %g/s, %d received\n%s", exit, got.Load.Answered,
			got.Load.RatePerS, asked.Load(), stderr)
	}
}

// The slowest eight with their data, and nothing unless requested.
func TestTracedTable(t *testing.T) {
	check := func(l record.Load, want string) {
		t.Helper()
		var out bytes.Buffer
		if err := (&app{stdout: &out}).traced(&l); err != nil || out.String() != want {
			t.Errorf("%v; it prints\n%s, want\n%s", err, out.String(), want)
		}
	}
	slow := record.Traced{TraceID: "0123456789abcdef0123456789abcdef", Class: "slowest",
		ScheduledNs: 1_234_000_000, LagNs: 1500, FirstByteNs: 2e6, ResponseNs: 5e9}
	late := record.Traced{TraceID: "ff", Class: "slowest", Route: "GET /", ResponseNs: 5e9,
		Failed: true}
	const head = "\n  traced: 1.0 % of the requests, the slowest first\n" +
		"     due at        lag  first byte   response  trace id\n"
	check(record.Load{Traced: []record.Traced{slow}}, "")
	check(record.Load{TraceShare: 0.01},
		"\n  traced: 1.0 % of the requests, the slowest first\n  no traced request ended "+
			"within the window and its drain\n")
	row := "    1.234 s    1.50 µs     2.00 ms     5.00 s  0123456789abcdef0123456789abcdef\n"
	check(record.Load{TraceShare: 0.01, Traced: []record.Traced{slow, late,
		{TraceID: "0", Class: "failed"}, {TraceID: "1", Class: "uniform"}}}, head+row+
		"    0.000 s        0 s           –     5.00 s  ff"+strings.Repeat(" ", 32)+
		"GET / (failed)\n")
	var many []record.Traced
	for range 20 {
		many = append(many, slow)
	}
	check(record.Load{TraceShare: 0.01, Traced: many}, head+strings.Repeat(row, 8))
}

// The lead-in of a shape is its beginning, and the window the rest of it.
func TestLeadInOfShape(t *testing.T) {
	for _, row := range []struct {
		flag         string
		lead, window time.Duration // 0: an error
	}{
		{"", 0, time.Second}, {"lead-in", 400 * time.Millisecond, 600 * time.Millisecond},
		{"lead-in", time.Second, 0}, {"lead-in", 2 * time.Second, 0},
	} {
		f := &loadFlags{rate: "ramp 100..500 in 1s",
			given: func(name string) bool { return name == row.flag }}
		s := &load.Spec{Lead: cmp.Or(row.lead, 500*time.Millisecond), Window: 10 * time.Second}
		err := f.model(s)
		if (err == nil) != (row.window > 0) || err == nil && (s.Lead != row.lead ||
			s.Window != row.window) {
			t.Errorf("%+v: lead-in %v, window %v, %v", row, s.Lead, s.Window, err)
		}
	}
}
