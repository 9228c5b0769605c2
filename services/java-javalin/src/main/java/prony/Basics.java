package prony;

import io.javalin.http.ContentType;
import io.javalin.http.Context;
import io.javalin.http.HttpStatus;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Base64;
import java.util.OptionalInt;
import java.util.regex.Pattern;

/** The contract http, and the health path. Javalin answers 200, text/plain, unless told. */
final class Basics {

    static final int MAX_BODY = 16 * 1024 * 1024;

    private static final int DEFAULT_SIZE = 1024 * 1024;
    private static final Pattern SIZE = Pattern.compile("[0-9]{1,8}");

    private Basics() {
    }

    static void health(Context ctx) {
        ctx.status(HttpStatus.OK);
    }

    static void root(Context ctx) throws IOException {
        ctx.bodyInputStream().transferTo(OutputStream.nullOutputStream());
    }

    static void noRead(Context ctx) {
        ctx.status(HttpStatus.OK);
    }

    static void hello(Context ctx) {
        ctx.result("Hello world");
    }

    static void file(Context ctx) throws IOException {
        OptionalInt size = size(ctx.queryParam("size"));
        if (size.isEmpty()) {
            ctx.status(HttpStatus.BAD_REQUEST);
            return;
        }
        ctx.contentType(ContentType.APPLICATION_OCTET_STREAM);
        ctx.res().setContentLength(size.getAsInt());
        Lorem.write(ctx.outputStream(), size.getAsInt());
    }

    static void load(Context ctx) {
        Answer.bytes(ctx, Base64.getEncoder().encode(ctx.bodyAsBytes()));
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
