package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// A load by number may last a day, but its trace has only the arrivals that it sends, and an
// interrupt ends the writing.
func TestSaveTraceOfNumber(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace")
	spec := load.Spec{Model: record.Open, Window: 24 * time.Hour, Requests: 20,
		Lead: time.Second, Schedule: pace.Schedule{Arrivals: pace.Constant,
			Rate: pace.Flat(10)}}
	if err := saveTrace(t.Context(), name, &spec); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if n := bytes.Count(text, []byte("\n")); err != nil || n < 30 || n > 32 {
		t.Errorf("%d lines, error %v; want 20 arrivals, 10 of the lead-in and a head", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	spec.Requests, spec.Window = 0, time.Hour
	if err := saveTrace(ctx, name, &spec); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: error %v", err)
	}
}

// A load by number ends: its schedule must have the arrivals.
func TestEnoughArrivals(t *testing.T) {
	replay := pace.Schedule{Arrivals: pace.Replay, Trace: []int64{1e9, 2e9, 3e9}}
	ending := pace.Profile{Pieces: []pace.Piece{{From: 10, To: 10, ForNs: 1e9}, {}}}
	for _, c := range []struct {
		schedule pace.Schedule
		lead     time.Duration
		requests int64
		want     string
	}{
		{replay, 0, 3, ""},
		{replay, 0, 4, "the schedule has only 3 arrivals after the lead-in"},
		{replay, 2 * time.Second, 3, "has only 2 arrivals"},
		{pace.Schedule{Arrivals: pace.Constant, Rate: ending}, 0, 11, "has only 10 arrivals"},
		{pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(1)}, 0, 11, ""},
	} {
		err := enough(&load.Spec{Model: record.Open, Schedule: c.schedule, Lead: c.lead,
			Window: 24 * time.Hour, Requests: c.requests})
		if c.want == "" && err != nil || c.want != "" && (err == nil ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d of %v: error %v, want %q", c.requests, c.schedule, err, c.want)
		}
	}
}
