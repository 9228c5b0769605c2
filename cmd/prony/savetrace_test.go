package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
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
