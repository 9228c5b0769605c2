package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"prony/internal/launch"
	"prony/internal/launch/kernel"
	"prony/internal/shell"
)

// logCopy carries what the container writes into its log file.
type logCopy struct {
	done chan struct{}
	conn io.Closer
	kept *launch.Log
	err  error // after done
}

// attach asks for the container's streams before it is started, so that no line is missed.
func (p *proc) attach(ctx context.Context) (*logCopy, error) {
	kept, err := launch.KeepLog(p.spec.LogFile)
	if err != nil {
		return nil, err
	}
	file, err := kept.Writer()
	if err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	got, err := p.l.engine.ContainerAttach(ctx, p.id, client.ContainerAttachOptions{
		Stream: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attach to container %s: %w", p.name, explained(err)),
			file.Close(), kept.Close())
	}
	c := &logCopy{done: make(chan struct{}), conn: got.Conn, kept: kept}
	go func() {
		defer close(c.done)
		_, c.err = stdcopy.StdCopy(file, file, got.Reader)
		if c.err != nil { // a full disk is no reason to hold the container up at its next line
			_, _ = io.Copy(io.Discard, got.Reader)
		}
		c.err = errors.Join(c.err, file.Close(), kept.Close())
	}()
	return c, nil
}

// drain waits for the last words of a container that has ended.
func (c *logCopy) drain() {
	select {
	case <-c.done:
	case <-time.After(drainBound):
		c.conn.Close() // somebody else holds the stream open
		<-c.done
	}
}

// evidence is what the container's control group tells in the moment in which the main process has
// ended. The engine removes the group soon after, and its own word for it, OOMKilled, comes without
// numbers, and with some versions of cgroups and engines not at all.
type evidence struct {
	done   chan struct{}
	memory kernel.Memory // after done
}

// watchEnd waits for the end of the main process by its file descriptor (pidfd_open(2)), which
// anybody may have and which costs nothing while it waits.
func watchEnd(pid int, read func() kernel.Memory) *evidence {
	e := &evidence{done: make(chan struct{})}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		close(e.done) // it has ended already, or the kernel is older than 5.10
		return e
	}
	file := os.NewFile(uintptr(fd), "pidfd")
	go func() {
		defer close(e.done)
		defer file.Close()
		if ended(file) == nil {
			e.memory = read()
		}
	}()
	return e
}

// ended returns when the process has ended.
func ended(pidfd *os.File) error {
	raw, err := pidfd.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return err == nil && n > 0
	})
}

// readMemory reads the container's own group, and the limit and the peak from that of its system if
// this has them.
func (p *proc) readMemory() kernel.Memory {
	m := kernel.ReadMemory(p.groups)
	if p.pod != nil {
		whole := kernel.ReadMemory(p.pod.groups)
		m.Kills = max(m.Kills, whole.Kills) // version 1 counts where the process was, 2 above, too
		m.LimitBytes, m.PeakBytes = whole.LimitBytes, whole.PeakBytes
	}
	return m
}

// heed waits for the end of the container.
func (p *proc) heed(end client.ContainerWaitResult) {
	defer close(p.exited)
	select {
	case got := <-end.Result:
		how := exitWords(got.StatusCode)
		if got.Error != nil && got.Error.Message != "" {
			how += " (" + got.Error.Message + ")"
		}
		p.exit = p.memory().Exit(how, p.stopping.Load())
	case err := <-end.Error:
		p.exit = fmt.Sprintf("not known: wait for container %s: %v", p.name, explained(err))
	}
	p.log.drain()
}

// memory is what killed the container, if the memory's limit did.
func (p *proc) memory() kernel.Memory {
	var m kernel.Memory
	if p.evidence != nil {
		<-p.evidence.done // the process has ended
		m = p.evidence.memory
	}
	if m.Kills > 0 {
		return m
	}
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	got, err := p.l.engine.ContainerInspect(ctx, p.id, client.ContainerInspectOptions{})
	if err == nil && got.Container.State != nil && got.Container.State.OOMKilled {
		m.Kills = 1
		m.LimitBytes = cmp.Or(m.LimitBytes, p.spec.Alone())
	}
	return m
}

// forced are the signals that end the first process of a PID namespace if it has not asked for
// them: SIGKILL, and those that its own faults raise. All others the kernel keeps from it
// (pid_namespaces(7)), so that a status of 128 and more is the program's own, as that of a JVM
// which ends after SIGTERM, and is said as the status that it is.
var forced = map[int64]unix.Signal{
	128 + 4: unix.SIGILL, 128 + 5: unix.SIGTRAP, 128 + 7: unix.SIGBUS, 128 + 8: unix.SIGFPE,
	128 + 9: unix.SIGKILL, 128 + 11: unix.SIGSEGV,
}

// exitWords says how a container ended as os/exec says it of a process.
func exitWords(status int64) string {
	if s, ok := forced[status]; ok {
		return "signal: " + s.String()
	}
	return fmt.Sprintf("exit status %d", status)
}

// Stop implements launch.Process. It does not depend on any context of the launch: what was given
// up is removed all the same.
func (p *proc) Stop(grace time.Duration) error {
	p.stop.Lock()
	defer p.stop.Unlock()
	p.stopping.Store(true)
	if !p.made {
		p.over()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace+callBound)
	defer cancel()
	if p.started && !p.ended() {
		if grace > 0 {
			p.send(ctx, p.signal)
			select {
			case <-p.exited:
			case <-time.After(grace):
			}
		}
		if !p.ended() {
			p.send(ctx, "SIGKILL")
			select {
			case <-p.exited:
			case <-ctx.Done():
			}
		}
	}
	// By its name, which errors then have: the number may not have come back.
	if err := removeContainer(ctx, p.l.engine, p.name); err != nil {
		return fmt.Errorf("stop %s: %w", p.spec.Name, err)
	}
	if p.pod != nil && p.root == p {
		if err := removePod(p.pod.name); err != nil {
			return fmt.Errorf("stop %s: remove the system's control group: %w", p.spec.Name, err)
		}
	}
	p.over()
	return nil
}

// send sends a signal. What is wrong with the engine the removal tells; a container that has just
// ended takes no signal.
func (p *proc) send(ctx context.Context, signal string) {
	shell.Run("docker", "kill", "--signal", signal, p.id)
	_, _ = p.l.engine.ContainerKill(ctx, p.id, client.ContainerKillOptions{Signal: signal})
}

// over ends what listens to a container that is no more.
func (p *proc) over() {
	if p.leave != nil {
		p.leave()
	}
	if p.log != nil {
		p.log.conn.Close()
		<-p.log.done
	}
	p.made = false
	p.l.live.Delete(p)
}
