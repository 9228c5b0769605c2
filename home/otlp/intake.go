// Package otlp receives telemetry: it uses the OpenTelemetry Collector's receivers for OTLP over
// gRPC and HTTP and for Zipkin v2. Limits protect the process's memory and connections from any
// sender, and counts record what arrived from which service.
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
	"net"
	"sync"
	"syscall"
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
}

// DefaultLimits suit a collector of 512 MiB: decoded telemetry takes about five times its encoded
// size. 16 MiB a message is four times the default of gRPC servers.
var DefaultLimits = Limits{
	MessageBytes: 16 << 20, HeldBytes: 32 << 20, DecodedBytes: 192 << 20, Streams: 1024,
	Slots: 16, Wait: time.Second, Read: 10 * time.Second, HeapBytes: 384 << 20,
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
	return l
}

// Intake is a set of listening receivers.
type Intake struct {
	*tally
	gates     []*gate
	parts     []component.Component
	endpoints telemetry.Endpoints
	failed    chan error
	stop      context.CancelFunc
	watch     sync.WaitGroup
}

// Start starts the receivers that the config names.
func Start(ctx context.Context, c Config) (*Intake, error) {
	c.Limits = c.Limits.orDefault()
	limits := c.Limits
	in := &Intake{tally: newTally(), failed: make(chan error, 4)}
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

	to := in.counted(c, slots)
	host := &host{failed: in.failed, gates: map[component.ID]component.Component{
		gateID("grpc"): grpc, gateID("http"): web, gateID("zipkin"): zipkin,
	}}
	for _, door := range []struct {
		address string
		at      *string
		make    receive
	}{
		{c.GRPC, &in.endpoints.GRPC, overGRPC},
		{c.HTTP, &in.endpoints.HTTP, overHTTP},
		{c.Zipkin, &in.endpoints.Zipkin, overZipkin},
	} {
		if door.address == "" {
			continue
		}
		var err error
		if *door.at, err = in.open(door.address, func(at string) error {
			return in.start(ctx, host, door.make, at, to)
		}); err != nil {
			return nil, errors.Join(err, in.Close(ctx))
		}
	}
	return in, nil
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
	for _, p := range in.parts {
		// A connection without requests counts as busy for 5 s.
		if err := p.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			errs = append(errs, err)
		}
	}
	in.parts = nil
	in.stop()
	in.watch.Wait()
	return errors.Join(errs...)
}

// open starts a receiver at an address. Receivers do not report the port that the kernel assigned,
// so open finds a free one first; another program may take it in between, hence the tries.
func (in *Intake) open(address string, start func(at string) error) (string, error) {
	const tries = 5
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("listen for telemetry: %w", err)
	}
	for try := 1; ; try++ {
		at, err := address, error(nil)
		if port == "0" {
			at, err = free(address)
		}
		if err == nil {
			err = start(at)
		}
		if err == nil {
			return at, nil
		}
		if port != "0" || try == tries || !errors.Is(err, syscall.EADDRINUSE) {
			return "", fmt.Errorf("listen for telemetry on %s: %w; another collector may use the "+
				"port: choose a free port, or 0 for any free port", address, err)
		}
	}
}

func free(address string) (string, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
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
	bound(&cfg.Protocols.HTTP.GetOrInsertDefault().ServerConfig, at, "http", to.Limits)
	cfg.Protocols.GRPC = configoptional.None[configgrpc.ServerConfig]()
	return otlp(ctx, f, cfg, to)
}

// idle is how long a connection without requests stays open: longer than the minute between metrics
// of SDKs.
const idle = 2 * time.Minute

// bound sets the limits of the receivers' own servers. They do not decompress, because requests
// that cannot be decompressed would never reach the gate's counts.
func bound(s *confighttp.ServerConfig, at, gate string, l Limits) {
	s.NetAddr.Endpoint = at
	s.MaxRequestBodySize = l.MessageBytes
	s.ReadHeaderTimeout = l.Read
	s.ReadTimeout = l.Read
	s.WriteTimeout = 2 * l.Read // from the end of the header, including reading
	s.IdleTimeout = idle
	s.KeepAlivesEnabled = true
	s.CompressionAlgorithms = []string{}
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
	bound(&cfg.ServerConfig, at, "zipkin", to.Limits)
	return f.CreateTraces(ctx, settings(f.Type()), cfg, to.Traces)
}

func (in *Intake) start(ctx context.Context, host *host, make receive, at string,
	to Config) error {
	part, err := make(ctx, at, to)
	if err != nil {
		return err
	}
	if err := part.Start(ctx, host); err != nil {
		return errors.Join(err, part.Shutdown(ctx))
	}
	in.parts = append(in.parts, part)
	return nil
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
	failed chan<- error
}

func gateID(name string) component.ID {
	return component.NewIDWithName(component.MustNewType("gate"), name)
}

func (h *host) GetExtensions() map[component.ID]component.Component { return h.gates }

// Report records that a receiver's server has failed.
func (h *host) Report(e *componentstatus.Event) {
	if e.Err() == nil {
		return
	}
	select {
	case h.failed <- fmt.Errorf("receive telemetry: %w", e.Err()):
	default: // nothing reads the channel any more
	}
}
