package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestInterruptible checks that errors after a signal name the interruption, in all derived
// contexts.
func TestInterruptible(t *testing.T) {
	parent, signal := context.WithCancel(t.Context())
	ctx := Interruptible(parent)
	if ctx.Err() != nil {
		t.Fatal("it has ended before the signal")
	}
	child, stop := context.WithTimeoutCause(ctx, time.Hour, errors.New("late"))
	defer stop()
	grandchild, end := context.WithCancel(child)
	defer end()
	signal()
	<-grandchild.Done()
	for _, c := range []context.Context{ctx, child, grandchild} {
		err := fmt.Errorf("build a: %w", c.Err())
		if err.Error() != "build a: interrupted" || !errors.Is(err, context.Canceled) ||
			context.Cause(c).Error() != "interrupted" {
			t.Errorf("%v, caused by %v", err, context.Cause(c))
		}
	}
	_, err := (&net.Dialer{}).DialContext(grandchild, "tcp", "127.0.0.1:1")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a connection that was broken off: %v", err)
	}
}

// TestInterruptibleNamesTheSignal checks the error after signals other than Ctrl-C.
func TestInterruptibleNamesTheSignal(t *testing.T) {
	ctx, stop := Context()
	defer stop()
	ctx = Interruptible(ctx)
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	err := context.Cause(ctx)
	if err.Error() != "terminated" || !errors.Is(err, ErrInterrupted) ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("%v, want terminated", err)
	}
}

func TestInterruptibleKeepsADeadline(t *testing.T) {
	late, stop := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer stop()
	ctx := Interruptible(late)
	if _, has := ctx.Deadline(); !has || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Errorf("deadline %v, error %v", has, ctx.Err())
	}
}
