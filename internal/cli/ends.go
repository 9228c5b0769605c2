package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Ends is a context that is done when somebody wants the program to end: by Ctrl-C, SIGTERM, or
// since the terminal has gone (SIGHUP, unless nohup has it ignored). What runs is stopped then, and
// what was measured is kept.
//
// A pipe whose reader has gone, as when Ctrl-C also ends the tee behind it, does not end the
// program: writing to it is an error like any other from now on. Go would let SIGPIPE kill it in
// the middle of a trial (os/signal, "SIGPIPE").
func Ends(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	by := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		by = append(by, syscall.SIGHUP)
	}
	// Nobody reads them. Sockets make them, too, so that they must not end anything; to ignore them
	// would be handed on to every service, as being caught is not (execve(2)).
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return signal.NotifyContext(parent, by...)
}
