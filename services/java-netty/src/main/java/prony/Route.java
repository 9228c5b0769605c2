package prony;

import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.util.List;

/** Answers the requests of one method and path, on the event loop of their connection. */
@FunctionalInterface
interface Route {

    void answer(ChannelHandlerContext ctx, HttpRequest request, QueryStringDecoder uri);

    static String parameter(QueryStringDecoder uri, String name, String absent) {
        List<String> values = uri.parameters().get(name);
        return values == null ? absent : values.getFirst();
    }
}
