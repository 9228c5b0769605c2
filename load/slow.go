package load

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"prony.example/internal/base/clock"
	"prony.example/record"
)

// crowd is the slow clients: connections beside the load on which a request begins and never ends.
// It runs on a thread of its own, which is not pinned, and does next to nothing once all are in.
type crowd struct {
	spec   Slow
	engine Engine
	sent   []int // bytes of the text, by slot
	next   int64 // when the next bytes go out

	opened, refused, dropped, firstNs atomic.Int64
	began                             int64
	stop                              atomic.Bool
	done                              chan struct{}
	err                               error
}

// invite connects the slow clients and returns when each is in or was turned away, or the timeout
// has passed: the load meets a server that has them already.
func (r *run) invite() (*crowd, error) {
	s := r.spec.Slow
	c := &crowd{spec: s, sent: make([]int, s.Clients), done: make(chan struct{})}
	ready := make(chan error)
	go c.stay(r, ready)
	if err := <-ready; err != nil {
		return nil, fmt.Errorf("slow clients: %w", err)
	}
	return c, nil
}

// stay is the life of the crowd's thread.
func (c *crowd) stay(r *run, ready chan<- error) {
	defer close(c.done)
	runtime.LockOSThread() // engines belong to a thread; this one ends with its goroutine
	var err error
	if c.engine, err = r.spec.Engine(r.spec.Address, c.spec.Clients); err != nil {
		ready <- err
		return
	}
	defer c.engine.Release()
	c.began = clock.Mono()
	limit := c.began + int64(r.spec.Timeout)
	for i := range c.spec.Clients {
		c.engine.Open(i)
		if i%64 == 63 { // a server's queue of new connections is not endless
			err = c.engine.Wait(0, c)
		}
	}
	for err == nil && c.settled() < c.spec.Clients && clock.Mono() < limit {
		err = c.engine.Wait(clock.Mono()+tickNs, c)
	}
	ready <- err
	for err == nil && !c.stop.Load() {
		err = c.engine.Wait(clock.Mono()+tickNs, c)
		if now := clock.Mono(); c.spec.Drip > 0 && now >= c.next {
			c.next = now + int64(c.spec.Drip)
			c.drip()
		}
	}
	c.err = err
}

func (c *crowd) settled() int { return int(c.opened.Load() + c.refused.Load()) }

// drip sends the next byte of each.
func (c *crowd) drip() {
	for i, n := range c.sent {
		if n > 0 && n < len(c.spec.Text) {
			c.engine.Send(i, []byte(c.spec.Text[n:n+1]))
			c.sent[i]++
		}
	}
}

// Opened implements Handler.
func (c *crowd) Opened(i int, _ int64) {
	c.opened.Add(1)
	n := len(c.spec.Text)
	if c.spec.Drip > 0 {
		n = min(n, 1)
	}
	if n > 0 {
		c.engine.Send(i, []byte(c.spec.Text[:n]))
	}
	c.sent[i] = n
}

// Received implements Handler: an answer to what is no request yet is the server's good-bye.
func (c *crowd) Received(int, int64, []byte) {}

// Closed implements Handler.
func (c *crowd) Closed(i int, atNs int64, op Op, _ error) {
	c.sent[i] = len(c.spec.Text)
	if op == Connecting {
		c.refused.Add(1)
		return
	}
	c.dropped.Add(1)
	c.firstNs.CompareAndSwap(0, atNs-c.began)
}

// slowHere is how many slow clients are this part's.
func (s *Spec) slowHere() int {
	if s.Slow.Clients == 0 {
		return 0
	}
	return int(s.Part.share(int64(s.Slow.Clients)))
}

// leave ends the crowd, if there is one, and waits for its thread.
func (c *crowd) leave() {
	if c == nil {
		return
	}
	c.stop.Store(true)
	<-c.done
}

func (c *crowd) result() record.Slow {
	if c == nil {
		return record.Slow{}
	}
	return record.Slow{
		Clients: c.spec.Clients, Opened: c.opened.Load(), Dropped: c.dropped.Load(),
		FirstNs: c.firstNs.Load(),
	}
}
