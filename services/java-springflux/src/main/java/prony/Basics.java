package prony;

import java.util.Base64;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.regex.Pattern;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.core.io.buffer.DataBufferUtils;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The contract http. */
@RestController
class Basics {

    private static final int MAX_SIZE = 16 * 1024 * 1024;
    private static final String DEFAULT_SIZE = Integer.toString(1024 * 1024);
    private static final Pattern SIZE = Pattern.compile("[0-9]{1,8}");
    private static final byte[] NOTHING = {};

    @GetMapping("/")
    Mono<Void> root(ServerHttpRequest request) {
        return request.getBody().doOnNext(DataBufferUtils::release).then();
    }

    @GetMapping("/no-read")
    ResponseEntity<Void> noRead() {
        return ResponseEntity.ok().build();
    }

    @GetMapping("/hello")
    ResponseEntity<String> hello() {
        return ResponseEntity.ok().contentType(MediaType.TEXT_PLAIN).body("Hello world");
    }

    @GetMapping("/file")
    ResponseEntity<Flux<DataBuffer>> file(
            @RequestParam(required = false) String size, ServerHttpResponse response) {
        OptionalInt bytes = size(Objects.requireNonNullElse(size, DEFAULT_SIZE));
        if (bytes.isEmpty()) {
            return ResponseEntity.badRequest().build();
        }
        return ResponseEntity.ok()
                .contentType(MediaType.APPLICATION_OCTET_STREAM)
                .contentLength(bytes.getAsInt())
                .body(Lorem.first(bytes.getAsInt(), response.bufferFactory()));
    }

    // The codec gathers the body up to the bound that application.yaml gives it.
    @PostMapping("/load")
    Mono<ResponseEntity<byte[]>> load(@RequestBody(required = false) Mono<byte[]> body) {
        return body.defaultIfEmpty(NOTHING).map(bytes -> ResponseEntity.ok()
                .contentType(MediaType.TEXT_PLAIN)
                .body(Base64.getEncoder().encode(bytes)));
    }

    private static OptionalInt size(String text) {
        if (!SIZE.matcher(text).matches()) {
            return OptionalInt.empty();
        }
        int size = Integer.parseInt(text);
        return size <= MAX_SIZE ? OptionalInt.of(size) : OptionalInt.empty();
    }
}
