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

	"prony/internal/launch/kernel"
	"prony/internal/shell"
)

// attach asks for the container's streams before it is started, so that no line is missed.
func (p *proc) attach(ctx context.Context) error {
	file, err := p.OpenLog()
	if err != nil {
		return err
	}
	said, err := p.l.engine.attach(ctx, p.id)
	if err != nil {
		return errors.Join(fmt.Errorf("attach to container %s: %w", p.name, explained(err)),
			file.Close())
	}
	p.CopyLog(file, func() { said.Close() }, func() {
		// A full disk is no reason to hold the container up at its next line.
		if _, err := stdcopy.StdCopy(file, file, said); err != nil {
			_, _ = io.Copy(io.Discard, said)
		}
	})
	return nil
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
	got := <-end
	how := kernel.ExitWords(got.StatusCode)
	if got.Error != nil && got.Error.Message != "" {
		how += " (" + got.Error.Message + ")"
	}
	if got.err != nil {
		how = fmt.Sprintf("not known: wait for container %s: %v", p.name, explained(got.err))
	} else {
		how = p.memory().Exit(how, p.Stopping.Load())
	}
	p.DrainLog()
	p.End(how)
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
		m.LimitBytes = cmp.Or(m.LimitBytes, p.Spec.Alone())
	}
	return m
}

// Stop implements launch.Process. It does not depend on any context of the launch: what was given
// up is removed all the same.
func (p *proc) Stop(grace time.Duration) error {
	p.Stops.Lock()
	defer p.Stops.Unlock()
	p.Stopping.Store(true)
	if !p.made {
		p.over()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace+callBound)
	defer cancel()
	if p.started && !p.Ended() {
		if grace > 0 {
			p.send(ctx, p.signal)
			p.Wait(grace)
		}
		if !p.Ended() {
			p.send(ctx, "SIGKILL")
			select {
			case <-p.Exited():
			case <-ctx.Done():
			}
		}
	}
	// By its name, which errors then have: the number may not have come back.
	if err := removeContainer(ctx, p.l.engine, p.name); err != nil {
		return fmt.Errorf("stop %s: %w", p.Spec.Name, err)
	}
	if p.pod != nil && p.root == p {
		if err := removePod(p.pod.name); err != nil {
			return fmt.Errorf("stop %s: remove the system's control group: %w", p.Spec.Name, err)
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
	_ = p.CloseLog() // what there is of it is kept
	p.made = false
	p.l.live.Delete(p)
}
