package prony;

import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.util.Base64;
import java.util.regex.Pattern;

/** The contract http, and the health path. */
final class Basics {

    private static final String DEFAULT_SIZE = Integer.toString(1024 * 1024);
    private static final Pattern SIZE = Pattern.compile("[0-9]{1,8}");

    private Basics() {
    }

    static void empty(ChannelHandlerContext ctx, HttpRequest request, QueryStringDecoder uri) {
        Answer.empty(ctx, HttpResponseStatus.OK);
    }

    static void hello(ChannelHandlerContext ctx, HttpRequest request, QueryStringDecoder uri) {
        Answer.text(ctx, "Hello world");
    }

    static void file(ChannelHandlerContext ctx, HttpRequest request, QueryStringDecoder uri) {
        String size = Route.parameter(uri, "size", DEFAULT_SIZE);
        if (SIZE.matcher(size).matches() && Integer.parseInt(size) <= Lorem.MAX_SIZE) {
            Answer.bytes(ctx, "application/octet-stream", Lorem.first(Integer.parseInt(size)));
        } else {
            Answer.empty(ctx, HttpResponseStatus.BAD_REQUEST);
        }
    }

    static void load(ChannelHandlerContext ctx, HttpRequest request, QueryStringDecoder uri) {
        // The JDK's encoder wants one array; Netty's would walk the gathered pieces byte by byte.
        byte[] body = ByteBufUtil.getBytes(((FullHttpRequest) request).content());
        byte[] encoded = Base64.getEncoder().encode(body);
        Answer.bytes(ctx, "text/plain", Unpooled.wrappedBuffer(encoded));
    }
}
