package prony;

import io.fusionauth.http.server.HTTPRequest;
import io.fusionauth.http.server.HTTPResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.OptionalInt;
import java.util.regex.Pattern;

/** The contract http, and the health path. */
final class Basics {

    private static final int MAX_BODY = 16 * 1024 * 1024;
    private static final int DEFAULT_SIZE = 1024 * 1024;
    private static final Pattern SIZE = Pattern.compile("[0-9]{1,8}");

    private Basics() {
    }

    static void health(HTTPRequest request, HTTPResponse response) {
        response.setStatus(200);
    }

    static void root(HTTPRequest request, HTTPResponse response) throws IOException {
        request.getInputStream().transferTo(OutputStream.nullOutputStream());
        response.setStatus(200);
    }

    static void noRead(HTTPRequest request, HTTPResponse response) {
        response.setStatus(200);
    }

    static void hello(HTTPRequest request, HTTPResponse response) throws IOException {
        byte[] text = "Hello world".getBytes(StandardCharsets.US_ASCII);
        Answer.bytes(response, "text/plain", text);
    }

    static void file(HTTPRequest request, HTTPResponse response) throws IOException {
        OptionalInt size = size(request.getURLParameter("size"));
        if (size.isEmpty()) {
            response.setStatus(400);
            return;
        }
        Answer.begin(response, "application/octet-stream", size.getAsInt());
        Lorem.write(response.getOutputStream(), size.getAsInt());
    }

    static void load(HTTPRequest request, HTTPResponse response) throws IOException {
        // No more than the body, because java-http 1.2.0 would add a pipelined request to it.
        Long length = request.getContentLength();
        int most = length == null ? MAX_BODY + 1 : (int) Math.min(length, MAX_BODY + 1);
        byte[] body = request.getInputStream().readNBytes(most);
        if (body.length > MAX_BODY) {
            response.setStatus(413);
            return;
        }
        Answer.bytes(response, "text/plain", Base64.getEncoder().encode(body));
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
