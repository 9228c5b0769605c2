// Package cli is what programs of this module have in common on their command line: what they end
// with, how they refuse a line that makes no sense, and flags that know their choices. It prints
// nothing and knows no verb.
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

// Exit codes. Scripts rely on them.
const (
	Fine         = 0
	Failed       = 1
	Misused      = 2
	GateFailed   = 3 // an objective was missed, or a gate failed
	Invalid      = 4 // a trial failed or its numbers are INVALID
	Inconclusive = 5 // a gate cannot say: the limit lies inside the interval
)

// ended ends a program with a code after everything has been said.
type ended struct {
	code int
	why  string
}

func (e *ended) Error() string { return e.why }

// End is an error that ends the program with a code and that nobody needs to be told of: all has
// been said.
func End(code int, format string, args ...any) error {
	return &ended{code, fmt.Sprintf(format, args...)}
}

// Told says whether an error was made by End.
func Told(err error) bool {
	var e *ended
	return errors.As(err, &e)
}

// misused is a command line that makes no sense.
type misused struct{ error }

func (e misused) Unwrap() error { return e.error }

// Usage makes an error one of the command line; nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return misused{err}
}

// Usagef says what makes no sense about a command line, in fmt.Errorf's words.
func Usagef(format string, args ...any) error { return misused{fmt.Errorf(format, args...)} }

// Code is what a program ends with.
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

// Arguments checks the number of arguments and names the usage when it is wrong.
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

// Context ends with the program's first signal to end in order: Ctrl-C, SIGTERM, and SIGHUP of a
// terminal that is closed, unless nohup has the program outlive it. A pipe that nobody reads any
// more ends nothing: Ctrl-C also ends the tee behind a program, and the next line of progress would
// kill what is about to save its last record. To write there is an error, EPIPE, instead.
func Context() (context.Context, context.CancelFunc) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // ignored, it would be so in children
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	return signal.NotifyContext(context.Background(), ends...)
}

// ErrInterrupted is the error of a context that Ctrl-C has ended. That of another signal names the
// signal and is ErrInterrupted, too. errors.Is finds context.Canceled in both.
var ErrInterrupted error = interruption{"interrupted"}

type interruption struct{ text string }

func (i interruption) Error() string { return i.text }

func (i interruption) Is(target error) bool {
	return target == context.Canceled || target == ErrInterrupted
}

// Interruptible is a program's first context, whose end is ErrInterrupted, so that errors say what
// happened. It ends with ctx and passes on none of its values.
func Interruptible(ctx context.Context) context.Context { return interruptible{ctx} }

// interruptible has no values. Contexts made from it take its Err, and not that of ctx, since they
// find no context of package context in it.
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

// received ends the causes of contexts of signal.NotifyContext.
const received = " signal received"

// UntilEnd ends the context when nobody holds the other end of a stream any more: a parent that
// dies cannot say so itself.
func UntilEnd(ctx context.Context, from io.Reader) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, from) // an error is an end, too
		stop()
	}()
	return ctx, stop
}
