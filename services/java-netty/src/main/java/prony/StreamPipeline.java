package prony;

import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelPipeline;
import io.netty.handler.codec.http.HttpServerExpectContinueHandler;
import io.netty.handler.codec.http2.Http2StreamFrameToHttpObjectCodec;
import java.util.Map;

/** The handlers of one stream of HTTP/2: those of a connection behind another codec. */
final class StreamPipeline extends ChannelInitializer<Channel> {

    private final Map<String, Route> routes;

    StreamPipeline(Map<String, Route> routes) {
        this.routes = routes;
    }

    @Override
    protected void initChannel(Channel stream) {
        ChannelPipeline pipeline = stream.pipeline();
        pipeline.addLast(new Http2StreamFrameToHttpObjectCodec(true));
        pipeline.addLast(new HttpServerExpectContinueHandler());
        pipeline.addLast(new LoadAggregator());
        pipeline.addLast(new Router(routes));
    }
}
