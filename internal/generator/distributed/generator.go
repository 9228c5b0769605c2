package distributed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load"
)

// Generator is one of several generators of a load.
type Generator struct {
	Lab     string // HOST:PORT
	Key     Key
	Index   int
	Name    string // host and process id
	Version string // of this program; must equal the lab's

	// Wait is the time for which it retries if nothing listens yet. 0: one attempt.
	Wait time.Duration

	// Offer runs its part of the load; generator.Prony implements it.
	Offer func(context.Context, Order) (*load.Result, error)

	// Skew returns offsets that are added to the reported clocks. It is for tests of wrong clocks.
	Skew func() (mono, wall int64)
}

// errOver ends a generator after its work.
var errOver = errors.New("the coordinator has received all measurements")

// Run runs the load that the lab orders. It returns when the lab has the results. If the connection
// to the lab is lost, it stops the load.
func (g *Generator) Run(ctx context.Context) error {
	conn, err := g.find(ctx)
	if err != nil {
		return fmt.Errorf("connect to the coordinator at %s: %w", g.Lab, err)
	}
	return g.serve(ctx, conn)
}

// again is the pause between two attempts to connect.
const again = 500 * time.Millisecond

// find connects to the lab. It retries while nothing listens, but not if another program answers.
func (g *Generator) find(ctx context.Context) (net.Conn, error) {
	end := clock.Mono() + int64(g.Wait)
	for {
		conn, err := dial(ctx, g.Lab, g.Key)
		if late := (*net.OpError)(nil); err == nil || !errors.As(err, &late) ||
			late.Op != "dial" || clock.Mono() > end {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(again):
		}
	}
}

// dial connects to the lab and checks its certificate against the key.
func dial(ctx context.Context, location string, key Key) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, greetIn)
	defer cancel()
	d := tls.Dialer{Config: trusting(key)}
	return d.DialContext(ctx, "tcp", location)
}

// serve implements Run on a connection, which it closes.
func (g *Generator) serve(ctx context.Context, conn net.Conn) error {
	c := &line{Conn: conn}
	defer c.Close()                                       //nolint:errcheck // all was sent
	leave := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // unblocks readers
	defer leave()
	form := helloForm{Version: g.Version, Token: g.Key.Token, Index: g.Index, Name: g.Name}
	if err := c.tell(hello, form); err != nil {
		return fmt.Errorf("send the first message to the coordinator: %w", err)
	}
	// The lab sends orders only when all generators have connected.
	kind, body, err := c.hear(time.Hour, order, refused)
	if ctx.Err() != nil {
		return fmt.Errorf("wait for the load from the coordinator: %w", context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("wait for the load from the coordinator: %w", err)
	}
	if kind == refused {
		var why textForm
		if err := read(body, &why); err != nil {
			return err
		}
		return fmt.Errorf("the coordinator refused generator %d: %s", g.Index, plain(why.Text))
	}
	var f orderForm
	if err := read(body, &f); err != nil {
		return fmt.Errorf("read the load from the coordinator: %w", err)
	}
	o, err := f.order()
	if err != nil {
		return c.give(err)
	}
	if !leave() { // from here on the lab gets errors
		return context.Cause(ctx)
	}
	p := &ordered{Generator: g, line: c, start: make(chan int64, 1), word: make(chan struct{}, 1),
		out: make(chan []byte, backlog)}
	return p.offer(ctx, o)
}

// give sends the lab the reason of a failure.
func (c *line) give(err error) error {
	_ = c.tell(failed, textForm{plain(err.Error())}) // the lab also detects the closed connection
	return err
}

// backlog is the number of pieces that may wait for a slow lab.
const backlog = 16

// ordered is a generator with an order.
type ordered struct {
	*Generator
	*line
	start chan int64 // agreed start, clock.Mono
	word  chan struct{}
	out   chan []byte // pieces
	late  int64       // delay after the agreed start
	cut   atomic.Bool // the lab stopped the load
}

// offer runs the part and reports to the lab.
func (p *ordered) offer(ctx context.Context, o Order) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(p.listen()) }()
	var written sync.WaitGroup
	written.Go(func() { p.write(ctx, cancel) })
	o.Spec.Together, o.Spec.Stream, o.Spec.Every = p.together(o), p.stream(cancel), every
	res, err := p.Offer(ctx, o)
	close(p.out)
	written.Wait()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("was ended: %w", cause)
		}
		return p.give(err)
	}
	if err := p.tell(ended, endedForm{p.late}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait until the coordinator requests the measurements: "+
			"%w", context.Cause(ctx))
	case <-p.word:
	}
	if err := p.send(books, res.Ledger.Books()); err != nil {
		return fmt.Errorf("send the measurements: %w", err)
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, errOver) {
		return fmt.Errorf("wait until the coordinator confirms the measurements: %w", cause)
	}
	return nil
}

// listen receives the lab's messages, and answers requests for the clocks at once. It returns an
// error when no more messages can come.
func (p *ordered) listen() error {
	for {
		kind, body, err := p.hear(365*24*time.Hour, ask, start, stop, word, thanks)
		if err != nil {
			return fmt.Errorf("the coordinator %s", lost(err))
		}
		switch kind {
		case ask:
			err = p.tell(told, p.clocks())
		case start:
			var f startForm
			if err = read(body, &f); err == nil {
				mono, _ := p.skew()
				select {
				case p.start <- f.At - mono:
				default:
					err = errGarbage
				}
			}
		case stop:
			p.cut.Store(true)
		case word:
			select {
			case p.word <- struct{}{}:
			default:
				err = errGarbage
			}
		case thanks:
			return errOver
		}
		if err != nil {
			return err
		}
	}
}

func (p *ordered) skew() (mono, wall int64) {
	if p.Skew == nil {
		return 0, 0
	}
	return p.Skew()
}

func (p *ordered) clocks() clockForm {
	mono, wall := p.skew()
	return clockForm{Mono: clock.Mono() + mono, Wall: clock.Wall().UnixNano() + wall}
}

// together is called when all connections to the service are open.
func (p *ordered) together(o Order) func(context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		engine, err := o.By.Describe()
		if err != nil {
			return 0, err
		}
		if err := p.tell(ready, readyForm{engine}); err != nil {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case atNs := <-p.start:
			p.late = max(clock.Mono()-atNs, 0)
			return atNs, nil
		}
	}
}

// stream passes pieces to the writer without blocking: the load never waits.
func (p *ordered) stream(cancel context.CancelCauseFunc) func([]byte) bool {
	return func(b []byte) bool {
		select {
		case p.out <- b:
			return !p.cut.Load()
		default:
			cancel(errors.New("the coordinator does not receive reports"))
			return false
		}
	}
}

// write sends pieces until the channel is closed.
func (p *ordered) write(ctx context.Context, cancel context.CancelCauseFunc) {
	for b := range p.out {
		if ctx.Err() != nil {
			continue
		}
		if err := p.send(piece, b); err != nil {
			cancel(fmt.Errorf("the coordinator %s", lost(err)))
		}
	}
}
