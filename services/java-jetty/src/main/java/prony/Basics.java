package prony;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.OptionalInt;
import java.util.regex.Pattern;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;

/** The contract http, and the health path. */
final class Basics {

    private static final int MAX_BODY = 16 * 1024 * 1024;
    private static final int DEFAULT_SIZE = 1024 * 1024;
    private static final Pattern SIZE = Pattern.compile("[0-9]{1,8}");

    private Basics() {
    }

    static void health(Request request, Response response, Callback callback) {
        Answer.empty(response, callback, 200);
    }

    static void root(Request request, Response response, Callback callback) throws IOException {
        try (InputStream body = Content.Source.asInputStream(request)) {
            body.transferTo(OutputStream.nullOutputStream());
        }
        Answer.empty(response, callback, 200);
    }

    static void noRead(Request request, Response response, Callback callback) {
        Answer.empty(response, callback, 200);
    }

    static void hello(Request request, Response response, Callback callback) throws IOException {
        byte[] text = "Hello world".getBytes(StandardCharsets.US_ASCII);
        Answer.bytes(response, callback, "text/plain", text);
    }

    static void file(Request request, Response response, Callback callback) throws IOException {
        OptionalInt size = size(Request.extractQueryParameters(request).getValue("size"));
        if (size.isEmpty()) {
            Answer.empty(response, callback, 400);
            return;
        }
        Answer.begin(response, "application/octet-stream", size.getAsInt());
        Lorem.write(response, size.getAsInt(), callback);
    }

    static void load(Request request, Response response, Callback callback) throws IOException {
        byte[] body;
        try (InputStream in = Content.Source.asInputStream(request)) {
            body = in.readNBytes(MAX_BODY + 1);
        }
        if (body.length > MAX_BODY) {
            Answer.empty(response, callback, 413);
            return;
        }
        Answer.bytes(response, callback, "text/plain", Base64.getEncoder().encode(body));
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
