package prony;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;

/** Writes the answers of the contracts, each with its length. */
final class Answer {

    // The JDK copies a write to native memory that stays with the thread: 22 MiB would stay too.
    private static final int SLICE = 64 * 1024;

    private Answer() {
    }

    static void empty(Response response, Callback callback, int status) {
        response.setStatus(status);
        callback.succeeded();
    }

    static void bytes(Response response, Callback callback, String type, byte[] body)
            throws IOException {
        begin(response, type, body.length);
        int last = 0;
        for (; body.length - last > SLICE; last += SLICE) {
            Content.Sink.write(response, false, ByteBuffer.wrap(body, last, SLICE));
        }
        response.write(true, ByteBuffer.wrap(body, last, body.length - last), callback);
    }

    /** Sets the headers; the caller writes {@code length} bytes. */
    static void begin(Response response, String type, int length) {
        response.getHeaders().put(HttpHeader.CONTENT_TYPE, type);
        response.getHeaders().put(HttpHeader.CONTENT_LENGTH, length);
    }
}
