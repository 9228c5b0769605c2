package nethttp

import (
	"context"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Message converts JSON to the encoded request message of a gRPC method, by the descriptor that it
// requests from the server through reflection (grpc/doc/server-reflection.md). path is
// "/package.Service/Method".
func Message(ctx context.Context, c Config, path, json string) ([]byte, error) {
	service, method, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !ok {
		return nil, fmt.Errorf("call %s: want /package.Service/Method", path)
	}
	e := &Engine{config: c, handshakes: newHandshakes()}
	conn, err := grpc.NewClient("passthrough:///"+c.Address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(c.Host),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return e.dial(ctx, "h2")
		}))
	if err != nil {
		return nil, fmt.Errorf("ask %s for its methods: %w", c.Address, err)
	}
	defer conn.Close()
	set, err := describe(ctx, conn, service)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its methods: %w; a --body of raw bytes needs no answer "+
			"to that", c.Address, err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, fmt.Errorf("read the methods of %s: %w", c.Address, err)
	}
	match, err := files.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return nil, fmt.Errorf("call %s: the server has no service %s", path, service)
	}
	s, ok := match.(protoreflect.ServiceDescriptor)
	if !ok {
		return nil, fmt.Errorf("call %s: %s is not a service", path, service)
	}
	m := s.Methods().ByName(protoreflect.Name(method))
	if m == nil {
		return nil, fmt.Errorf("call %s: service %s has no method %s", path, service, method)
	}
	if m.IsStreamingClient() || m.IsStreamingServer() {
		return nil, fmt.Errorf("call %s: it streams; only unary methods can be called", path)
	}
	message := dynamicpb.NewMessage(m.Input())
	if err := protojson.Unmarshal([]byte(json), message); err != nil {
		return nil, fmt.Errorf("make a %s of the body: %w", m.Input().FullName(), err)
	}
	return proto.Marshal(message)
}

// describe requests the file that declares a symbol, and all files that it imports.
func describe(ctx context.Context, conn *grpc.ClientConn, symbol string) (
	*descriptorpb.FileDescriptorSet, error) {
	stream, err := pb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.CloseSend() //nolint:errcheck // all responses were received
	set := &descriptorpb.FileDescriptorSet{}
	have := map[string]bool{}
	want := []*pb.ServerReflectionRequest{{MessageRequest: &pb.
		ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: symbol}}}
	for len(want) > 0 {
		if err := stream.Send(want[0]); err != nil {
			return nil, err
		}
		want = want[1:]
		answer, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		if e := answer.GetErrorResponse(); e != nil {
			return nil, fmt.Errorf("find %s: %s", symbol, e.GetErrorMessage())
		}
		for _, b := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
			file := &descriptorpb.FileDescriptorProto{}
			if err := proto.Unmarshal(b, file); err != nil {
				return nil, err
			}
			if have[file.GetName()] {
				continue
			}
			have[file.GetName()] = true
			set.File = append(set.File, file)
			for _, name := range file.GetDependency() {
				if !have[name] {
					want = append(want, &pb.ServerReflectionRequest{MessageRequest: &pb.
						ServerReflectionRequest_FileByFilename{FileByFilename: name}})
				}
			}
		}
	}
	return set, nil
}
