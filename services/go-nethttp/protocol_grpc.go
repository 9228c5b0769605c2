//go:build grpc

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/quic-go/quic-go/http3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// listenFurther returns a server for a protocol that net/http does not support.
func listenFurther(protocol, address string, handler http.Handler) (server, error) {
	switch protocol {
	case "h3":
		return listenQUIC(address, handler)
	case "grpc", "grpcs":
		return listenCalls(address, protocol == "grpcs")
	}
	return nil, fmt.Errorf("PROTOCOL=%q: there is https, h2, h2c, h3, grpc, grpcs", protocol)
}

type quicServer struct {
	*http3.Server
	socket net.PacketConn
}

func listenQUIC(address string, handler http.Handler) (server, error) {
	pair, err := tls.LoadX509KeyPair(os.Getenv("TLS_CERT"), os.Getenv("TLS_KEY"))
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, err
	}
	config := http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}})
	return &quicServer{&http3.Server{Handler: handler, TLSConfig: config}, socket}, nil
}

func (s *quicServer) Serve() error { return s.Server.Serve(s.socket) }

type callServer struct {
	*grpc.Server
	listener net.Listener
}

func listenCalls(address string, secure bool) (server, error) {
	var options []grpc.ServerOption
	if secure {
		own, err := credentials.NewServerTLSFromFile(os.Getenv("TLS_CERT"), os.Getenv("TLS_KEY"))
		if err != nil {
			return nil, err
		}
		options = append(options, grpc.Creds(own))
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	calls := grpc.NewServer(options...)
	calls.RegisterService(&helloService, newCache())
	grpc_health_v1.RegisterHealthServer(calls, health.NewServer())
	return &callServer{calls, listener}, nil
}

func (s *callServer) Serve() error { return s.Server.Serve(s.listener) }

// Shutdown implements server. It returns when ctx ends, because GracefulStop has no deadline.
func (s *callServer) Shutdown(ctx context.Context) error {
	stopped := make(chan struct{})
	go func() {
		s.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *callServer) Close() error {
	s.Stop()
	return nil
}

// helloService is the code that protoc would generate for contract/grpc/hello.proto, except for the
// names of messages: on the wire Ask and Answer equal StringValue, one text in field 1.
var helloService = grpc.ServiceDesc{
	ServiceName: "prony.Hello",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Say", Handler: say}},
	Metadata:    "hello.proto",
}

func say(served any, ctx context.Context, decode func(any) error,
	within grpc.UnaryServerInterceptor) (any, error) {
	ask := new(wrapperspb.StringValue)
	if err := decode(ask); err != nil {
		return nil, err
	}
	answer := func(_ context.Context, ask any) (any, error) {
		return served.(cache).say(ask.(*wrapperspb.StringValue))
	}
	if within == nil {
		return answer(ctx, ask)
	}
	info := &grpc.UnaryServerInfo{Server: served, FullMethod: "/prony.Hello/Say"}
	return within(ctx, ask, info, answer)
}

func (c cache) say(ask *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	key := ask.GetValue()
	if key == "" {
		key = "1"
	}
	value, found := c[key]
	if !found {
		return nil, status.Error(codes.NotFound, "")
	}
	return wrapperspb.String("Hello from REST " + value), nil
}
