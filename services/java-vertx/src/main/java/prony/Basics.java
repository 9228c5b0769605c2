package prony;

import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.ext.web.RoutingContext;
import java.util.Base64;
import java.util.regex.Pattern;

/** The contract http, and the health path. */
final class Basics {

    private static final int MAX_BODY = 16 * 1024 * 1024;
    private static final String DEFAULT_SIZE = Integer.toString(1024 * 1024);
    private static final Pattern SIZE = Pattern.compile("[0-9]{1,8}");

    private Basics() {
    }

    static void empty(RoutingContext ctx) {
        ctx.end();
    }

    /** Answers at the body's end; what nobody handles Vert.x drops piece by piece. */
    static void root(RoutingContext ctx) {
        ctx.request().end().onSuccess(read -> ctx.end());
    }

    static void hello(RoutingContext ctx) {
        text(ctx, "Hello world");
    }

    static void file(RoutingContext ctx) {
        String size = parameter(ctx, "size", DEFAULT_SIZE);
        if (SIZE.matcher(size).matches() && Integer.parseInt(size) <= Lorem.MAX_SIZE) {
            Buffer body = Lorem.first(Integer.parseInt(size));
            ctx.response().putHeader(HttpHeaders.CONTENT_TYPE, "application/octet-stream");
            ctx.end(body);
        } else {
            ctx.fail(400);
        }
    }

    /**
     * Gathers the body itself: Vert.x Web's BodyHandler would take a form apart, and the contract
     * wants the bytes of any type.
     */
    static void load(RoutingContext ctx) {
        Buffer body = Buffer.buffer();
        ctx.request().handler(part -> {
            if (body.length() + part.length() <= MAX_BODY) {
                body.appendBuffer(part);
            } else if (!ctx.failed()) {
                ctx.fail(413);
            }
        });
        ctx.request().end().onSuccess(read -> {
            if (!ctx.failed()) {
                encoded(ctx, body);
            }
        });
    }

    private static void encoded(RoutingContext ctx, Buffer body) {
        ctx.response().putHeader(HttpHeaders.CONTENT_TYPE, "text/plain");
        ctx.end(Buffer.buffer(Base64.getEncoder().encode(body.getBytes())));
    }

    static void text(RoutingContext ctx, String text) {
        ctx.response().putHeader(HttpHeaders.CONTENT_TYPE, "text/plain");
        ctx.end(text);
    }

    static String parameter(RoutingContext ctx, String name, String absent) {
        String value = ctx.queryParams().get(name);
        return value == null ? absent : value;
    }
}
