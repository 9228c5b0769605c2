// Package cli provides what command lines of this module's programs share: exit codes, usage
// errors, and flags with a list of allowed words. It prints nothing and is independent of verbs.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// Exit codes; scripts rely on them.
const (
	Fine         = 0
	Failed       = 1
	Misused      = 2
	GateFailed   = 3 // an objective was missed, or a gate failed
	Invalid      = 4 // a trial failed or its numbers are INVALID
	Inconclusive = 5 // a gate cannot decide: the limit lies inside the interval
)

// ended ends a program with an exit code; all output has been written.
type ended struct {
	code int
	why  string
}

func (e *ended) Error() string { return e.why }

// End returns an error that ends the program with an exit code. The program does not print it,
// because its output already says what failed.
func End(code int, format string, args ...any) error {
	return &ended{code, fmt.Sprintf(format, args...)}
}

// Told reports whether an error was made by End, and of joined errors whether all were.
func Told(err error) bool {
	switch e := err.(type) {
	case *ended:
		return true
	case interface{ Unwrap() error }:
		return Told(e.Unwrap())
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !Told(err) })
	}
	return false
}

// misused is a usage error.
type misused struct{ error }

func (e misused) Unwrap() error { return e.error }

// Usage makes err a usage error; nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return misused{err}
}

// Usagef returns a usage error, formatted by fmt.Errorf.
func Usagef(format string, args ...any) error { return misused{fmt.Errorf(format, args...)} }

// Code returns the exit code for an error.
func Code(err error) int {
	var e *ended
	var m misused
	switch {
	case err == nil:
		return Fine
	case errors.As(err, &e):
		return e.code
	case errors.As(err, &m):
		return Misused
	}
	return Failed
}

// Arguments checks the number of arguments and returns a usage error if it is wrong or an argument
// is empty.
func Arguments(lowest, highest int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < lowest || len(args) > highest {
			return Usagef("expected %s, got %d arguments; see %s --help",
				c.UseLine(), len(args),
				c.CommandPath())
		}
		if slices.Contains(args, "") {
			return Usagef("an argument is empty; see %s --help", c.CommandPath())
		}
		return nil
	}
}

// Context returns a context that the first termination signal cancels: Ctrl-C, SIGTERM, or SIGHUP
// of a closed terminal, unless nohup ignores it. SIGPIPE does not end the program: Ctrl-C also ends
// a `tee` that reads its output, and the next line of progress would kill the program before it
// saves its last record. Writes to a closed pipe return EPIPE instead.
func Context() (context.Context, context.CancelFunc) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // children would inherit Ignore
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	return signal.NotifyContext(context.Background(), ends...)
}

// ErrInterrupted is the error of a context that Ctrl-C has canceled. The error of another signal
// names the signal and also matches ErrInterrupted. errors.Is finds context.Canceled in both.
var ErrInterrupted error = interruption{"interrupted"}

type interruption struct{ text string }

func (i interruption) Error() string { return i.text }

func (i interruption) Is(target error) bool {
	return target == context.Canceled || target == ErrInterrupted
}

// Interruptible returns a context that ends with ctx and whose Err is ErrInterrupted after a
// signal, so that errors say what happened. It passes on no values of ctx.
func Interruptible(ctx context.Context) context.Context { return interruptible{ctx} }

// interruptible returns no values. Derived contexts therefore find no context of package context in
// it, and take its Err instead of ctx's.
type interruptible struct{ ctx context.Context }

func (c interruptible) Deadline() (time.Time, bool) { return c.ctx.Deadline() }
func (c interruptible) Done() <-chan struct{}       { return c.ctx.Done() }
func (c interruptible) Value(any) any               { return nil }

func (c interruptible) Err() error {
	if err := c.ctx.Err(); !errors.Is(err, context.Canceled) {
		return err
	}
	switch cause := context.Cause(c.ctx).Error(); cause { // of signal.NotifyContext
	case syscall.SIGTERM.String() + received, syscall.SIGHUP.String() + received:
		return interruption{strings.TrimSuffix(cause, received)}
	}
	return ErrInterrupted
}

// received is the suffix of the causes that signal.NotifyContext sets.
const received = " signal received"

// UntilEnd returns a context that is canceled when the stream ends, such as the pipe to a parent
// process that died.
func UntilEnd(ctx context.Context, from io.Reader) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, from) // an error also ends the stream
		stop()
	}()
	return ctx, stop
}
