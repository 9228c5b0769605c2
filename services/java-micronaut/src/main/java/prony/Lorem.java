package prony;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;

/** The repeated text of /file, made on first use in native memory, from which it is sent as is. */
final class Lorem {

    static final int MAX_SIZE = 16 * 1024 * 1024;
    private static final ByteBuf TEXT = Unpooled.unreleasableBuffer(repeated());

    private Lorem() {
    }

    /** A view of the first bytes; its release does nothing, for the text outlives every answer. */
    static ByteBuf first(int size) {
        return TEXT.slice(0, size);
    }

    private static ByteBuf repeated() {
        try (InputStream in = Lorem.class.getResourceAsStream("/lorem.txt")) {
            byte[] text = in.readAllBytes();
            ByteBuf buffer = Unpooled.directBuffer(MAX_SIZE, MAX_SIZE);
            while (buffer.isWritable()) {
                buffer.writeBytes(text, 0, Math.min(text.length, buffer.writableBytes()));
            }
            return buffer;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
