package prony;

import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;
import java.io.OutputStream;

/** Writes the answers of the contracts, each with its length. */
final class Answer {

    // The server takes -1 for "no body", said as Content-Length: 0; its 0 would mean chunked.
    private static final int NO_BODY = -1;
    // The server buffers each write twice, so one big write would cost three times its size.
    private static final int SLICE = 64 * 1024;

    private Answer() {
    }

    static void empty(HttpExchange exchange, int status) throws IOException {
        if (exchange.getRequestMethod().equals("HEAD")) {
            // The server leaves the length of an answer to HEAD to the handler.
            exchange.getResponseHeaders().set("Content-Length", "0");
        }
        exchange.sendResponseHeaders(status, NO_BODY);
    }

    static void bytes(HttpExchange exchange, String type, byte[] body) throws IOException {
        OutputStream out = begin(exchange, type, body.length);
        for (int from = 0; from < body.length; from += SLICE) {
            out.write(body, from, Math.min(SLICE, body.length - from));
        }
    }

    /** Sends status and headers; the caller writes {@code length} bytes to what it gets. */
    static OutputStream begin(HttpExchange exchange, String type, int length) throws IOException {
        exchange.getResponseHeaders().set("Content-Type", type);
        exchange.sendResponseHeaders(200, length == 0 ? NO_BODY : length);
        return exchange.getResponseBody();
    }
}
