// Package collector is Prony's collector of telemetry, served by home/cmd/prony-home. It receives
// telemetry (home/otlp), passes it to the stores and, if configured, to another endpoint, and
// reports to Prony what a trial has sent.
//
//	intake ─┬─► stores: metrics (TSDB, PromQL), spans, logs ─► Dir
//	        └─► forward ─► any OTLP endpoint
//	lab ─► /prony/trial, mark, end ─► counts since, ─► telemetry.Report
//	lab ─► /prony/points ─► metrics, forward, in no count of what services sent
//
// It writes spans and log records into a journal before it accepts them, and updates stats.json
// continuously. After a kill and a restart on the same folder it continues with everything that was
// accepted, and marks the trials under way as partial.
//
// Non-goals: results do not depend on it; losing all telemetry loses no result.
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
	"prony.example/home/journal"
	"prony.example/home/otlp"
	"prony.example/internal/base/portguard"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/flags"
	"prony.example/record"
)

// Config configures a collector. Addresses are "host:port"; port 0 means any free port.
type Config struct {
	Dir                       string // folder of stored data; created if missing
	GRPC, HTTP, Zipkin, Query string
	Token                     string // of control requests; empty: none is accepted

	Forward     string // another OTLP endpoint, see forward.Start; empty: none
	ForwardOnly bool   // store only counts here

	// MemoryBytes is the memory that the process should stay within: the garbage collector aims at
	// it, and above three quarters of it no telemetry is accepted. 0: flags.DefaultMemory.
	MemoryBytes int64
	Limits      otlp.Limits // HeapBytes comes from MemoryBytes

	Open Opener // the stores; nil: the real ones

	// Report receives lines for people about refused connections. It may be nil.
	Report func(line string)
}

// silence is the time without telemetry that must pass before a trial's report, and patience the
// longest wait for it: exporters send the rest within a second after a regular end.
const (
	silence  = 300 * time.Millisecond
	patience = 3 * time.Second
)

// Home is a running collector.
type Home struct {
	c       Config
	stores  Stores
	intake  *otlp.Intake
	forward *forward.Forward // nil: none
	journal *journal.Journal // nil: nothing is stored here
	server  *http.Server
	guard   *portguard.Listener // of the port for queries and control requests
	query   string
	failed  chan error

	mu     sync.Mutex // guards the fields below
	base   record.Telemetry
	broken int
	torn   int
	under  []*telemetry.Under
	open   phases

	trouble string // why telemetry is refused at present

	synced int64 // bytes of the journal; only the background uses it

	writing sync.Mutex
	ended   bool // guarded by writing

	stop context.CancelFunc
	work sync.WaitGroup
}

