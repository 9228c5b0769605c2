package prony;

import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
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

    static void health(HttpExchange exchange) throws IOException {
        Answer.empty(exchange, 200);
    }

    static void root(HttpExchange exchange) throws IOException {
        exchange.getRequestBody().transferTo(OutputStream.nullOutputStream());
        Answer.empty(exchange, 200);
    }

    static void noRead(HttpExchange exchange) throws IOException {
        Answer.empty(exchange, 200);
    }

    static void hello(HttpExchange exchange) throws IOException {
        byte[] text = "Hello world".getBytes(StandardCharsets.US_ASCII);
        Answer.bytes(exchange, "text/plain", text);
    }

    static void file(HttpExchange exchange) throws IOException {
        OptionalInt size = size(Query.of(exchange.getRequestURI()).get("size", DEFAULT_SIZE));
        if (size.isEmpty()) {
            Answer.empty(exchange, 400);
            return;
        }
        int bytes = size.getAsInt();
        Lorem.write(Answer.begin(exchange, "application/octet-stream", bytes), bytes);
    }

    static void load(HttpExchange exchange) throws IOException {
        byte[] body = exchange.getRequestBody().readNBytes(MAX_BODY + 1);
        if (body.length > MAX_BODY) {
            Answer.empty(exchange, 413);
            return;
        }
        Answer.bytes(exchange, "text/plain", Base64.getEncoder().encode(body));
    }

    private static OptionalInt size(String text) {
        if (!SIZE.matcher(text).matches()) {
            return OptionalInt.empty();
        }
        int size = Integer.parseInt(text);
        return size <= MAX_BODY ? OptionalInt.of(size) : OptionalInt.empty();
    }
}
