//go:build linux && !portable

package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/base/privilege"
)

// LaunchSpec is a home to be started. It listens on any free ports.
type LaunchSpec struct {
	Program string // prony-home, as internal/telemetry/locate finds it
	Dir     string // the folder to keep things in, e.g. results/RUN/telemetry
	Cores   []int  // it may run on; empty: where the lab may

	// Listen is the host of its addresses, but for the one that the lab asks: whoever could reach
	// that could give it orders. It may be the address of a bridge that containers have to this
	// machine; empty: 127.0.0.1.
	Listen string

	Forward     string // another OTLP endpoint to send all to; empty: none
	ForwardOnly bool   // and keep nothing here
}

// Child is a home that was started.
type Child struct {
	word   Word
	cmd    *exec.Cmd
	life   io.Closer // its standard input: it ends when this does, by whatever death
	exited chan struct{}
	exit   error // after exited
	log    string
}

// niceness of a home, so that it yields to the generator.
const niceness = 10

const (
	launchWait = 20 * time.Second // TSDB reads its log first
	stopWait   = 20 * time.Second // for it to store what it has
	killWait   = 5 * time.Second
	logFile    = "home.log" // in the folder: what it says on standard error
)

// Launch starts a home and waits until it listens. An error means that nothing is left running.
func Launch(ctx context.Context, s LaunchSpec) (*Child, error) {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("start the telemetry collector: %w", err)
	}
	c := &Child{exited: make(chan struct{}), log: filepath.Join(s.Dir, logFile)}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start the telemetry collector: %w", err)
	}
	defer log.Close()
	c.cmd = exec.Command(s.Program, s.args()...)
	cmdlog.Command(c.cmd)
	c.cmd.Stderr = log
	// Its own group: a Ctrl-C is for the lab, which ends the home after the last trial has told.
	c.cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		c.life, err = c.cmd.StdinPipe()
	}
	if err != nil {
		return nil, fmt.Errorf("start the telemetry collector: %w", err)
	}
	if err := startOn(c.cmd, s.Cores); err != nil {
		return nil, errors.Join(fmt.Errorf("start the telemetry collector: %w",
			err), c.life.Close())
	}
	reported := make(chan error, 1)
	go func() {
		reported <- json.NewDecoder(out).Decode(&c.word)
		// A home says nothing more; if it does, it must not block on it.
		_, _ = io.Copy(io.Discard, out) // its end is the child's, which Wait tells
		c.exit = c.cmd.Wait()
		close(c.exited)
	}()
	if err := c.ready(ctx, reported); err != nil {
		return nil, err
	}
	return c, nil
}

func (s LaunchSpec) args() []string {
	const here = "127.0.0.1"
	free := net.JoinHostPort(cmp.Or(s.Listen, here), "0")
	args := []string{"telemetry", "serve", "--until-stdin-ends", "--dir", s.Dir, "--grpc", free,
		"--http", free, "--zipkin", free, "--query", here + ":0"}
	if s.Listen != "" {
		args = append(args, "--expose")
	}
	if s.Forward != "" {
		args = append(args, "--forward", s.Forward)
	}
	if s.ForwardOnly {
		args = append(args, "--forward-only")
	}
	return args
}

// ready waits for the child's word where it listens.
func (c *Child) ready(ctx context.Context, reported <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, launchWait)
	defer cancel()
	var err error
	select {
	case err = <-reported:
	case <-ctx.Done():
		err = fmt.Errorf("the collector did not report its address: %w", ctx.Err())
	}
	if err == nil {
		return nil
	}
	kill := c.kill()
	why := "the collector listens on no address"
	if tail := c.Log(5); len(tail) > 0 {
		why = strings.Join(tail, "\n")
	}
	return errors.Join(fmt.Errorf("start the telemetry collector: %w; %s", err, why), kill)
}

// startOn starts a command on some cores and with its niceness, both of which a process has from
// the thread that forks it, so that not one of its threads ever runs elsewhere. That thread is
// spent for it: a niceness cannot be taken back without privilege.
func startOn(cmd *exec.Cmd, cores []int) error {
	return privilege.Spend(func() error { return lower(cores, cmd.Start) })
}

func lower(cores []int, action func() error) error {
	if len(cores) > 0 {
		var set unix.CPUSet
		for _, c := range cores {
			set.Set(c)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("limit the collector to cores %v: %w", cores, err)
		}
	}
	// Who is nicer already may not become less so, which is no harm.
	err := unix.Setpriority(unix.PRIO_PROCESS, 0, niceness)
	if err != nil && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("lower the collector's priority to nice %d: %w", niceness, err)
	}
	return action()
}

// Endpoints are where it listens.
func (c *Child) Endpoints() Endpoints { return c.word.Endpoints }

// Token is what it takes orders by.
func (c *Child) Token() string { return c.word.Token }

// PID is its process.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Exited is closed when it has ended, wanted or not; Exit says how, after that.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Exit is nil for a home that ended as it should.
func (c *Child) Exit() error {
	<-c.exited
	return c.exit
}

// Log returns up to n last lines of what it said.
func (c *Child) Log(n int) []string { return files.Tail(c.log, n) }

// Stop lets it store what it has and end: by closing its standard input, then by force.
func (c *Child) Stop(ctx context.Context) error {
	err := c.life.Close()
	if err != nil && !errors.Is(err, os.ErrClosed) {
		return errors.Join(fmt.Errorf("end the telemetry collector: %w", err), c.kill())
	}
	ctx, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	select {
	case <-c.exited:
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("end the telemetry collector: it did not end within %v, so "+
			"data that it had not stored is lost", stopWait), c.kill())
	}
	if c.exit != nil {
		return fmt.Errorf("end the telemetry collector: %w; %s", c.exit,
			strings.Join(c.Log(5), "\n"))
	}
	return nil
}

func (c *Child) kill() error {
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the telemetry collector: %w", err)
	}
	select {
	case <-c.exited:
		return nil
	case <-time.After(killWait):
		return fmt.Errorf("kill the telemetry collector: process %d still runs", c.PID())
	}
}
