//go:build linux && !portable

package generator

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
)

// calling is a mix of calls: messages of all sizes, and statuses from the server.
var calling = []load.Request{
	{Method: "POST", Path: "/a.B/Echo", Body: "{key}", Want: "{key}", HasWant: true},
	{Method: "POST", Path: "/a.B/Echo", Body: strings.Repeat("x", 3<<20), WantSize: 3 << 20},
	{Method: "POST", Path: "/a.B/Echo", HasWant: true},
	{Method: "POST", Path: "/a.B/Fail", Body: "5", Status: load.CallStatus + 5,
		Want: "as asked for: 世界\n", HasWant: true},
	{Method: "POST", Path: "/a.B/Fail", Body: "99", Status: load.CallStatus + 2, WantSize: -1},
	{Method: "POST", Path: "/a.B/Told", Body: "x", Headers: []load.Header{{Name: "X-Key",
		Value: "{key}"}, {Name: "X-Odd-Bin", Value: "\xff\x01"}}, Want: "{key} \xff\x01",
		HasWant: true},
}

// called handles calls and checks that their deadlines are the load's.
func called(t *testing.T, late *atomic.Int64) grpc.StreamHandler {
	return func(_ any, s grpc.ServerStream) error {
		var in []byte
		if err := s.RecvMsg(&in); err != nil {
			return err
		}
		if end, ok := s.Context().Deadline(); !ok || time.Until(end) > 10*time.Second {
			late.Add(1)
		}
		path, _ := grpc.MethodFromServerStream(s)
		switch path {
		case "/a.B/Fail":
			var code codes.Code
			fmt.Sscan(string(in), (*uint32)(&code)) //nolint:errcheck // otherwise it is OK
			return status.Error(code, "as asked for: 世界\n")
		case "/a.B/Told":
			md, _ := metadata.FromIncomingContext(s.Context())
			in = []byte(strings.Join(md["x-key"], ",") + " " + strings.Join(md["x-odd-bin"], ","))
		}
		return s.SendMsg(&in)
	}
}

// serveCalls serves calls, over TLS if given a certificate.
func serveCalls(t *testing.T, h grpc.StreamHandler, options ...grpc.ServerOption) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(append(options, grpc.UnknownServiceHandler(h),
		grpc.ForceServerCodecV2(truth.Bare{}), grpc.MaxConcurrentStreams(5))...)
	go server.Serve(l) //nolint:errcheck // it ends at Stop
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

// TestCalls checks that every engine gets the same responses to calls, in the clear and over TLS,
// with one and with several at a time, on kept and on renewed connections, and that the server gets
// the deadline.
func TestCalls(t *testing.T) {
	testsets.Measured(t)
	signed := httptest.NewUnstartedServer(nil)
	signed.StartTLS()
	defer signed.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: signed.Certificate().Raw}))
	var late atomic.Int64
	clear := serveCalls(t, called(t, &late))
	secure := serveCalls(t, called(t, &late),
		grpc.Creds(credentials.NewServerTLSFromCert(&signed.TLS.Certificates[0])))
	for _, c := range []nethttp.Config{
		{Protocol: nethttp.GRPC, Address: clear, Host: "h", Streams: 1},
		{Protocol: nethttp.GRPC, Address: clear, Host: "h", Streams: 7},
		{Protocol: nethttp.GRPCS, Address: secure, Host: "example.com", CA: ca, Streams: 4},
	} {
		var reference *load.Result
		for _, engine := range secureEngines {
			for _, churn := range []int{0, 3} {
				if churn > 0 && c.Streams > 1 {
					continue // only a connection with one request at a time is renewed
				}
				name := fmt.Sprintf("%s, %s, %d streams, churn %d", engine, c.Protocol, c.Streams,
					churn)
				r := offerStreams(t, engine, c, load.Spec{Requests: 90, Churn: churn}, calling...)
				if reference == nil {
					reference = r
				}
				wholly(t, name, engine, c, 90, r)
				if r.BytesIn != reference.BytesIn || r.BytesOut != reference.BytesOut {
					t.Errorf("%s: %d bytes in, %d out; %s has %d, %d", name, r.BytesIn, r.BytesOut,
						load.NetHTTP, reference.BytesIn, reference.BytesOut)
				}
				for k, x := range r.Routes {
					if x.Answered == 0 || x.Answered != reference.Routes[k].Answered {
						t.Errorf("%s: %d of %s", name, x.Answered, x.Name)
					}
				}
			}
		}
	}
	if n := late.Load(); n > 0 {
		t.Errorf("%d calls came without the load's deadline", n)
	}
}

// TestCallsTruth checks that every engine measures a server that takes 2 ms per call and fails each
// third one.
func TestCallsTruth(t *testing.T) {
	testsets.Measured(t)
	for _, protocol := range []string{"grpc", "grpcs"} {
		third := truth.Every(3, func(r *truth.Reply) {
			r.Text = truth.Answer("500 Internal Server Error", "", "as planned")
		}, truth.Fixed(2*time.Millisecond))
		ask := load.Request{Method: "POST", Path: "/a.B/C", WantSize: -1}
		truthful(t, protocol, third, ask, func(engine string, r *load.Result) {
			if n := r.ServiceTime.MinNs; r.Answered != 40 || r.Errors.Status != 20 ||
				r.Errors.Total() != 20 || n < 2e6 || n > 3e6 || r.FirstByte.MinNs < 2e6 ||
				!strings.Contains(r.Errors.Example, "gRPC status 13: as planned") {
				t.Errorf("%s, %s: %d of 60 answered, %+v in %d ns at best", engine, protocol,
					r.Answered, r.Errors, n)
			}
		})
	}
}
