package prony;

import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.ssl.ApplicationProtocolConfig;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import java.io.File;
import java.util.Map;
import javax.net.ssl.SSLException;

/** What is spoken: HTTP/1.1 in the clear unless the environment names something else. */
final class Protocol {

    private Protocol() {
    }

    /** Makes the handlers of a connection that speaks what the environment names. */
    static ChannelInitializer<SocketChannel> pipeline(Map<String, Route> routes)
            throws SSLException {
        String protocol = System.getenv().getOrDefault("PROTOCOL", "http");
        return switch (protocol) {
            case "http" -> new ServicePipeline(routes);
            case "https" -> over(secure("http/1.1"), new ServicePipeline(routes));
            case "h2" -> over(secure("h2"), new Streams(routes));
            case "h2c" -> new Streams(routes);
            default -> throw new IllegalArgumentException(
                    "PROTOCOL is http, https, h2 or h2c: " + protocol);
        };
    }

    private static SslContext secure(String protocol) throws SSLException {
        File certificate = new File(System.getenv("TLS_CERT"));
        return SslContextBuilder.forServer(certificate, new File(System.getenv("TLS_KEY")))
                .applicationProtocolConfig(new ApplicationProtocolConfig(
                        ApplicationProtocolConfig.Protocol.ALPN,
                        ApplicationProtocolConfig.SelectorFailureBehavior.NO_ADVERTISE,
                        ApplicationProtocolConfig.SelectedListenerFailureBehavior.ACCEPT,
                        protocol))
                .build();
    }

    private static ChannelInitializer<SocketChannel> over(
            SslContext context, ChannelInitializer<SocketChannel> spoken) {
        return new ChannelInitializer<>() {
            @Override
            protected void initChannel(SocketChannel channel) {
                channel.pipeline().addLast(context.newHandler(channel.alloc()), spoken);
            }
        };
    }

    /** HTTP/2, each stream of which is a channel of its own. */
    private static final class Streams extends ChannelInitializer<SocketChannel> {

        private final Map<String, Route> routes;

        Streams(Map<String, Route> routes) {
            this.routes = routes;
        }

        @Override
        protected void initChannel(SocketChannel channel) {
            ChannelPipeline pipeline = channel.pipeline();
            pipeline.addLast(Http2FrameCodecBuilder.forServer().build());
            pipeline.addLast(new Http2MultiplexHandler(new StreamPipeline(routes)));
        }
    }
}
