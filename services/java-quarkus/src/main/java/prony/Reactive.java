package prony;

import io.quarkus.resteasy.reactive.server.EndpointDisabled;
import io.smallrye.common.annotation.NonBlocking;
import io.smallrye.mutiny.Uni;
import io.vertx.core.Future;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpServerRequest;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.core.Context;
import jakarta.ws.rs.core.MediaType;
import org.jboss.resteasy.reactive.RestResponse;

/** Every endpoint on the event loop of its connection, which nothing may block. */
@Path("/")
@NonBlocking
@EndpointDisabled(name = "prony.reactive", stringValue = "off")
public class Reactive {

    private final Hello hello;

    Reactive(Hello hello) {
        this.hello = hello;
    }

    @GET
    @Path("hello/reactive")
    @Produces(MediaType.TEXT_PLAIN)
    public Uni<RestResponse<String>> hello(@Context HttpServerRequest request) {
        return hello.reactive(request);
    }

    @GET
    public Uni<RestResponse<Void>> root(@Context HttpServerRequest request) {
        return Uni.createFrom()
                .completionStage(() -> read(request).toCompletionStage())
                .map(read -> RestResponse.ok());
    }

    /** Quarkus pauses a request; what nobody handles Vert.x drops piece by piece. */
    private static Future<Void> read(HttpServerRequest request) {
        Future<Void> end = request.end();
        request.resume();
        return end;
    }

    @GET
    @Path("no-read")
    public RestResponse<Void> noRead() {
        return RestResponse.ok();
    }

    @GET
    @Path("hello")
    @Produces(MediaType.TEXT_PLAIN)
    public String hello() {
        return Basics.HELLO;
    }

    @GET
    @Path("file")
    @Produces(MediaType.APPLICATION_OCTET_STREAM)
    public RestResponse<Buffer> file(@Context HttpServerRequest request) {
        return Basics.file(request);
    }

    @POST
    @Path("load")
    @Produces(MediaType.TEXT_PLAIN)
    public byte[] load(byte[] body) {
        return Basics.base64(body);
    }

    @GET
    @Path("data")
    public Compute.Catalogue data() {
        return Compute.CATALOGUE;
    }

    @GET
    @Path("concat")
    public Compute.Concat concat() {
        return Compute.concat();
    }

    @GET
    @Path("fibonacci")
    public Compute.Fibonacci fibonacci() {
        return Compute.fibonacci();
    }
}
