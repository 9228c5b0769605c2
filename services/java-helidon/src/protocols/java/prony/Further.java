package prony;

import com.google.protobuf.StringValue;
import io.grpc.MethodDescriptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.protobuf.services.HealthStatusManager;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import io.helidon.webserver.WebServerConfig;
import io.helidon.webserver.grpc.GrpcRouting;

/** HTTP/2 and gRPC, which Helidon takes on the same port once they are on its class path. */
final class Further {

    // What protoc would make of contract/grpc/hello.proto, but for the names of the messages: on
    // the wire Ask and Answer are StringValue, one text in field 1.
    private static final MethodDescriptor<StringValue, StringValue> SAY =
            MethodDescriptor.<StringValue, StringValue>newBuilder()
                    .setType(MethodDescriptor.MethodType.UNARY)
                    .setFullMethodName("prony.Hello/Say")
                    .setRequestMarshaller(ProtoUtils.marshaller(StringValue.getDefaultInstance()))
                    .setResponseMarshaller(ProtoUtils.marshaller(StringValue.getDefaultInstance()))
                    .build();

    private Further() {
    }

    static void set(WebServerConfig.Builder server, String protocol, Hello hello) {
        switch (protocol) {
            case "h2c" -> {}
            case "h2" -> Protocol.secure(server);
            case "grpc" -> server.addRouting(calls(hello));
            case "grpcs" -> {
                Protocol.secure(server);
                server.addRouting(calls(hello));
            }
            default -> throw new IllegalArgumentException(
                    "PROTOCOL is http, https, h2, h2c, grpc or grpcs: " + protocol);
        }
    }

    private static GrpcRouting.Builder calls(Hello hello) {
        return GrpcRouting.builder()
                .service(ServerServiceDefinition.builder("prony.Hello")
                        .addMethod(SAY, ServerCalls.asyncUnaryCall(
                                (ask, answer) -> say(hello, ask, answer)))
                        .build())
                .service(new HealthStatusManager().getHealthService());
    }

    private static void say(Hello hello, StringValue ask, StreamObserver<StringValue> answer) {
        String value = hello.lookUp(ask.getValue().isEmpty() ? "1" : ask.getValue());
        if (value == null) {
            answer.onError(Status.NOT_FOUND.asException());
            return;
        }
        answer.onNext(StringValue.of("Hello from REST " + value));
        answer.onCompleted();
    }
}
