package kubernetes

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/record"
)

const (
	// knockTurn is the interval of attempts to connect to an API server that went away. A
	// connection does not disturb a window; kubectl is started only after it succeeds.
	knockTurn  = time.Second
	knockBound = time.Second
	// settled is the time after which a stream counts as established: kubectl gives up sooner.
	settled = 3 * time.Second
)

// logCopy copies the container's output into its log file.
type logCopy struct {
	p        *proc
	file     *os.File
	previous int64 // bytes copied so far
	ctx      context.Context

	mu      sync.Mutex
	foreign []record.APIOutage
}

func (p *proc) copyLog() (*logCopy, error) {
	file, err := p.OpenLog()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &logCopy{p: p, file: file, ctx: ctx}
	p.CopyLog(file, stop, c.carry)
	return c, nil
}

// carry runs until the container has ended and its log is complete. If a stream ends before,
// because the API server or the kubelet stopped, carry opens another.
func (c *logCopy) carry() {
	for c.ctx.Err() == nil {
		began := clock.Mono()
		err := c.one()
		if c.p.mainEnded() && err == nil {
			break
		}
		if clock.Mono()-began > int64(settled) {
			c.missing(false)
		}
		if c.ctx.Err() != nil {
			break
		}
		if isAway(err) { // otherwise its node has not reported the container yet
			c.missing(true)
		}
		c.knock()
	}
	c.missing(false)
}

// one copies from one stream until it ends, and skips what earlier streams brought.
func (c *logCopy) one() error {
	s, err := c.p.l.cluster.open(c.ctx, "logs", "--follow", c.p.pod.Metadata.Name,
		"--container="+container)
	if err != nil {
		return err
	}
	back := time.AfterFunc(settled, func() { c.missing(false) })
	defer back.Stop()
	var n int64
	if n, err = io.CopyN(io.Discard, s, c.previous); err == nil && n == c.previous {
		n, err = io.Copy(c.file, s)
		c.previous += n
		if err != nil { // a full disk must not block the container
			_, _ = io.Copy(io.Discard, s)
		}
	}
	return s.close()
}

// knock waits until the API server accepts connections again, or one knockTurn if its address is
// unknown.
func (c *logCopy) knock() {
	for c.ctx.Err() == nil {
		sleep(c.ctx, knockTurn)
		if c.p.mainEnded() || c.p.l.address == "" {
			return
		}
		conn, err := (&net.Dialer{Timeout: knockBound}).DialContext(c.ctx, "tcp", c.p.l.address)
		if err == nil {
			conn.Close()
			return
		}
	}
}

// missing records the begin and the end of outages of the log stream.
func (c *logCopy) missing(now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.foreign)
	open := n > 0 && c.foreign[n-1].DurationNs == 0
	atNs := clock.Wall().UnixNano()
	switch {
	case now && !open:
		c.foreign = append(c.foreign, record.APIOutage{AtNs: atNs})
	case !now && open:
		c.foreign[n-1].DurationNs = max(1, atNs-c.foreign[n-1].AtNs)
	}
}

// absences returns the outages so far; a present one has its length until now.
func (c *logCopy) absences() []record.APIOutage {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := append([]record.APIOutage(nil), c.foreign...)
	if n := len(out); n > 0 && out[n-1].DurationNs == 0 {
		out[n-1].DurationNs = max(1, clock.Wall().UnixNano()-out[n-1].AtNs)
	}
	return out
}
