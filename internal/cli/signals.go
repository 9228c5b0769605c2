package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

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
