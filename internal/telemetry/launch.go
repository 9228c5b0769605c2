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

// LaunchSpec describes a collector to start. It listens on free ports.
type LaunchSpec struct {
	Program string // path of prony-home, as found by internal/telemetry/locate
	Dir     string // folder of stored data, for example results/RUN/telemetry
	Cores   []int  // cores on which it may run; empty: those of this program

	// Listen is the host of its addresses, except of the control address, which only this machine
	// may reach. It may be the address of a container bridge; empty: 127.0.0.1.
	Listen string

	Forward     string // another OTLP endpoint that receives everything; empty: none
	ForwardOnly bool   // store nothing here
}

// Child is a collector that was started.
type Child struct {
	word   Word
	cmd    *exec.Cmd
	life   io.Closer // its standard input: the collector ends when this closes
	exited chan struct{}
	exit   error // valid after exited is closed
	log    string
}

// niceness is the collector's nice value, which gives the load generator priority.
const niceness = 10

const (
	launchWait = 20 * time.Second // TSDB reads its log first
	stopWait   = 20 * time.Second // to store open data
	killWait   = 5 * time.Second
	logFile    = "home.log" // in the folder: its standard error
)

// Launch starts a collector and waits until it listens. After an error nothing is left running.
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
	// A group of its own: a Ctrl-C must reach only prony, which ends the collector after the last
	// trial.
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
		// A collector prints nothing more; if it does, it must not block.
		_, _ = io.Copy(io.Discard, out) // ends with the child, whose end Wait reports
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

// ready waits until the child reports its addresses.
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

// startOn starts a command on some cores with its niceness. Both are inherited from the forking
// thread, so that no thread of the process ever runs elsewhere. That thread ends afterwards,
// because resetting the niceness needs privileges.
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
	// A process with a higher nice value may not lower it, which does no harm.
	err := unix.Setpriority(unix.PRIO_PROCESS, 0, niceness)
	if err != nil && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("lower the collector's priority to nice %d: %w", niceness, err)
	}
	return action()
}

// Endpoints returns the addresses on which it listens.
func (c *Child) Endpoints() Endpoints { return c.word.Endpoints }

// Token returns the token for its control requests.
func (c *Child) Token() string { return c.word.Token }

// PID returns the number of its process.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Exited returns a channel that is closed when it has ended for any reason. Exit then says how.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Exit waits for the end and returns nil after a regular end.
func (c *Child) Exit() error {
	<-c.exited
	return c.exit
}

// Log returns up to n last lines of its standard error.
func (c *Child) Log(n int) []string { return files.Tail(c.log, n) }

// Stop ends it, with its data stored, by closing its standard input; after a timeout it kills it.
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
