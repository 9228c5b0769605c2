// Package otlp receives telemetry: it uses the OpenTelemetry Collector's receivers for OTLP over
// gRPC and HTTP and for Zipkin v2. Limits protect the process's memory and connections from any
// sender, and counts record what arrived from which service. A guard of each port closes
// connections without a valid request first (internal/base/portguard).
//
//	sender ─► gate (heap, bytes, time, slots) ─► receiver (decodes) ─► tally ─► consumer
//
// Non-goals: it stores nothing, neither refused requests, which OTLP senders repeat.
package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/zipkinreceiver"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configmiddleware"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"

	"prony.example/internal/base/portguard"
	"prony.example/internal/telemetry"
)

// Config has the addresses to listen on and the consumers of telemetry. An address is "host:port";
// port 0 means any free port, and an empty address is not served.
type Config struct {
	GRPC, HTTP, Zipkin string

	Traces  consumer.Traces
	Metrics consumer.Metrics
	Logs    consumer.Logs

	Limits Limits

	// Refuse receives the connections to a port that were closed without a valid request since the
	// previous call, as portguard.Options.Report does. It may be nil.
	Refuse func(port string, n portguard.Refused)
}

// Limits bound what the intake accepts. Zero fields have the values of DefaultLimits.
type Limits struct {
	MessageBytes int64         // of one request, unpacked
	HeldBytes    int64         // of all HTTP requests being read or processed
	DecodedBytes int64         // of all decoded telemetry, estimated before decoding
	Streams      int           // gRPC requests being read or processed
	Slots        int           // requests being decoded and stored at the same time
	Wait         time.Duration // for a slot, before a request is refused
	Read         time.Duration // for a complete request to arrive
	HeapBytes    int64         // above this, requests are refused; 0: no limit
	Connections  int           // concurrent ones, of each port
}

// DefaultLimits suit a collector of 512 MiB: decoded telemetry takes about five times its encoded
// size. 16 MiB a message is four times the default of gRPC servers.
var DefaultLimits = Limits{
	MessageBytes: 16 << 20, HeldBytes: 32 << 20, DecodedBytes: 192 << 20, Streams: 1024,
	Slots: 16, Wait: time.Second, Read: 10 * time.Second, HeapBytes: 384 << 20,
	Connections: 1024,
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits
	l.MessageBytes = cmp.Or(l.MessageBytes, d.MessageBytes)
	l.HeldBytes = cmp.Or(l.HeldBytes, d.HeldBytes)
	l.DecodedBytes = cmp.Or(l.DecodedBytes, d.DecodedBytes)
	l.Streams = cmp.Or(l.Streams, d.Streams)
	l.Slots = cmp.Or(l.Slots, d.Slots)
	l.Wait = cmp.Or(l.Wait, d.Wait)
	l.Read = cmp.Or(l.Read, d.Read)
	l.Connections = cmp.Or(l.Connections, d.Connections)
	return l
}

// Intake is a set of listening receivers.
type Intake struct {
	*tally
	to        Config // with the counts before the consumers
	gates     []*gate
	guards    []*portguard.Table
	servers   []*http.Server
	parts     []component.Component
	refuse    func(port string, n portguard.Refused)
	endpoints telemetry.Endpoints
	failed    chan error
	stop      context.CancelFunc
	watch     sync.WaitGroup
}

// Start starts the receivers that the config names.
func Start(ctx context.Context, c Config) (*Intake, error) {
	c.Limits = c.Limits.orDefault()
	limits := c.Limits
	in := &Intake{tally: newTally(), failed: make(chan error, 4), refuse: c.Refuse}
	watched, stop := context.WithCancel(context.WithoutCancel(ctx))
	in.stop = stop
	slots := make(chan struct{}, limits.Slots)
	room := newRoom(limits.HeapBytes)
	decoding := &decoding{bytes: limits.DecodedBytes}
	gated := func(zipkin bool) *gate {
		return &gate{limits: limits, tally: in.tally, slots: slots, room: room, zipkin: zipkin,
			decoding: decoding}
	}
	grpc, web, zipkin := gated(false), gated(false), gated(true)
	in.gates = []*gate{grpc, web, zipkin}
	in.watch.Go(func() { grpc.watch(watched) })

	in.to = in.counted(c, slots)
	host := &host{failed: in.report, gates: map[component.ID]component.Component{
		gateID("grpc"): grpc, gateID("http"): web, gateID("zipkin"): zipkin,
	}}
	for _, p := range []*port{
		{portGRPC, c.GRPC, &in.endpoints.GRPC, grpc, overGRPC, in.serveGRPC},
		{portHTTP, c.HTTP, &in.endpoints.HTTP, web, overHTTP, in.serveHTTP},
		{portZipkin, c.Zipkin, &in.endpoints.Zipkin, zipkin, overZipkin, in.serveHTTP},
	} {
		if p.address == "" {
			continue
		}
		var err error
		if *p.at, err = p.serve(ctx, host, p); err != nil {
			return nil, errors.Join(err, in.Close(ctx))
		}
	}
	return in, nil
}

// port is a port to serve.
type port struct {
	name, address string
	at            *string // address with the assigned port
	gate          *gate
	make          receive
	serve         func(context.Context, *host, *port) (at string, err error)
}

// Endpoints returns the actual addresses, with the ports that were assigned.
func (in *Intake) Endpoints() telemetry.Endpoints { return in.endpoints }

