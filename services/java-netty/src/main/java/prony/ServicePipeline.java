package prony;

import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpServerExpectContinueHandler;
import io.netty.handler.codec.http.HttpServerKeepAliveHandler;
import io.netty.handler.flow.FlowControlHandler;
import java.util.Map;

/** The handlers of one connection, all Netty's own but the last two. */
final class ServicePipeline extends ChannelInitializer<SocketChannel> {

    private final Map<String, Route> routes;

    ServicePipeline(Map<String, Route> routes) {
        this.routes = routes;
    }

    @Override
    protected void initChannel(SocketChannel channel) {
        ChannelPipeline pipeline = channel.pipeline();
        pipeline.addLast(new HttpServerCodec());
        pipeline.addLast(new HttpServerKeepAliveHandler());
        // Holds back what was decoded already while a sleeping request has auto-read off.
        pipeline.addLast(new FlowControlHandler());
        pipeline.addLast(new HttpServerExpectContinueHandler());
        pipeline.addLast(new LoadAggregator());
        pipeline.addLast(new Router(routes));
    }
}
