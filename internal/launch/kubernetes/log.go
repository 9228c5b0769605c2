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
	// knockTurn is how often it is looked whether the API is there again, by opening a connection,
	// which costs a window nothing; kubectl is only started then.
	knockTurn  = time.Second
	knockBound = time.Second
	// settled is how long a stream must last to be one: kubectl gives up sooner.
	settled = 3 * time.Second
)

// logCopy carries what the container writes into its log file.
type logCopy struct {
	p        *proc
	file     *os.File
	previous int64 // bytes so far
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

// carry goes on until the container has ended and its last words are here. A stream that ends
// before is opened again: the API server has gone, or the kubelet.
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
		if isAway(err) { // else its node has not told yet that it runs
			c.missing(true)
		}
		c.knock()
	}
	c.missing(false)
}

// one copies as long as one stream lasts, leaving out what an earlier one has brought.
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
		if err != nil { // a full disk is no reason to hold the container up at its next line
			_, _ = io.Copy(io.Discard, s)
		}
	}
	return s.close()
}

// knock waits until the API server listens again, or a moment where nobody knows where it does.
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

// missing notes from when to when the API did not bring the log.
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

// absences are those so far; one that goes on is as long as it is.
func (c *logCopy) absences() []record.APIOutage {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := append([]record.APIOutage(nil), c.foreign...)
	if n := len(out); n > 0 && out[n-1].DurationNs == 0 {
		out[n-1].DurationNs = max(1, clock.Wall().UnixNano()-out[n-1].AtNs)
	}
	return out
}
