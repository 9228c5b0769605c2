// Package guard has this program once more, in a session of its own, look after what a lab has
// started outside of its processes, such as containers and pods: when the lab is killed, the guard
// removes what it left.
//
// The lab holds the one end of a pipe, which the kernel closes with the process. The guard leads a
// session of its own, so that neither a Ctrl-C nor a signal to the lab's process group ends it. A
// guard that is killed, too, is the next lab's to make up for.
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

// A killed lab may have asked for something that has yet to be made, and who is asked may be away
// for a moment: so the guard looks more than once.
const (
	rounds = 3
	pause  = time.Second
)

// leave is what a lab writes to its guard when nothing is left to remove.
const leave = "leave"

// Post is what guards of one kind do.
type Post struct {
	Env string // this variable marks a process of this program as such a guard, and has its orders
	// Clear removes what the lab that gave these orders has left, and notes what it could not.
	Clear func(orders []byte) error
}

// Stand must be called first in main of every program that starts such guards, and in TestMain. In
// a process that was started to guard a lab it waits until that lab is gone, by whatever end,
// clears up and ends the process. In any other process it does nothing.
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

// Instead is for a process of this program that was started to be something else than main, which
// this variable marks: it lives on the process's standard streams, and ends with it. In any other
// process it does nothing. It must be called first in main, too.
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

// stand is the guard's work.
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

// Guard is the lab's side of one.
type Guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// Start starts a guard with orders, which become JSON, and these variables alone.
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
	return g, g.cmd.Start()
}

// PID is the guard's number.
func (g *Guard) PID() int { return g.cmd.Process.Pid }

// Over says whether it has ended and was waited for.
func (g *Guard) Over() bool { return g.cmd.ProcessState != nil }

// End ends the guard and waits for it. With clean it has nothing to do any more; else it tries what
// the lab could not. It may be called again, and of nobody.
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

// Note adds to a file in a folder, where nobody else may have put a link, what of a lab was removed
// and what could not be. Its error is both that and its own. No folder: nothing is noted.
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
