package prony;

import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;

/**
 * Reads what is left of a body before an answer is complete. In HTTP/2 Jetty sends 500 instead of
 * an empty answer where the body that nobody read has not arrived.
 */
final class Drain extends Handler.Wrapper {

    Drain(Handler handler) {
        super(handler);
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) throws Exception {
        Callback drained = new Callback.Nested(callback) {
            @Override
            public void succeeded() {
                Content.Source.consumeAll(request, getCallback());
            }
        };
        if (!super.handle(request, response, drained)) {
            Answer.empty(response, drained, 404);
        }
        return true;
    }
}
