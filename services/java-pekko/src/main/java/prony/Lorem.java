package prony;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import org.apache.pekko.util.ByteString;

/** The repeated text of /file, made on first use. */
final class Lorem {

    static final int MAX_SIZE = 16 * 1024 * 1024;
    private static final ByteString TEXT = repeated();

    private Lorem() {
    }

    /** A view of the first bytes, without a copy. */
    static ByteString first(int size) {
        return TEXT.take(size);
    }

    private static ByteString repeated() {
        try (InputStream in = Lorem.class.getResourceAsStream("/lorem.txt")) {
            byte[] text = in.readAllBytes();
            byte[] all = new byte[MAX_SIZE];
            for (int filled = 0; filled < MAX_SIZE; filled += text.length) {
                System.arraycopy(text, 0, all, filled, Math.min(MAX_SIZE - filled, text.length));
            }
            return ByteString.fromArrayUnsafe(all);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
