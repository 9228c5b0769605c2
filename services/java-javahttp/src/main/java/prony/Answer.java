package prony;

import io.fusionauth.http.server.HTTPResponse;
import java.io.IOException;

/** Writes the answers that have a body, each with its length; java-http adds the length of none. */
final class Answer {

    private Answer() {
    }

    static void bytes(HTTPResponse response, String type, byte[] body) throws IOException {
        begin(response, type, body.length);
        response.getOutputStream().write(body);
    }

    /** Sets the headers; the caller writes {@code length} bytes. */
    static void begin(HTTPResponse response, String type, int length) {
        response.setContentType(type);
        response.setContentLength(length);
    }
}
