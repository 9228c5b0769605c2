package prony;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;

/** Writes the answers of the contracts, each with its length. */
final class Answer {

    private Answer() {
    }

    static void empty(ChannelHandlerContext ctx, HttpResponseStatus status) {
        ctx.writeAndFlush(response(status, Unpooled.EMPTY_BUFFER));
    }

    /** Answers what is no HTTP; nothing that follows on the connection can be understood. */
    static void reject(ChannelHandlerContext ctx) {
        FullHttpResponse response = response(HttpResponseStatus.BAD_REQUEST, Unpooled.EMPTY_BUFFER);
        response.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.CLOSE);
        ctx.writeAndFlush(response);
    }

    static void text(ChannelHandlerContext ctx, String text) {
        bytes(ctx, "text/plain", ByteBufUtil.writeAscii(ctx.alloc(), text));
    }

    static void bytes(ChannelHandlerContext ctx, String type, ByteBuf body) {
        FullHttpResponse response = response(HttpResponseStatus.OK, body);
        response.headers().set(HttpHeaderNames.CONTENT_TYPE, type);
        ctx.writeAndFlush(response);
    }

    private static FullHttpResponse response(HttpResponseStatus status, ByteBuf body) {
        FullHttpResponse response =
                new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, status, body);
        response.headers().setInt(HttpHeaderNames.CONTENT_LENGTH, body.readableBytes());
        return response;
    }
}
