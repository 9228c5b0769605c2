package prony;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** The repeated text of /file, kept as one block of about 64 KiB that ends where the text ends. */
final class Lorem {

    private static final int BLOCK_BYTES = 64 * 1024;
    private static final byte[] BLOCK = block();

    private Lorem() {
    }

    static void write(OutputStream out, int size) throws IOException {
        for (int left = size; left > 0; left -= BLOCK.length) {
            out.write(BLOCK, 0, Math.min(left, BLOCK.length));
        }
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
