// Package guard starts this program once more as a guard, in a session of its own. If the lab (the
// process that measures) is killed, its guard removes containers, pods and other things that the
// lab has started outside of its own processes.
//
// The lab holds one end of a pipe, which the kernel closes with the process. Neither Ctrl-C nor a
// signal to the lab's process group ends the guard, because of its session. If the guard is killed
// too, the next lab cleans up.
package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"prony.example/internal/base/clock"
)

// The guard clears several times: a request of the killed lab may still be under way, and the
// engine may be unreachable for a moment.
const (
	rounds = 3
	pause  = time.Second
)

// leave is sent by a lab to its guard when nothing is left to remove.
const leave = "leave"

// Post describes the guards of one launcher.
type Post struct {
	Env string // environment variable that marks a guard and holds its orders
	// Clear removes what the lab with these orders has left, and notes what it could not remove.
	Clear func(orders []byte) error
}

// Stand runs the guard in a process that was started as one: it waits until the lab has ended,
// clears up and exits. In any other process it does nothing. Call it first in main of every program
// that starts guards, and in TestMain.
func (p Post) Stand() {
	orders, ok := os.LookupEnv(p.Env)
	if !ok {
		return
	}
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if err := p.stand([]byte(orders), os.Stdin, pause); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// Instead runs live on the standard streams and exits, in a process of this program that was
// started with the variable env. In any other process it does nothing. Call it first in main.
func Instead(env string, live func(from io.Reader, to io.Writer) error) {
	if os.Getenv(env) == "" {
		return
	}
	if err := live(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "prony:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// stand waits until the lab has ended, and then clears in several rounds.
func (p Post) stand(orders []byte, lab io.Reader, pause time.Duration) error {
	word, err := io.ReadAll(lab)
	if err == nil && string(word) == leave {
		return nil
	}
	for round := range rounds {
		if round > 0 {
			time.Sleep(pause)
		}
		err = errors.Join(err, p.Clear(orders))
	}
	return err
}

// Guard is the lab's handle of its guard.
type Guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// Start starts a guard with orders, which become JSON, and only these environment variables.
func (p Post) Start(orders any, env ...string) (*Guard, error) {
	self, err1 := os.Executable()
	text, err2 := json.Marshal(orders)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	g := &Guard{cmd: exec.Command(self)}
	g.cmd.Env = append(slices.Clip(env), p.Env+"="+string(text))
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var err error
	if g.pipe, err = g.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := g.cmd.Start(); err != nil {
		return nil, err // Start has closed the pipe
	}
	return g, nil
}

// PID returns the number of the guard's process.
func (g *Guard) PID() int { return g.cmd.Process.Pid }

// Over reports whether the guard has ended and was waited for.
func (g *Guard) Over() bool { return g.cmd.ProcessState != nil }

// End ends the guard and waits for it. With clean the guard removes nothing; otherwise it tries
// what the lab could not remove. It may be called again, and on nil.
func (g *Guard) End(clean bool) error {
	if g == nil || g.pipe == nil {
		return nil
	}
	var err error
	if clean {
		_, err = io.WriteString(g.pipe, leave)
	}
	err = errors.Join(err, g.pipe.Close())
	g.pipe = nil
	if clean {
		err = errors.Join(err, g.cmd.Wait())
	}
	if err != nil {
		return fmt.Errorf("end the guard: %w", err)
	}
	return nil
}

// Note appends a line to a file in dir, not through a link: what of a lab was removed, and what
// could not be. It returns failed joined with its own error. With an empty dir it notes nothing.
func Note(dir, name, lab string, removed []string, failed error) error {
	if dir == "" || failed == nil && len(removed) == 0 {
		return failed
	}
	line := fmt.Sprintf("%s lab %s has ended: removed %q", clock.Wall().Format(time.RFC3339), lab,
		removed)
	if failed != nil {
		line += "; " + failed.Error()
	}
	f, err := os.OpenFile(filepath.Join(dir, name),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return errors.Join(failed, err)
	}
	_, err = f.WriteString(strings.ReplaceAll(line, "\n", "; ") + "\n")
	return errors.Join(failed, err, f.Close())
}
