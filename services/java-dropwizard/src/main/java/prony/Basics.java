package prony;

import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.HttpHeaders;
import jakarta.ws.rs.core.MediaType;
import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.core.StreamingOutput;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.Base64;
import java.util.OptionalInt;
import java.util.regex.Pattern;

/** The contract http. */
@Path("/")
public class Basics {

    private static final int MAX_BODY = 16 * 1024 * 1024;
    private static final String DEFAULT_SIZE = "1048576";
    private static final Pattern SIZE = Pattern.compile("[0-9]{1,8}");

    @GET
    public Response root(InputStream body) throws IOException {
        body.transferTo(OutputStream.nullOutputStream());
        return Response.ok().build();
    }

    @GET
    @Path("no-read")
    public Response noRead() {
        return Response.ok().build();
    }

    @GET
    @Path("hello")
    public Response hello() {
        return Response.ok("Hello world", MediaType.TEXT_PLAIN_TYPE).build();
    }

    @GET
    @Path("file")
    public Response file(@QueryParam("size") @DefaultValue(DEFAULT_SIZE) String size) {
        OptionalInt bytes = size(size);
        if (bytes.isEmpty()) {
            return Response.status(Response.Status.BAD_REQUEST).build();
        }
        StreamingOutput text = out -> Lorem.write(out, bytes.getAsInt());
        return Response.ok(text, MediaType.APPLICATION_OCTET_STREAM_TYPE)
                .header(HttpHeaders.CONTENT_LENGTH, bytes.getAsInt())
                .build();
    }

    // A stream and not an array, so that a body over the bound is not read to its end.
    @POST
    @Path("load")
    public Response load(InputStream body) throws IOException {
        byte[] bytes = body.readNBytes(MAX_BODY + 1);
        if (bytes.length > MAX_BODY) {
            return Response.status(Response.Status.REQUEST_ENTITY_TOO_LARGE).build();
        }
        byte[] text = Base64.getEncoder().encode(bytes);
        return Response.ok(text, MediaType.TEXT_PLAIN_TYPE)
                .header(HttpHeaders.CONTENT_LENGTH, text.length)
                .build();
    }

    private static OptionalInt size(String text) {
        if (!SIZE.matcher(text).matches()) {
            return OptionalInt.empty();
        }
        int size = Integer.parseInt(text);
        return size <= MAX_BODY ? OptionalInt.of(size) : OptionalInt.empty();
    }
}
