package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"prony/internal/clock"
)

// guardEnv marks a process of this program as a lab's guard.
const guardEnv = "PRONY_DOCKER_GUARD"

// watch is what a guard must know.
type watch struct {
	Socket string `json:"socket"`
	Lab    lab    `json:"lab"`
	Dir    string `json:"dir"`
}

// leave is what a lab writes to its guard when nothing is left to remove.
const leave = "leave"

// A killed lab may have asked the engine for something that the engine has yet to make, and an
// engine may be away for a moment: so the guard looks more than once.
const (
	guardRounds = 3
	guardPause  = time.Second
)

// Guard must be called first in main of every program that uses this package, and in TestMain. In a
// process that was started to guard a lab it waits until that lab is gone, by whatever end, removes
// the containers and networks that the lab has left, and ends the process. In any other process it
// does nothing.
//
// The lab holds the one end of a pipe, which the kernel closes with the process. The guard leads a
// session of its own, so that neither a Ctrl-C nor a signal to the lab's process group ends it.
func Guard() {
	text, ok := os.LookupEnv(guardEnv)
	if !ok {
		return
	}
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if err := stand(text, os.Stdin, guardPause); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// stand is the guard's work.
func stand(text string, lab io.Reader, pause time.Duration) error {
	var w watch
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return fmt.Errorf("read watch: %w", err)
	}
	word, err := io.ReadAll(lab)
	if err == nil && string(word) == leave {
		return nil
	}
	for round := range guardRounds {
		if round > 0 {
			time.Sleep(pause)
		}
		err = errors.Join(err, w.clear())
	}
	return err
}

// clear removes what the lab has left and notes what could not be removed.
func (w watch) clear() error {
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	engine, err := connect(ctx, w.Socket)
	var removed []string
	if err == nil {
		removed, err = sweep(ctx, engine, w.Lab.owns)
		err = errors.Join(err, engine.Close())
	}
	if w.Dir == "" || err == nil && len(removed) == 0 {
		return err
	}
	text := fmt.Sprintf("%s lab %s is gone: removed %q", clock.Wall().Format(time.RFC3339),
		w.Lab.ID, removed)
	if err != nil {
		text += "; " + err.Error()
	}
	return errors.Join(err, w.note(text))
}

func (w watch) note(line string) error {
	f, err := os.OpenFile(filepath.Join(w.Dir, "docker-guard.log"),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.ReplaceAll(line, "\n", "; ") + "\n")
	return errors.Join(err, f.Close())
}

// guard is the lab's side of it.
type guard struct {
	cmd  *exec.Cmd
	pipe *os.File
}

func startGuard(w watch) (*guard, error) {
	self, err1 := os.Executable()
	text, err2 := json.Marshal(w)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	g := &guard{cmd: exec.Command(self), pipe: ours}
	g.cmd.Env, g.cmd.Stdin = []string{guardEnv + "=" + string(text)}, theirs
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = g.cmd.Start()
	theirs.Close()
	if err != nil {
		ours.Close()
		return nil, err
	}
	return g, nil
}

// end ends the guard and waits for it. With clean it has nothing to do any more; else it tries what
// the lab could not.
func (g *guard) end(clean bool) error {
	if g == nil || g.pipe == nil {
		return nil
	}
	var err error
	if clean {
		_, err = g.pipe.WriteString(leave)
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
