package main

import (
	"path/filepath"
	"testing"

	"prony.example/internal/base/cli"
)

// Invalid flags are reported before any build, with what to do instead.
func TestWrongObservingFlags(t *testing.T) {
	root := checkout(t)
	check := func(want string, args ...string) {
		t.Helper()
		args = append([]string{"run", "--root", root, "--out", filepath.Join(root, "r")}, args...)
		_, stderr, exit := say(t, mock{}, args...)
		if exit != cli.Misused {
			t.Errorf("%q exits %d, want %d", args, exit, cli.Misused)
		}
		has(t, "the error", stderr, want)
	}
	check("write --telemetry=otlp=http://x:1", "--telemetry", "otlp=http://x:1")
	check("must have the form otlp=http://HOST:4318", "--telemetry=otlp=")
	check("one other endpoint", "--telemetry=otlp=http://x:1,otlp=http://y:1")
	check("do not write a password on the command line", "--telemetry=otlp=http://me:secret@x:1")
	check("must be embedded", "--telemetry=all")
	check("there are cpu, alloc, lock, offcpu", "--profile", "time")
	check("needs exactly one kind", "--profile-in-window", "--profile", "cpu,alloc")
	check("--traces needs --telemetry", "--traces", "5%")
	check("not a percentage", "--telemetry", "--traces", "5")
	check("none of the targets supports this agent", "--agent", "otel-java/full", "--targets",
		"go-nethttp")
}