// Start opens the stores and listens. After an error nothing is open.
func Start(ctx context.Context, c Config) (*Home, error) {
	c.MemoryBytes = cmp.Or(c.MemoryBytes, flags.DefaultMemory)
	// Go's heap is not everything: the program's pages and the databases' maps come on top.
	debug.SetMemoryLimit(c.MemoryBytes - c.MemoryBytes/8)
	c.Limits.HeapBytes = c.MemoryBytes / 2 // requests in progress may take as much again
	// A growing buffer may take as much again.
	c.Limits.HeldBytes = cmp.Or(c.Limits.HeldBytes, c.MemoryBytes/16)
	c.Limits.DecodedBytes = cmp.Or(c.Limits.DecodedBytes, c.MemoryBytes/8*3)
	if c.Limits.Connections == 0 {
		if err := c.fit(); err != nil {
			return nil, err
		}
	}
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
	if err := h.recoverTrials(before); err != nil {
		return err
	}
	if err := h.openDoors(ctx); err != nil {
		return err
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
	in := otlp.Config{GRPC: h.c.GRPC, HTTP: h.c.HTTP, Zipkin: h.c.Zipkin, Limits: h.c.Limits,
		Refuse: h.reportRefused}
	// The constructors fail only for nil functions.
	in.Traces, _ = consumer.NewTraces(func(ctx context.Context, d ptrace.Traces) error {
		if err := h.accept(tracesRecord, func() ([]byte, error) {
			return (&ptrace.ProtoMarshaler{}).MarshalTraces(d)
		}); err != nil {
			return err
		}
		h.forward.Traces(ctx, d)
		return h.stores.ConsumeTraces(ctx, d)
	})
	in.Metrics, _ = consumer.NewMetrics(func(ctx context.Context, d pmetric.Metrics) error {
		h.forward.Metrics(ctx, d)
		return h.stores.ConsumeMetrics(ctx, d)
	})
	in.Logs, _ = consumer.NewLogs(func(ctx context.Context, d plog.Logs) error {
		if err := h.accept(logsRecord, func() ([]byte, error) {
			return (&plog.ProtoMarshaler{}).MarshalLogs(d)
		}); err != nil {
			return err
		}
		h.forward.Logs(ctx, d)
		return h.stores.ConsumeLogs(ctx, d)
	})
	var err error
	h.intake, err = otlp.Start(ctx, in)
	return err
}

// serve listens for queries and control requests.
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
		// A query may take long, and an end waits for silence.
		WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	h.guard = portguard.New(l, portguard.Options{Most: h.c.Limits.Connections,
		Report: func(n portguard.Refused) { h.reportRefused("query", n) }})
	h.guard.Watch(h.server)
	h.work.Go(func() {
		if err := h.server.Serve(h.guard); err != nil && !errors.Is(err, http.ErrServerClosed) {
			h.failed <- fmt.Errorf("serve queries: %w", err)
		}
	})
	return nil
}

// reportRefused reports connections to a port that were closed without a valid request.
func (h *Home) reportRefused(port string, n portguard.Refused) {
	if h.c.Report != nil {
		h.c.Report(fmt.Sprintf("closed %s to the %s port without a valid request", n.Connections(),
			port))
	}
}

// leastConnections and connectionFiles bound the connections to each port by the files that this
// process may open: there are four ports, and the stores have files.
const leastConnections, connectionFiles = 4, 8

// fit bounds the connections to each port, and reports if there are fewer than usual.
func (c *Config) fit() error {
	n, few, err := portguard.Fit(leastConnections, otlp.DefaultLimits.Connections, connectionFiles)
	if err != nil {
		return fmt.Errorf("start the telemetry collector: %w", err)
	}
	if few != "" && c.Report != nil {
		c.Report("each port accepts " + few)
	}
	c.Limits.Connections = n
	return nil
}

// Endpoints returns the actual addresses, with the ports that were assigned.
func (h *Home) Endpoints() telemetry.Endpoints {
	e := h.intake.Endpoints()
	e.Query = h.query
	return e
}

// Wait returns nil when ctx ends, or an error when a server fails.
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

// doorsWait and forwardWait limit the waits of Close: for senders and queries in progress, and for
// a slow endpoint. The stores have no limit.
const (
	doorsWait   = 2 * time.Second
	forwardWait = 5 * time.Second
)

// Close stops listening, stores open data and records a regular end in stats.json. It also works
// after a failed start.
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
			if h.server.Shutdown(ctx) != nil { // a query does not end
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
	return errors.Join(append(errs, h.closeStores(ctx))...)
}

// closeStores has the stores write everything. If that fails, or the start has failed, the next
// collector reads it from the journal.
func (h *Home) closeStores(ctx context.Context) error {
	if h.stores == nil {
		return nil
	}
	running := h.stop != nil
	files := h.stores.Files()
	sizes, err := sizesOf(files)
	errs := []error{err}
	if running && len(h.under) > 0 {
		var ids []string
		for _, u := range h.under {
			ids = append(ids, u.Trial.ID)
		}
		errs = append(errs, h.logEnd(true, ids...))
	}
	stored := h.stores.Close()
	errs = append(errs, stored)
	if running {
		h.writing.Lock()
		h.ended = stored == nil
		h.writing.Unlock()
		errs = append(errs, h.write(context.WithoutCancel(ctx)))
	}
	if h.journal != nil {
		errs = append(errs, h.journal.Close(h.ended))
	}
	if !h.ended {
		errs = append(errs, cutBack(files, sizes))
	}
	return errors.Join(errs...)
}
