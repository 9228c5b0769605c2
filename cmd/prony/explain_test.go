package main

import (
	"os"
	"path/filepath"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/telemetry"
	"prony.example/record"
)

// The story of a slow request contains all data of the run's folder, from the load to the profile.
func TestExplain(t *testing.T) {
	root := checkout(t)
	dir := filepath.Join(root, "results", "run")
	if _, stderr, exit := say(t, mock{}, "run", "--root", root, "--telemetry", "--targets",
		"go-nethttp", "--blocks", "1", "--out", dir); exit != cli.Fine {
		t.Fatal(stderr)
	}
	_, stderr, exit := say(t, mock{}, "explain", "--root", root, dir, "--target", "nobody")
	if exit == cli.Fine {
		t.Error("a request of nobody is explained")
	}
	has(t, "the error", stderr, "no request with a trace id was found", "--telemetry")
	out, stderr, exit := say(t, mock{}, "explain", "--root", root, dir)
	if exit != cli.Fine {
		t.Fatal(stderr)
	}
	// Due 250 ms into the window, sent 1 ms later, answered after 9 ms.
	has(t, "the story", out, "observed-", "request 0123456789abcdef0123456789abcdef",
		"due         250 ms after the window began", "sent        1.00 ms later",
		"first byte  7.00 ms after sending", "complete    9.00 ms after it was due",
		"no trace is stored")

	// The newest run is found without a name, also if no collector stored anything.
	if err := os.RemoveAll(filepath.Join(dir, telemetry.Dir)); err != nil {
		t.Fatal(err)
	}
	newest, stderr, exit := say(t, mock{}, "explain", "--root", root)
	has(t, "explain without a run", stderr, "using the newest run, "+dir)
	if exit != cli.Fine || newest != out {
		t.Errorf("exit %d: %s, want the story of the run:\n%s", exit, stderr, newest)
	}
}

// The observed trial is outside of the comparison: in its folder, and in none of its tables.
func TestObservedTrialsAreBeside(t *testing.T) {
	root := checkout(t)
	dir := filepath.Join(root, "results", "run")
	out, stderr, exit := say(t, mock{}, "run", "--root", root, "--telemetry", "--targets",
		"go-nethttp", "--blocks", "2", "--out", dir)
	if exit != cli.Fine {
		t.Fatal(stderr)
	}
	_, records, _, err := record.Read(dir)
	if err != nil || len(records) != 3 || records[2].Role != record.Observed ||
		records[2].Loads[0].TraceShare != 0.05 || records[0].Loads[0].TraceShare != 0 {
		t.Fatalf("%v, records %+v", err, records)
	}
	has(t, "the report", out, "; 2 trials: 0 INVALID")
}
