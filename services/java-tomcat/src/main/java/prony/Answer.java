package prony;

import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/** Writes the answers of the contracts, each with its length. */
final class Answer {

    private Answer() {
    }

    // Not sendError, which is for servers that describe the error in a page.
    static void empty(HttpServletResponse response, int status) {
        response.setStatus(status);
        response.setContentLength(0);
    }

    static void bytes(HttpServletResponse response, String type, byte[] body) throws IOException {
        response.setContentType(type);
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
    }
}
