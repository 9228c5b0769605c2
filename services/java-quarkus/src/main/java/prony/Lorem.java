package prony;

import io.vertx.core.buffer.Buffer;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;

/** The repeated text of /file, made on first use. */
final class Lorem {

    static final int MAX_SIZE = 16 * 1024 * 1024;
    private static final Buffer TEXT = repeated();

    private Lorem() {
    }

    /** A view of the first bytes, without a copy. */
    static Buffer first(int size) {
        return TEXT.slice(0, size);
    }

    private static Buffer repeated() {
        try (InputStream in = Lorem.class.getResourceAsStream("/lorem.txt")) {
            byte[] text = in.readAllBytes();
            Buffer buffer = Buffer.buffer(MAX_SIZE);
            for (int left = MAX_SIZE; left > 0; left -= text.length) {
                buffer.appendBytes(text, 0, Math.min(left, text.length));
            }
            return buffer;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
