package pyspy

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
)

// TestLongLine checks that a long line does not end the reading.
func TestLongLine(t *testing.T) {
	r := &recording{reply: make(chan struct{})}
	started := make(chan struct{})
	r.listen(strings.NewReader(strings.Repeat("x", 1<<20)+"\n"+begun+"\n"), started)
	select {
	case <-started:
	default:
		t.Error("it has begun, and nobody has heard")
	}
}

// TestBegin checks that the start waits until the program samples, and reports what else happened.
func TestBegin(t *testing.T) {
	check := func(script, fails string, bound time.Duration) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		defer cancel()
		r := &recording{reply: make(chan struct{})}
		err := r.begin(ctx, "/bin/sh", []string{"-c", script}, nil)
		if (err == nil) != (fails == "") || err != nil && !strings.Contains(err.Error(), fails) {
			t.Fatalf("%s: error %v, want %q", script, err, fails)
		}
		if err != nil {
			return
		}
		ended, stop := context.WithCancel(t.Context())
		stop()
		if err := r.end(ended); err == nil || !strings.Contains(err.Error(), begun) {
			t.Errorf("%s: it was killed and wrote no file, but the error is %v", script, err)
		}
	}
	check("echo "+begun+"; exec sleep 1000", "", testsets.Patience)
	check("echo no such process", "it ended: py-spy wrote no profile: no such process",
		testsets.Patience)
	check("exec sleep 1000", "sampling has not begun: context deadline exceeded",
		time.Second) // longer than the shell needs to begin
	r := &recording{reply: make(chan struct{})}
	if err := r.begin(t.Context(), "/no/such", nil, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the program the error is %v", err)
	}
}
