package nethttp

import (
	"cmp"
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
	"prony.example/load/engine/http2"
)

// call is a slot's use of a gRPC channel, one unary call at a time. The request's path is the
// method, its body the encoded message.
type call struct {
	e          *Engine
	sharedConn *shared
	conn       *grpc.ClientConn
}

// raw is a codec that passes messages through as bytes.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = raw{}

// channel returns the slots' shared channel. grpc-go reconnects by itself, but not unnoticed: calls
// fail at once while the channel is down.
func (s *shared) channel() (*grpc.ClientConn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grpc != nil {
		return s.grpc, nil
	}
	conn, err := grpc.NewClient("passthrough:///"+s.e.config.Address,
		// The dialer makes the handshake and measures it.
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority(s.e.config.Host),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := s.e.dial(ctx, "h2")
			s.mu.Lock()
			s.dialErr = err
			s.mu.Unlock()
			return conn, err
		}),
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{}),
			grpc.MaxCallRecvMsgSize(http2.CallMax(len(s.e.slots)))))
	if err == nil {
		s.grpc = conn
	}
	return conn, err
}

// open waits until the channel is ready, so that connecting is not part of a call.
func (c *call) open(ctx context.Context) (err error) {
	if c.conn, err = c.sharedConn.channel(); err != nil {
		return err
	}
	c.conn.Connect()
	for {
		state := c.conn.GetState()
		switch state.String() {
		case "READY":
			return nil
		case "TRANSIENT_FAILURE", "SHUTDOWN":
			c.sharedConn.mu.Lock()
			defer c.sharedConn.mu.Unlock()
			return cmp.Or(c.sharedConn.dialErr, fmt.Errorf("the gRPC channel is in state %s",
				state))
		}
		if !c.conn.WaitForStateChange(ctx, state) {
			return ctx.Err()
		}
	}
}

func (c *call) exchange(ctx context.Context, b []byte, s *sink) (engine.Op, error) {
	a, err := understand(b)
	if err != nil {
		return engine.Writing, err
	}
	pairs := metadata.MD{}
	for name, values := range a.header {
		if name != "Content-Type" {
			pairs.Append(name, values...)
		}
	}
	var out []byte
	timed, cancel := c.e.config.within(metadata.NewOutgoingContext(ctx, pairs))
	defer cancel()
	err = c.conn.Invoke(timed, a.path, &a.body, &out)
	atNs := clock.Mono()
	if timed.Err() != nil {
		<-ctx.Done() // the load thread books the timeout and ends the call
	}
	if ctx.Err() != nil {
		return engine.Reading, ctx.Err()
	}
	code := 200
	if err != nil {
		st, _ := status.FromError(err)
		code, out = engine.CallStatus+int(known(st.Code())), []byte(st.Message())
	}
	s.answer(atNs, append(answerText(code, nil, len(out)), out...))
	return 0, nil
}

// within bounds a call by the load's timeout, if there is one, so that the server receives it.
func (c *Config) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.Timeout)
}

// known maps undefined codes to Unknown (grpc/doc/statuscodes.md).
func known(c codes.Code) codes.Code {
	if c > codes.Unauthenticated {
		return codes.Unknown
	}
	return c
}

func (c *call) close() { c.sharedConn.leave() }