// Failed returns a channel of errors of receivers that failed while running.
func (in *Intake) Failed() <-chan error { return in.failed }

// Busy returns the number of requests being read or processed.
func (in *Intake) Busy() int64 {
	var n int64
	for _, g := range in.gates {
		n += g.busy.Load()
	}
	return n
}

// Close waits for requests in progress until ctx ends, and stops listening. Afterwards nothing
// reaches the consumers: requests in progress were refused, which is no error.
func (in *Intake) Close(ctx context.Context) error {
	var errs []error
	defer in.shut()
	stop := context.AfterFunc(ctx, func() {
		for _, g := range in.gates {
			g.cancelAll()
		}
	})
	defer stop()
	for _, g := range in.guards {
		g.Close()
	}
	for _, s := range in.servers {
		if s.Shutdown(ctx) != nil { // a request does not end
			errs = append(errs, s.Close())
		}
	}
	for _, p := range in.parts {
		if err := p.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			errs = append(errs, err)
		}
	}
	in.parts, in.servers = nil, nil
	in.stop()
	in.watch.Wait()
	return errors.Join(errs...)
}

// receive makes a receiver at an address.
type receive func(ctx context.Context, at string, to Config) (component.Component, error)

func overGRPC(ctx context.Context, at string, to Config) (component.Component, error) {
	f, l := otlpreceiver.NewFactory(), to.Limits
	cfg := f.CreateDefaultConfig().(*otlpreceiver.Config)
	grpc := cfg.Protocols.GRPC.GetOrInsertDefault()
	grpc.NetAddr.Endpoint = at
	grpc.MaxRecvMsgSizeMiB = max(1, int(l.MessageBytes>>20))
	grpc.MaxConcurrentStreams = 128
	grpc.ReadBufferSize = 32 << 10 // for each connection; the default is half a MiB
	grpc.WriteBufferSize = 4 << 10 // for each connection; answers are short
	grpc.Middlewares = []configmiddleware.Config{{ID: gateID("grpc")}}
	alive := configgrpc.NewDefaultKeepaliveServerConfig()
	alive.ServerParameters = configoptional.Some(configgrpc.KeepaliveServerParameters{
		MaxConnectionIdle: idle, Time: idle / 4, Timeout: l.Read, // for clients that vanished
	})
	alive.EnforcementPolicy = configoptional.Some(configgrpc.KeepaliveEnforcementPolicy{
		MinTime: l.Read, PermitWithoutStream: true,
	})
	grpc.Keepalive = configoptional.Some(alive)
	cfg.Protocols.HTTP = configoptional.None[otlpreceiver.HTTPConfig]()
	return otlp(ctx, f, cfg, to)
}

func overHTTP(ctx context.Context, at string, to Config) (component.Component, error) {
	f := otlpreceiver.NewFactory()
	cfg := f.CreateDefaultConfig().(*otlpreceiver.Config)
	reached(&cfg.Protocols.HTTP.GetOrInsertDefault().ServerConfig, at, "http")
	cfg.Protocols.GRPC = configoptional.None[configgrpc.ServerConfig]()
	return otlp(ctx, f, cfg, to)
}

// reached sets what a receiver's start needs to pass its handler. Limits are the server's of the
// intake.
func reached(s *confighttp.ServerConfig, at, gate string) {
	s.NetAddr.Endpoint = at
	s.CompressionAlgorithms = []string{} // the gate decompresses
	s.Middlewares = []configmiddleware.Config{{ID: gateID(gate)}}
}

// otlp makes one receiver for one config, to which each call adds a signal.
func otlp(ctx context.Context, f receiver.Factory, cfg component.Config, to Config) (
	component.Component, error) {
	set := settings(f.Type())
	part, err1 := f.CreateTraces(ctx, set, cfg, to.Traces)
	_, err2 := f.CreateMetrics(ctx, set, cfg, to.Metrics)
	_, err3 := f.CreateLogs(ctx, set, cfg, to.Logs)
	return part, errors.Join(err1, err2, err3)
}

func overZipkin(ctx context.Context, at string, to Config) (component.Component, error) {
	f := zipkinreceiver.NewFactory()
	cfg := f.CreateDefaultConfig().(*zipkinreceiver.Config)
	reached(&cfg.ServerConfig, at, "zipkin")
	return f.CreateTraces(ctx, settings(f.Type()), cfg, to.Traces)
}

func settings(kind component.Type) receiver.Settings {
	return receiver.Settings{
		ID: component.NewID(kind), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
		BuildInfo: component.NewDefaultBuildInfo(),
	}
}

// host is the receivers' component.Host. The gates are its extensions: middleware, by which the
// OpenTelemetry Collector puts other code before a receiver.
type host struct {
	gates  map[component.ID]component.Component
	failed func(error)
}

func gateID(name string) component.ID {
	return component.NewIDWithName(component.MustNewType("gate"), name)
}

func (h *host) GetExtensions() map[component.ID]component.Component { return h.gates }

// Report records that a receiver's server has failed.
func (h *host) Report(e *componentstatus.Event) {
	if e.Err() != nil {
		h.failed(e.Err())
	}
}

// report records that a server has failed.
func (in *Intake) report(err error) {
	select {
	case in.failed <- fmt.Errorf("receive telemetry: %w", err):
	default: // nothing reads the channel any more
	}
}
