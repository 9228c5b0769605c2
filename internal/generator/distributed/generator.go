package distributed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
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
	c, err := g.find(ctx)
	if err != nil {
		return err
	}
	return g.serve(ctx, c)
}

// again is the pause between two attempts to connect, and busyWait the time for which a generator
// retries if something listens but does not welcome it: the lab closes connections if it has too
// many.
const (
	again    = 500 * time.Millisecond
	busyWait = 20 * time.Second
)

// find connects to the lab until it is welcome. It retries while nothing listens or the lab is
// busy, but not if another program answers or the lab refuses.
func (g *Generator) find(ctx context.Context) (*line, error) {
	began := clock.Mono()
	for {
		c, err := g.connect(ctx)
		wait := g.Wait
		if isBusy(err) {
			wait = max(wait, busyWait)
		} else if err == nil || !nothingListens(err) {
			return c, err
		}
		if time.Duration(clock.Mono()-began) >= wait || ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(again):
		}
	}
}

// nothingListens reports whether no connection was opened.
func nothingListens(err error) bool {
	late, is := errors.AsType[*net.OpError](err)
	return is && late.Op == "dial"
}

// isBusy reports whether a connection was opened, and closed or not answered before the welcome.
func isBusy(err error) bool {
	if err == nil || nothingListens(err) || errors.Is(err, context.Canceled) {
		return false
	}
	late, is := errors.AsType[net.Error](err)
	return is && late.Timeout() || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// connect connects once, and returns when the lab has welcomed the generator.
func (g *Generator) connect(ctx context.Context) (*line, error) {
	conn, err := dial(ctx, g.Lab, g.Key)
	if err != nil {
		return nil, fmt.Errorf("connect to the coordinator at %s: %w", g.Lab, err)
	}
	return g.greet(ctx, conn)
}

// dial connects to the lab and checks its certificate against the key.
func dial(ctx context.Context, location string, key Key) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, greetIn)
	defer cancel()
	d := tls.Dialer{Config: trusting(key)}
	return d.DialContext(ctx, "tcp", location)
}

// greet identifies the generator to the lab, and returns when it is welcome.
func (g *Generator) greet(ctx context.Context, conn net.Conn) (_ *line, err error) {
	c := &line{Conn: conn}
	leave := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // unblocks readers
	defer func() {
		if leave(); err != nil {
			c.Close() //nolint:errcheck // it failed
		}
	}()
	form := helloForm{Version: g.Version, Token: g.Key.Token, Index: g.Index, Name: g.Name}
	if err := c.tell(hello, form); err != nil {
		return nil, fmt.Errorf("send the first message to the coordinator: %w", err)
	}
	kind, body, err := c.hear(greetIn, welcome, refused)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("wait for the coordinator at %s to accept generator %d: %w", g.Lab,
			g.Index, err)
	}
	if kind == refused {
		var why textForm
		if err := read(body, &why); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("the coordinator refused generator %d: %s", g.Index,
			plain(why.Text))
	}
	return c, nil
}

// serve runs the load on a connection, which it closes.
func (g *Generator) serve(ctx context.Context, c *line) error {
	defer c.Close()                                       //nolint:errcheck // all was sent
	leave := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // unblocks readers
	defer leave()
	// The lab sends orders only when all generators have connected.
	_, body, err := c.hear(time.Hour, order)
	if ctx.Err() != nil {
		return fmt.Errorf("wait for the load from the coordinator: %w", context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("wait for the load from the coordinator: %w", err)
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
	o.Spec.Together = p.together(o)
	o.Spec.Observer, o.Spec.Every, o.Spec.Detail = p.stream(cancel), every, load.Pieces
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
		engine, err := o.By.Describe(o.Spec.Network)
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
func (p *ordered) stream(cancel context.CancelCauseFunc) load.ProgressFunc {
	return func(now load.Progress) bool {
		select {
		case p.out <- now.Piece:
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
