package prony;

import io.helidon.common.media.type.MediaTypes;
import io.helidon.http.Status;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Base64;
import java.util.OptionalInt;
import java.util.regex.Pattern;

/** The contract http, and the health path. */
final class Basics {

    private static final int MAX_BODY = 16 * 1024 * 1024;
    private static final String DEFAULT_SIZE = Integer.toString(1024 * 1024);
    private static final Pattern SIZE = Pattern.compile("[0-9]{1,8}");

    private Basics() {
    }

    static void empty(ServerRequest request, ServerResponse response) {
        Answer.empty(response, Status.OK_200);
    }

    static void notFound(ServerRequest request, ServerResponse response) {
        Answer.empty(response, Status.NOT_FOUND_404);
    }

    static void root(ServerRequest request, ServerResponse response) throws IOException {
        request.content().inputStream().transferTo(OutputStream.nullOutputStream());
        Answer.empty(response, Status.OK_200);
    }

    static void hello(ServerRequest request, ServerResponse response) {
        Answer.text(response, "Hello world");
    }

    static void file(ServerRequest request, ServerResponse response) throws IOException {
        OptionalInt size = size(request.query().first("size").orElse(DEFAULT_SIZE));
        if (size.isEmpty()) {
            Answer.empty(response, Status.BAD_REQUEST_400);
            return;
        }
        response.headers().contentType(MediaTypes.APPLICATION_OCTET_STREAM);
        response.headers().contentLength(size.getAsInt());
        try (OutputStream out = response.outputStream()) {
            Lorem.write(out, size.getAsInt());
        }
    }

    static void load(ServerRequest request, ServerResponse response) throws IOException {
        byte[] body = request.content().inputStream().readNBytes(MAX_BODY + 1);
        if (body.length > MAX_BODY) {
            Answer.empty(response, Status.REQUEST_ENTITY_TOO_LARGE_413);
            return;
        }
        Answer.bytes(response, MediaTypes.TEXT_PLAIN, Base64.getEncoder().encode(body));
    }

    private static OptionalInt size(String text) {
        if (!SIZE.matcher(text).matches()) {
            return OptionalInt.empty();
        }
        int size = Integer.parseInt(text);
        return size <= MAX_BODY ? OptionalInt.of(size) : OptionalInt.empty();
    }
}
