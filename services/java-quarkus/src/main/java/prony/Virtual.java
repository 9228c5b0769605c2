package prony;

import io.quarkus.resteasy.reactive.server.EndpointDisabled;
import io.smallrye.common.annotation.RunOnVirtualThread;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpServerRequest;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.core.Context;
import jakarta.ws.rs.core.MediaType;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.jboss.resteasy.reactive.RestResponse;

/** Every endpoint on a virtual thread of its own, which it may block. */
@Path("/")
@RunOnVirtualThread
@EndpointDisabled(name = "prony.virtual", stringValue = "off")
public class Virtual {

    private final Hello hello;

    Virtual(Hello hello) {
        this.hello = hello;
    }

    @GET
    @Path("hello/virtual")
    @Produces(MediaType.TEXT_PLAIN)
    public RestResponse<String> hello(@Context HttpServerRequest request)
            throws InterruptedException {
        return hello.blocking(request);
    }

    @GET
    public RestResponse<Void> root(InputStream body) throws IOException {
        body.transferTo(OutputStream.nullOutputStream());
        return RestResponse.ok();
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
