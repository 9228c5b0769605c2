package prony;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.handler.codec.CodecException;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.io.IOException;
import java.util.Map;

/**
 * Finds the route of each request of one connection. A request is answered when its head arrives,
 * and its body, should it have one, is dropped piece by piece; the root waits for the body's end.
 */
final class Router extends SimpleChannelInboundHandler<HttpObject> {

    static final String ROOT = "GET /";

    private final Map<String, Route> routes;
    private boolean readingRoot;

    Router(Map<String, Route> routes) {
        this.routes = routes;
    }

    @Override
    protected void channelRead0(ChannelHandlerContext ctx, HttpObject message) {
        if (message.decoderResult().isFailure()) {
            Answer.reject(ctx);
            return;
        }
        if (message instanceof HttpRequest request) {
            begin(ctx, request);
        }
        // A head of HTTP/2 that nothing follows is the end, too.
        if (message instanceof LastHttpContent && readingRoot) {
            readingRoot = false;
            Answer.empty(ctx, HttpResponseStatus.OK);
        }
    }

    private void begin(ChannelHandlerContext ctx, HttpRequest request) {
        QueryStringDecoder uri = new QueryStringDecoder(request.uri());
        String name = request.method().name() + " " + uri.rawPath();
        if (name.equals(ROOT)) {
            readingRoot = true;
            return;
        }
        try {
            routes.getOrDefault(name, Router::notFound).answer(ctx, request, uri);
        } catch (IllegalArgumentException e) {
            // The decoder says so of a query with a broken percent sign.
            Answer.empty(ctx, HttpResponseStatus.BAD_REQUEST);
        }
    }

    private static void notFound(
            ChannelHandlerContext ctx, HttpRequest request, QueryStringDecoder uri) {
        Answer.empty(ctx, HttpResponseStatus.NOT_FOUND);
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
        // A peer that hangs up or breaks the protocol is worth no line; all else is our fault.
        if (!(cause instanceof IOException || cause instanceof CodecException)) {
            System.err.println("closing a connection: " + cause);
        }
        ctx.close();
    }
}
