package prony;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.OptionalInt;
import java.util.regex.Pattern;

/** The contract http. */
final class Basics {

    private static final int MAX_BODY = 16 * 1024 * 1024;
    private static final int DEFAULT_SIZE = 1024 * 1024;
    private static final Pattern SIZE = Pattern.compile("[0-9]{1,8}");

    private Basics() {
    }

    static void root(HttpServletRequest request, HttpServletResponse response) throws IOException {
        request.getInputStream().transferTo(OutputStream.nullOutputStream());
        Answer.empty(response, HttpServletResponse.SC_OK);
    }

    static void noRead(HttpServletRequest request, HttpServletResponse response) {
        Answer.empty(response, HttpServletResponse.SC_OK);
    }

    static void hello(HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        byte[] text = "Hello world".getBytes(StandardCharsets.US_ASCII);
        Answer.bytes(response, "text/plain", text);
    }

    static void file(HttpServletRequest request, HttpServletResponse response) throws IOException {
        OptionalInt size = size(request.getParameter("size"));
        if (size.isEmpty()) {
            Answer.empty(response, HttpServletResponse.SC_BAD_REQUEST);
            return;
        }
        response.setContentType("application/octet-stream");
        response.setContentLength(size.getAsInt());
        Lorem.write(response.getOutputStream(), size.getAsInt());
    }

    static void load(HttpServletRequest request, HttpServletResponse response) throws IOException {
        byte[] body = request.getInputStream().readNBytes(MAX_BODY + 1);
        if (body.length > MAX_BODY) {
            Answer.empty(response, HttpServletResponse.SC_REQUEST_ENTITY_TOO_LARGE);
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
