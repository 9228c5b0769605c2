package prony;

import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;

/** One method of one path. Jetty maps paths only, and answers 404 to what no handler takes. */
final class Route extends Handler.Abstract {

    /** Answers a request and completes its callback. */
    @FunctionalInterface
    interface Action {
        void answer(Request request, Response response, Callback callback) throws Exception;
    }

    private final String method;
    private final Action action;

    Route(String method, Action action) {
        this.method = method;
        this.action = action;
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) throws Exception {
        if (!request.getMethod().equals(method)) {
            return false;
        }
        action.answer(request, response, callback);
        return true;
    }
}
