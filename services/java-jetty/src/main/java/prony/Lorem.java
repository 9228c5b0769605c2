package prony;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;

/** The repeated text of /file, kept as one block of about 64 KiB that ends where the text ends. */
final class Lorem {

    private static final int BLOCK_BYTES = 64 * 1024;
    private static final ByteBuffer BLOCK = block();

    private Lorem() {
    }

    static void write(Response response, int size, Callback callback) throws IOException {
        int left = size;
        for (; left > BLOCK.capacity(); left -= BLOCK.capacity()) {
            Content.Sink.write(response, false, BLOCK.duplicate());
        }
        response.write(true, BLOCK.slice(0, left), callback);
    }

    private static ByteBuffer block() {
        try (InputStream in = Lorem.class.getResourceAsStream("/lorem.txt")) {
            String text = new String(in.readAllBytes(), StandardCharsets.US_ASCII);
            byte[] block =
                    text.repeat(BLOCK_BYTES / text.length()).getBytes(StandardCharsets.US_ASCII);
            return ByteBuffer.wrap(block).asReadOnlyBuffer();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
