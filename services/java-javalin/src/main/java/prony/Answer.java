package prony;

import io.javalin.http.Context;

/** Answers that may be large. Javalin leaves the length to Jetty, which chunks all over 8 KiB. */
final class Answer {

    private Answer() {
    }

    static void bytes(Context ctx, byte[] body) {
        ctx.res().setContentLength(body.length);
        ctx.result(body);
    }
}
