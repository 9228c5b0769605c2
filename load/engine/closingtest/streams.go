package closingtest

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"prony.example/load"
	"prony.example/load/engine"
	"prony.example/load/engine/enginetest"
	http2engine "prony.example/load/engine/http2"
	"prony.example/load/engine/tlsconn"
	"prony.example/record"
)

// Queues tests HTTP/2 and gRPC loads over an engine: requests that wait for a stream, and requests
// that leave together. below returns the engine with a number of connections.
func Queues(t *testing.T, below func(netip.AddrPort, int) (engine.Streamer, error)) {
	over := func(client *tls.Config, streams int, calls bool) enginetest.Make {
		return func(a netip.AddrPort, n int) (load.Engine, error) {
			conns := http2engine.Below(n, streams)
			e, err := below(a, conns)
			if err != nil {
				return nil, err
			}
			if client != nil {
				e = tlsconn.NewStreamer(e, client, conns)
			}
			if calls {
				return http2engine.NewCalls(e, n, streams, client != nil, 0), nil
			}
			return http2engine.New(e, n, streams, client != nil), nil
		}
	}
	server, client := Certificate(t, "h2")
	t.Run("h2c", func(t *testing.T) { permitted(t, nil, false, over(nil, 50, false)) })
	t.Run("h2", func(t *testing.T) { permitted(t, server, false, over(client, 50, false)) })
	t.Run("grpc", func(t *testing.T) { permitted(t, nil, true, over(nil, 50, true)) })
	t.Run("batches", func(t *testing.T) { batched(t, server, over(client, 8, false)) })
}

// permitted runs an HTTP/2 load of 50 streams on one connection, over an engine that make returns,
// against a server that permits 5. It tests that the wait for a stream is part of the response time
// but not of the service time. If calls is set, the load makes gRPC calls.
func permitted(t *testing.T, server *tls.Config, calls bool, make enginetest.Make) {
	const streams, permits, requests, sleep = 50, 5, 100, 10 * time.Millisecond
	var under, most atomic.Int64
	addr := listenFor(t, server, func(c net.Conn, _ *net.TCPConn) {
		(&http2.Server{MaxConcurrentStreams: permits}).ServeConn(c, &http2.ServeConnOpts{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for n, known := under.Add(1), most.Load(); n > known; known = most.Load() {
					most.CompareAndSwap(known, n)
				}
				time.Sleep(sleep)
				under.Add(-1)
				respond(w, r, calls)
			}),
		})
	})
	r := offerStreams(t, addr, streams, requests, make)
	service, response := r.ServiceTime.MeanNs, r.ResponseTime.MeanNs
	permitted := streams
	if r.StreamsPermitted != nil {
		permitted = *r.StreamsPermitted
	}
	if r.Answered != requests || most.Load() > permits || permitted != permits ||
		r.Waited < requests-2*permits {
		t.Errorf("%d of %d answered, at most %d at once, %d permitted, %d waited, %+v",
			r.Answered, requests, most.Load(), permitted, r.Waited, r.Errors)
	}
	// A request waits for up to 9 others. All of these times grow alike on a slow machine.
	if service < float64(sleep) || service > response/3 {
		t.Errorf("mean service time %v, mean response time %v, and the server sleeps for %v",
			time.Duration(service), time.Duration(response), sleep)
	}
	if sum := r.Lag.MeanNs + service; sum < 0.99*response || sum > 1.01*response {
		t.Errorf("lag and service time are %v together, response time is %v",
			time.Duration(sum), time.Duration(response))
	}
}

// respond answers "ok", or a gRPC message with this text.
func respond(w http.ResponseWriter, r *http.Request, calls bool) {
	_, _ = io.Copy(io.Discard, r.Body) // a lost request fails the test anyway
	if !calls {
		_, _ = io.WriteString(w, "ok")
		return
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	_, _ = io.WriteString(w, "\x00\x00\x00\x00\x02ok")
	w.Header().Set("Grpc-Status", "0")
}

// batched runs an HTTP/2 load over TLS, over an engine that make returns, against a server that
// answers 8 requests in 8 records but in one write. It tests that the next 8 requests come in one
// record, and so in one system call.
func batched(t *testing.T, server *tls.Config, make enginetest.Make) {
	const streams, requests = 8, 400
	var records atomic.Int64
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go enginetest.Serve(l, func(c net.Conn) {
		below := &gate{Conn: c}
		over := tls.Server(below, server)
		if over.Handshake() != nil {
			return
		}
		// A read of crypto/tls brings no more than one record.
		in := bufio.NewReaderSize(io.TeeReader(over, (*writeCounter)(&records)), 1<<15)
		var ids []uint32
		leave(readWriter{in, over}, false, func(w *leaver, id uint32) error {
			if ids = append(ids, id); len(ids) < streams {
				return nil
			}
			below.shut = true
			var err error
			for _, id := range ids {
				err = errors.Join(err, w.answer(id))
			}
			ids = ids[:0]
			return errors.Join(err, below.open())
		})
	})
	addr := l.Addr().(*net.TCPAddr).AddrPort()
	r := offerStreams(t, addr, streams, requests, make)
	// Settings have records of their own.
	if n := records.Load(); r.Answered != requests || n > requests/streams*2 {
		t.Errorf("%d of %d requests were answered, which came in %d records", r.Answered,
			requests, n)
	}
}

type readWriter struct {
	io.Reader
	io.Writer
}

// writeCounter counts calls of Write.
type writeCounter atomic.Int64

func (w *writeCounter) Write(b []byte) (int, error) {
	(*atomic.Int64)(w).Add(1)
	return len(b), nil
}

// gate is a connection that holds writes while it is shut.
type gate struct {
	net.Conn
	shut    bool
	pending []byte
}

func (g *gate) Write(b []byte) (int, error) {
	if g.shut {
		g.pending = append(g.pending, b...)
		return len(b), nil
	}
	return g.Conn.Write(b)
}

// open writes at once what is pending.
func (g *gate) open() error {
	_, err := g.Conn.Write(g.pending)
	g.shut, g.pending = false, g.pending[:0]
	return err
}

// offerStreams sends a number of requests on one connection.
func offerStreams(t *testing.T, addr netip.AddrPort, streams int, requests int64,
	make enginetest.Make) *load.Result {
	t.Helper()
	r, err := load.Run(context.Background(), load.Spec{
		Name: "test", Address: addr, Host: "example.com", Model: record.Closed,
		Connections: streams, Requests: requests, Window: bound, Drain: bound, Timeout: bound,
		Engine: make, Describe: load.EngineInfo{Protocol: "HTTP/2", Streams: streams},
		Scenario: load.Scenario{Requests: []load.Request{
			{Method: http.MethodPost, Path: "/a.B/C", Want: "ok", HasWant: true}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
