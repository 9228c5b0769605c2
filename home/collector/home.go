// Package collector is the lab's home for telemetry, what home/cmd/prony-home serves: it
// opens the doors (home/otlp), hands what comes to the stores and, when asked to,
// to another endpoint, and answers the lab what a trial has told.
//
//	intake ─┬─► stores: metrics (TSDB, PromQL), spans, logs ─► Dir
//	        └─► forward ─► any OTLP endpoint
//	lab ─► /prony/trial, mark, end ─► counts since, ─► telemetry.Report
//	lab ─► /prony/points ─► metrics, forward, in no count of what services sent
//
// It keeps stats.json as it goes. Killed and started again on the same folder it goes on counting,
// and says of the trials under way that they are not whole.
//
// Non-goals: nothing here is needed for a result; all of it may be lost without losing one.
package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"prony.example/home/forward"
	"prony.example/home/otlp"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/flags"
	"prony.example/record"
)

// Config is how a home is to be. Addresses are "host:port"; the port 0 is any that is free.
type Config struct {
	Dir                       string // to keep things in; made if it is not there
	GRPC, HTTP, Zipkin, Query string
	Token                     string // of orders; without one, none is taken

	Forward     string // another OTLP endpoint, see forward.Start; empty: none
	ForwardOnly bool   // keep nothing here but counts

	// MemoryBytes is what the process should stay within: the garbage collector works towards it,
	// and above three quarters of it nothing more is taken in. 0: flags.DefaultMemory.
	MemoryBytes int64
	Limits      otlp.Limits // HeapBytes comes from MemoryBytes

	Open Opener // the stores; nil: the real ones
}

// Silence is how long nothing must have come before a trial's report is made, and how long that is
// waited for: exporters send what they still have within a second of a polite end.
const (
	silence  = 300 * time.Millisecond
	patience = 3 * time.Second
)

// Home is one that serves.
type Home struct {
	c       Config
	stores  Stores
	intake  *otlp.Intake
	forward *forward.Forward // nil: none
	server  *http.Server
	query   string
	failed  chan error

	mu     sync.Mutex // of all below
	base   record.Telemetry
	broken int
	under  []*telemetry.Under
	open   phases

	writing sync.Mutex
	ended   bool // under writing

	stop context.CancelFunc
	work sync.WaitGroup
}

// Start opens the stores and the doors. An error leaves nothing open.
func Start(ctx context.Context, c Config) (*Home, error) {
	c.MemoryBytes = cmp.Or(c.MemoryBytes, flags.DefaultMemory)
	// Go's heap is not all: the program's pages and the databases' maps come on top.
	debug.SetMemoryLimit(c.MemoryBytes - c.MemoryBytes/8)
	c.Limits.HeapBytes = c.MemoryBytes / 2 // what is under way then may take as much again
	// And as much again while a buffer grows.
	c.Limits.HeldBytes = cmp.Or(c.Limits.HeldBytes, c.MemoryBytes/16)
	c.Limits.DecodedBytes = cmp.Or(c.Limits.DecodedBytes, c.MemoryBytes/8*3)
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("start the telemetry collector: %w", err)
	}
	h := &Home{c: c, failed: make(chan error, 1), open: phases{}}
	if err := h.start(ctx); err != nil {
		return nil, errors.Join(err, h.Close(context.WithoutCancel(ctx)))
	}
	return h, nil
}

func (h *Home) start(ctx context.Context) error {
	before, err := readStats(filepath.Join(h.c.Dir, telemetry.StatsFile))
	if err != nil {
		return err
	}
	if err := h.openStores(); err != nil {
		return err
	}
	if h.c.Forward != "" {
		if h.forward, err = forward.Start(ctx, h.c.Forward); err != nil {
			return err
		}
	}
	h.resume(before)
	if err := h.openDoors(ctx); err != nil {
		return err
	}
	for _, u := range h.under { // before orders can come in
		h.again(u)
	}
	if err := h.serve(ctx); err != nil {
		return err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	h.work.Go(func() { h.keep(background) })
	return h.write(ctx)
}

func (h *Home) openStores() error {
	open := h.c.Open
	switch {
	case h.c.ForwardOnly:
		open = nothing
	case open == nil:
		open = openReal
	}
	var err error
	h.stores, err = open(h.c.Dir)
	return err
}

func (h *Home) openDoors(ctx context.Context) error {
	in := otlp.Config{GRPC: h.c.GRPC, HTTP: h.c.HTTP, Zipkin: h.c.Zipkin, Limits: h.c.Limits}
	// The constructors only refuse a function that is nil.
	in.Traces, _ = consumer.NewTraces(func(ctx context.Context, d ptrace.Traces) error {
		h.forward.Traces(ctx, d)
		return h.stores.ConsumeTraces(ctx, d)
	})
	in.Metrics, _ = consumer.NewMetrics(func(ctx context.Context, d pmetric.Metrics) error {
		h.forward.Metrics(ctx, d)
		return h.stores.ConsumeMetrics(ctx, d)
	})
	in.Logs, _ = consumer.NewLogs(func(ctx context.Context, d plog.Logs) error {
		h.forward.Logs(ctx, d)
		return h.stores.ConsumeLogs(ctx, d)
	})
	var err error
	h.intake, err = otlp.Start(ctx, in)
	return err
}

// serve opens the endpoint for queries and the lab's orders.
func (h *Home) serve(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", h.c.Query)
	if err != nil {
		return fmt.Errorf("serve queries: %w; another collector or a Prometheus may use the "+
			"port: choose a free port, or 0 for any free port", err)
	}
	h.query = l.Addr().String()
	h.server = &http.Server{
		Handler: h.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		// A query may take its time, an end waits for silence.
		WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	h.work.Go(func() {
		if err := h.server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			h.failed <- fmt.Errorf("serve queries: %w", err)
		}
	})
	return nil
}

// Endpoints are the real ones, whatever ports were asked for.
func (h *Home) Endpoints() telemetry.Endpoints {
	e := h.intake.Endpoints()
	e.Query = h.query
	return e
}

// Wait returns when ctx ends, with nil, or when a door broke.
func (h *Home) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-h.intake.Failed():
		return err
	case err := <-h.failed:
		return err
	}
}

// What Close waits for, at most: senders and queries that are not done, and another endpoint that
// is slow. The stores take what they need.
const (
	doorsWait   = 2 * time.Second
	forwardWait = 5 * time.Second
)

// Close shuts the doors, stores what is open and says so in stats.json. It works on a home that did
// not come up whole, too.
func (h *Home) Close(ctx context.Context) error {
	var errs []error
	bounded := func(wait time.Duration, do func(context.Context) error) {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		errs = append(errs, do(ctx))
	}
	if h.intake != nil {
		bounded(doorsWait, h.intake.Close)
	}
	if h.server != nil {
		bounded(doorsWait, func(ctx context.Context) error {
			if h.server.Shutdown(ctx) != nil { // a query that does not end
				return h.server.Close()
			}
			return nil
		})
	}
	if h.stop != nil {
		h.stop()
	}
	h.work.Wait()
	if h.forward != nil {
		bounded(forwardWait, h.forward.Close)
	}
	if h.stores != nil {
		errs = append(errs, h.stores.Close())
	}
	if h.stop != nil { // it was up
		h.writing.Lock()
		h.ended = true
		h.writing.Unlock()
		errs = append(errs, h.write(context.WithoutCancel(ctx)))
	}
	return errors.Join(errs...)
}
