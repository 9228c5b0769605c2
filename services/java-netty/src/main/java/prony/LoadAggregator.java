package prony;

import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.QueryStringDecoder;

/** Gathers the bodies of POST /load; all other requests go through piece by piece. */
final class LoadAggregator extends HttpObjectAggregator {

    static final String PATH = "/load";
    private static final int MAX_BODY = 16 * 1024 * 1024;

    LoadAggregator() {
        super(MAX_BODY);
    }

    @Override
    protected boolean isStartMessage(HttpObject message) {
        return message instanceof HttpRequest request
                && request.method().equals(HttpMethod.POST)
                && new QueryStringDecoder(request.uri()).rawPath().equals(PATH);
    }
}
