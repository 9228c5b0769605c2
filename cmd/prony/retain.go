//go:build linux && !portable

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"prony.example/internal/trial"
)

// retainer shows what a failed trial left, and keeps a running service until the user has inspected
// it.
type retainer struct {
	tell *progressLine
	in   *os.File

	typed chan struct{} // lines; nil: no terminal, or no trial was held yet
}

// hold implements trial.Lab's Hold.
func (r *retainer) hold(ctx context.Context, h trial.Held) {
	if ctx.Err() != nil {
		return
	}
	text := remains(h)
	if exit := h.Service.Exit(); exit != "" {
		r.tell.Say(text + "\n  the service has ended: " + exit)
		return
	}
	r.listen()
	how := "Ctrl-C ends the service and the run"
	if r.typed != nil {
		how = "Enter ends the service and continues the run, " + how
	}
	r.tell.Say(text + "\n  the service still runs; " + how)
	select {
	case <-ctx.Done():
	case <-r.typed:
	case <-h.Service.Exited():
		r.tell.Say("  the service has ended: " + h.Service.Exit())
	}
}

// listen begins to read lines from a terminal, and discards earlier input, which is no response.
func (r *retainer) listen() {
	in := int(r.in.Fd())
	if r.typed != nil || !term.IsTerminal(in) {
		return
	}
	unix.IoctlSetInt(in, unix.TCFLSH, unix.TCIFLUSH) //nolint:errcheck // best effort
	r.typed = make(chan struct{})
	go func() {
		for s := bufio.NewScanner(r.in); s.Scan(); {
			select {
			case r.typed <- struct{}{}:
			default:
			}
		}
	}()
}

// remains describes what failed and where to inspect it.
func remains(h trial.Held) string {
	s := h.Service
	var b strings.Builder
	fmt.Fprintf(&b, "%s failed in step %s: %s", h.Trial, h.Failure.Step, h.Failure.Error)
	line := func(name, text string) { fmt.Fprintf(&b, "\n  %-8s %s", name, text) }
	if s.Exit() == "" {
		line("listens", s.Addr().String())
		if pid := s.Main(); pid > 0 {
			line("process", fmt.Sprint(pid))
		}
	}
	line("log", s.LogFile())
	names := s.Containers()
	for _, name := range names {
		line("named", name)
	}
	if len(names) == 0 {
		line("folder", h.Dir)
	}
	for _, g := range s.Groups() {
		line("cgroup", g.Dir)
	}
	return b.String()
}
