package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"

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
	said, err := p.l.engine.attach(ctx, p.id)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attach to container %s: %w", p.name, explained(err)),
			file.Close(), kept.Close())
	}
	c := &logCopy{done: make(chan struct{}), conn: said, kept: kept}
	go func() {
		defer close(c.done)
		_, c.err = stdcopy.StdCopy(file, file, said)
		if c.err != nil { // a full disk is no reason to hold the container up at its next line
			_, _ = io.Copy(io.Discard, said)
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
func (p *proc) heed(end <-chan ended) {
	defer close(p.exited)
	if got := <-end; got.err != nil {
		p.exit = fmt.Sprintf("not known: wait for container %s: %v", p.name, explained(got.err))
	} else {
		how := kernel.ExitWords(got.StatusCode)
		if got.Error != nil && got.Error.Message != "" {
			how += " (" + got.Error.Message + ")"
		}
		p.exit = p.memory().Exit(how, p.stopping.Load())
	}
	p.log.drain()
}

// memory is what killed the container, if the memory's limit did.
func (p *proc) memory() kernel.Memory {
	var m kernel.Memory
	if p.evidence != nil {
		m = p.evidence.Memory() // the process has ended
	}
	if m.Kills > 0 {
		return m
	}
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	got, err := p.l.engine.inspect(ctx, p.id)
	if err == nil && got.State != nil && got.State.OOMKilled {
		m.Kills = 1
		m.LimitBytes = cmp.Or(m.LimitBytes, p.spec.Alone())
	}
	return m
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
	_ = p.l.engine.post(ctx, "/containers/"+p.id+"/kill", url.Values{"signal": {signal}})
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
