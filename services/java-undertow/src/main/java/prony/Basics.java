package prony;

import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.Base64;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.regex.Pattern;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The contract http. */
@RestController
class Basics {

    private static final int MAX_BODY = 16 * 1024 * 1024;
    private static final String DEFAULT_SIZE = Integer.toString(1024 * 1024);
    private static final Pattern SIZE = Pattern.compile("[0-9]{1,8}");

    @GetMapping("/")
    ResponseEntity<Void> root(InputStream body) throws IOException {
        body.transferTo(OutputStream.nullOutputStream());
        return ResponseEntity.ok().build();
    }

    @GetMapping("/no-read")
    ResponseEntity<Void> noRead() {
        return ResponseEntity.ok().build();
    }

    @GetMapping("/hello")
    ResponseEntity<String> hello() {
        return ResponseEntity.ok().contentType(MediaType.TEXT_PLAIN).body("Hello world");
    }

    // Written to the response itself: a body of Spring's would be one array of the whole size.
    @GetMapping("/file")
    void file(@RequestParam(required = false) String size, HttpServletResponse response)
            throws IOException {
        OptionalInt bytes = size(Objects.requireNonNullElse(size, DEFAULT_SIZE));
        if (bytes.isEmpty()) {
            response.setStatus(HttpServletResponse.SC_BAD_REQUEST);
            return;
        }
        response.setContentType(MediaType.APPLICATION_OCTET_STREAM_VALUE);
        response.setContentLength(bytes.getAsInt());
        Lorem.write(response.getOutputStream(), bytes.getAsInt());
    }

    // A stream and not an array, so that a body over the bound is not read to its end.
    @PostMapping("/load")
    ResponseEntity<byte[]> load(InputStream body) throws IOException {
        byte[] bytes = body.readNBytes(MAX_BODY + 1);
        if (bytes.length > MAX_BODY) {
            return ResponseEntity.status(HttpStatus.PAYLOAD_TOO_LARGE).build();
        }
        return ResponseEntity.ok()
                .contentType(MediaType.TEXT_PLAIN)
                .body(Base64.getEncoder().encode(bytes));
    }

    private static OptionalInt size(String text) {
        if (!SIZE.matcher(text).matches()) {
            return OptionalInt.empty();
        }
        int size = Integer.parseInt(text);
        return size <= MAX_BODY ? OptionalInt.of(size) : OptionalInt.empty();
    }
}
