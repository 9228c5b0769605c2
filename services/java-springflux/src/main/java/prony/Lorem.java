package prony;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.core.io.buffer.DataBufferFactory;
import reactor.core.publisher.Flux;

/** The repeated text of /file, kept as one block of about 64 KiB that ends where the text ends. */
final class Lorem {

    private static final int BLOCK_BYTES = 64 * 1024;
    private static final byte[] BLOCK = block();

    private Lorem() {
    }

    /** The first {@code size} bytes in slices of the block, made as the connection takes them. */
    static Flux<DataBuffer> first(int size, DataBufferFactory buffers) {
        return Flux.generate(() -> size, (left, sink) -> {
            if (left <= 0) {
                sink.complete();
                return 0;
            }
            sink.next(buffers.wrap(BLOCK).split(Math.min(left, BLOCK.length)));
            return left - BLOCK.length;
        });
    }

    private static byte[] block() {
        try (InputStream in = Lorem.class.getResourceAsStream("/lorem.txt")) {
            String text = new String(in.readAllBytes(), StandardCharsets.US_ASCII);
            return text.repeat(BLOCK_BYTES / text.length()).getBytes(StandardCharsets.US_ASCII);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
