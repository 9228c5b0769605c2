package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"prony.example/internal/launch/cgroup"
)

const (
	// endBound limits how long the cluster may take to report how a container ended.
	endBound = 30 * time.Second
	// goneTurn is the silence after which the existence of the pod is checked.
	goneTurn = 3 * time.Second
	// killSpare is the time that a kubelet needs after the grace to kill.
	killSpare = 20 * time.Second
	pollTurn  = 50 * time.Millisecond
)

// mainEnded reports whether the main process has ended, according to the kernel or the cluster.
func (p *proc) mainEnded() bool {
	if p.end == nil || p.heard.Load() {
		return true
	}
	select {
	case <-p.end.Done():
		return true
	default:
		return false
	}
}

// heed waits for the end of the container and records how it ended.
func (p *proc) heed() {
	var memory cgroup.Memory
	bound := endBound
	if p.end != nil {
		select {
		case <-p.end.Done():
			memory = p.end.Memory()
		case <-p.site.gone(): // only the cluster can report it, at any later time
			bound = p.order.lifetime + endBound
		}
	}
	how, outOfMemory, err := p.howEnded(bound)
	p.heard.Store(true)
	if err != nil {
		how = "unknown: " + err.Error()
	}
	if outOfMemory && memory.Kills == 0 {
		memory.Kills = 1
		memory.LimitBytes = cmp.Or(memory.LimitBytes, p.Spec.MemoryBytes)
	}
	p.DrainLog()
	p.End(memory.Exit(how, p.Stopping.Load()))
}

// howEnded returns the cluster's report of the end, which comes shortly after the kernel's.
func (p *proc) howEnded(bound time.Duration) (how string, outOfMemory bool, err error) {
	if how, outOfMemory, ok := p.pod.ended(); ok {
		return how, outOfMemory, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	changes, failed := p.changes(ctx)
	silence := time.NewTicker(goneTurn)
	defer silence.Stop()
	for {
		select {
		case c := <-changes:
			if how, outOfMemory, ok := c.Object.ended(); ok {
				return how, outOfMemory, nil
			}
			if c.Type == "DELETED" {
				return "", false, errDeleted
			}
		case err := <-failed:
			return "", false, err
		case <-silence.C:
			now, err := p.now(ctx)
			if errors.Is(err, errDeleted) {
				return "", false, err
			}
			if how, outOfMemory, ok := now.ended(); ok {
				return how, outOfMemory, nil
			}
		case <-ctx.Done():
			return "", false, fmt.Errorf("the cluster did not report the end within %v", bound)
		}
	}
}

// Stop implements launch.Process. It uses no context of the launch, so that it also removes
// cancelled launches.
func (p *proc) Stop(grace time.Duration) error {
	p.Stops.Lock()
	defer p.Stops.Unlock()
	p.Stopping.Store(true)
	if !p.created {
		p.over()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace+killSpare+2*callBound)
	defer cancel()
	if p.log != nil && !p.Ended() {
		// A grace of 0 would remove the object, but not the container.
		seconds := max(1, int64(math.Ceil(grace.Seconds())))
		_ = persist(ctx, func() error { // the removal reports errors
			_, err := p.l.cluster.ask(ctx, nil, "delete", "pod", p.pod.Metadata.Name,
				"--wait=false", "--ignore-not-found", fmt.Sprint("--grace-period=", seconds))
			return err
		})
		p.Wait(time.Duration(seconds)*time.Second + killSpare)
	}
	err := persist(ctx, func() error { return p.l.cluster.remove(ctx, p.order.name) })
	if err != nil {
		return fmt.Errorf("stop %s: remove job %s: %w%s", p.Spec.Name, p.order.name, err,
			p.lost(ctx))
	}
	for remaining := p.running(); len(remaining) > 0; remaining = p.running() {
		if ctx.Err() != nil {
			return fmt.Errorf("stop %s: the pod is deleted, but its processes %v still run",
				p.Spec.Name,
				remaining)
		}
		time.Sleep(pollTurn)
	}
	p.over()
	return nil
}

// persist repeats a call until the API server answers or the context ends.
func persist(ctx context.Context, fetch func() error) error {
	for {
		err := fetch()
		if !isAway(err) || ctx.Err() != nil {
			return err
		}
		sleep(ctx, retryTurn)
	}
}

// lost returns a hint if a pod cannot be removed because its node does not respond.
func (p *proc) lost(ctx context.Context) string {
	if !nameForm.MatchString(p.pod.Spec.NodeName) {
		return ""
	}
	// The time of the caller's context is used up.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callBound)
	defer cancel()
	n, err := look[node](ctx, p.l.cluster, "get", "node", p.pod.Spec.NodeName)
	if err != nil {
		return ""
	}
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" && c.Status != "True" {
			return fmt.Sprintf("; node %s does not respond to the cluster (%s): its kubelet "+
				"removes the pod when the node responds again",
				said(n.Metadata.Name), said(c.Message))
		}
	}
	return ""
}

// over ends the listeners of a removed pod.
func (p *proc) over() {
	if p.sight != nil {
		p.sight.close()
	}
	_ = p.CloseLog() // the log that exists is kept
	if f, is := p.site.(*far); is && f.lost() == nil {
		_ = f.quick(question{Do: "forget"}, nil) // without it, the reader ends with its lab
	}
	p.created = false
	p.l.live.Delete(p)
}
