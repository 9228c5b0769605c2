package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/telemetry"
)

// say runs the program.
func say(t *testing.T, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	var out, errs bytes.Buffer
	exit = cli.Code(run(context.Background(), args, strings.NewReader(""), &out, &errs))
	return out.String(), errs.String(), exit
}

// The output of version is what telemetry.Version reads, and invalid arguments are refused as by
// prony.
func TestVersion(t *testing.T) {
	out, _, exit := say(t, "version")
	var v telemetry.Version
	if err := json.Unmarshal([]byte(out), &v); err != nil || v != telemetry.OwnVersion() ||
		exit != cli.Fine {
		t.Errorf("exit %d, %v: %q", exit, err, out)
	}
	for _, row := range []struct{ line, says string }{
		{"telemetry serve", "prony: serve telemetry: set a folder"},
		{"telemetry serve --dir d --grpc 0.0.0.0:1", "or add --expose"},
		{"query --step -1s x", "prony: --step must be greater than 0, got -1s"},
		{"version more", "expected prony-home version"},
	} {
		_, errs, exit := say(t, strings.Fields(row.line)...)
		if exit != cli.Misused || !strings.Contains(errs, row.says) {
			t.Errorf("%s: exit %d, %s, want %q", row.line, exit, errs, row.says)
		}
	}
}

// closed is a pipe without a reader, such as after head.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// A reader that closes the pipe causes no message.
func TestClosedPipe(t *testing.T) {
	var errs bytes.Buffer
	err := run(t.Context(), []string{"version"}, strings.NewReader(""), closed{}, &errs)
	if cli.Code(err) != cli.Failed || errs.Len() > 0 {
		t.Errorf("exit %d, it says %s", cli.Code(err), &errs)
	}
}
