package prony;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.OptionalInt;
import java.util.regex.Pattern;
import spark.Request;
import spark.Response;

/** The contract http, and the health path. */
final class Basics {

    private static final int MAX_BODY = 16 * 1024 * 1024;
    private static final int DEFAULT_SIZE = 1024 * 1024;
    private static final Pattern SIZE = Pattern.compile("[0-9]{1,8}");

    private Basics() {
    }

    static Object health(Request request, Response response) {
        return Answer.empty(response, 200);
    }

    static Object root(Request request, Response response) throws IOException {
        try (InputStream body = request.raw().getInputStream()) {
            body.transferTo(OutputStream.nullOutputStream());
        }
        return Answer.empty(response, 200);
    }

    static Object noRead(Request request, Response response) {
        return Answer.empty(response, 200);
    }

    static Object hello(Request request, Response response) {
        return Answer.bytes(
                response, "text/plain", "Hello world".getBytes(StandardCharsets.US_ASCII));
    }

    static Object file(Request request, Response response) throws IOException {
        OptionalInt size = size(request.queryParams("size"));
        if (size.isEmpty()) {
            return Answer.empty(response, 400);
        }
        Answer.begin(response, "application/octet-stream", size.getAsInt());
        Lorem.write(response.raw().getOutputStream(), size.getAsInt());
        return "";
    }

    /** Reads by the raw request, because Spark's bodyAsBytes() has no limit. */
    static Object load(Request request, Response response) throws IOException {
        byte[] body;
        try (InputStream in = request.raw().getInputStream()) {
            body = in.readNBytes(MAX_BODY + 1);
        }
        if (body.length > MAX_BODY) {
            return Answer.empty(response, 413);
        }
        return Answer.bytes(response, "text/plain", Base64.getEncoder().encode(body));
    }

    private static OptionalInt size(String text) {
        if (text == null) {
            return OptionalInt.of(DEFAULT_SIZE);
        }
        if (!SIZE.matcher(text).matches()) {
            return OptionalInt.empty();
        }
        int size = Integer.parseInt(text);
        return size <= MAX_BODY ? OptionalInt.of(size) : OptionalInt.empty();
    }
}
