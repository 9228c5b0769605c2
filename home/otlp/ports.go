package otlp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"

	"prony.example/internal/base/portguard"
)

// Names of the intake's ports, for reports.
const (
	portGRPC   = "OTLP/gRPC"
	portHTTP   = "OTLP/HTTP"
	portZipkin = "Zipkin"
)

// Limits of connections that are the same for every intake.
const (
	// greetBound is the time for the head of a request, and for the preface and settings of HTTP/2.
	greetBound = 5 * time.Second
	// maxHeader is the largest head of a request in bytes. Exporters send less than 1 KiB.
	maxHeader = 64 << 10
	// idle is how long a connection without requests stays open: longer than the minute between
	// metrics of SDKs.
	idle = 2 * time.Minute
)

// errTaken ends the start of a receiver over HTTP once the intake has its handler.
var errTaken = errors.New("the intake serves this receiver's handler itself")

// serveHTTP serves a receiver's handler with a server of the intake, because the receiver's own
// server accepts every connection. It returns the address with the assigned port.
func (in *Intake) serveHTTP(ctx context.Context, h *host, p *port) (string, error) {
	part, err := p.make(ctx, p.address, in.to)
	if err != nil {
		return "", err
	}
	in.parts = append(in.parts, part)
	if err := part.Start(ctx, quiet{h}); !errors.Is(err, errTaken) {
		return "", errors.Join(errors.New("a receiver did not pass its handler"), err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", p.address)
	if err != nil {
		return "", inUse(p.address, err)
	}
	limits := p.gate.limits
	server := &http.Server{
		Handler: p.gate.handler, ErrorLog: log.New(io.Discard, "", 0), MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: min(greetBound, limits.Read), ReadTimeout: limits.Read,
		WriteTimeout: 2 * limits.Read, // from the end of the head, including reading
		IdleTimeout:  idle,
	}
	guard := portguard.New(l, in.bound(p))
	guard.Watch(server)
	in.guards = append(in.guards, guard.Table)
	in.servers = append(in.servers, server)
	in.watch.Go(func() {
		if err := server.Serve(guard); !errors.Is(err, http.ErrServerClosed) {
			in.report(err)
		}
	})
	return l.Addr().String(), nil
}

// quiet is a host that receives no reports, such as the one that a start has ended.
type quiet struct{ component.Host }

// bound returns the options of a port's guard.
func (in *Intake) bound(p *port) portguard.Options {
	o := portguard.Options{Most: p.gate.limits.Connections}
	if in.refuse != nil {
		o.Report = func(n portguard.Refused) { in.refuse(p.name, n) }
	}
	return o
}

// Closed returns the number of connections that were closed without a valid request, in favor of
// newer ones.
func (in *Intake) Closed() int64 {
	n := 0
	for _, g := range in.guards {
		n += g.Refused().Total()
	}
	return int64(n)
}

// serveGRPC starts a receiver over gRPC, which listens itself. Receivers do not report the port
// that the kernel assigned, so it finds a free one first; another program may take it in between,
// hence the tries.
func (in *Intake) serveGRPC(ctx context.Context, h *host, p *port) (string, error) {
	const tries = 5
	_, number, err := net.SplitHostPort(p.address)
	if err != nil {
		return "", fmt.Errorf("listen for telemetry: %w", err)
	}
	p.gate.guard = portguard.NewTable(in.bound(p))
	in.guards = append(in.guards, p.gate.guard)
	for try := 1; ; try++ {
		at, err := p.address, error(nil)
		if number == "0" {
			at, err = free(p.address)
		}
		if err == nil {
			err = in.start(ctx, h, p.make, at)
		}
		if err == nil {
			return at, nil
		}
		if number != "0" || try == tries || !errors.Is(err, syscall.EADDRINUSE) {
			return "", inUse(p.address, err)
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

func inUse(address string, err error) error {
	return fmt.Errorf("listen for telemetry on %s: %w; another collector may use the port: choose "+
		"a free port, or 0 for any free port", address, err)
}

func (in *Intake) start(ctx context.Context, h *host, make receive, at string) error {
	part, err := make(ctx, at, in.to)
	if err != nil {
		return err
	}
	if err := part.Start(ctx, h); err != nil {
		return errors.Join(err, part.Shutdown(ctx))
	}
	in.parts = append(in.parts, part)
	return nil
}

// greeter enters connections into the guard's table. gRPC accepts connections itself, and calls it
// before it reads from one.
type greeter struct {
	credentials.TransportCredentials
	guard *portguard.Table
}

func greeting(guard *portguard.Table) grpc.ServerOption {
	return grpc.Creds(&greeter{insecure.NewCredentials(), guard})
}

// ServerHandshake implements credentials.TransportCredentials.
func (g *greeter) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, err := g.guard.Enter(raw)
	return c, sender{c}, err
}

// Clone implements credentials.TransportCredentials.
func (g *greeter) Clone() credentials.TransportCredentials {
	return &greeter{g.TransportCredentials.Clone(), g.guard}
}

// sender is the connection of a gRPC request.
type sender struct{ net.Conn }

// AuthType implements credentials.AuthInfo.
func (sender) AuthType() string { return "insecure" }

// connOf returns the connection of a gRPC request.
func connOf(ctx context.Context) net.Conn {
	if p, ok := peer.FromContext(ctx); ok {
		if s, ok := p.AuthInfo.(sender); ok {
			return s.Conn
		}
	}
	return nil
}
