package prony;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.socket.SocketChannel;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLException;

/** Netty behind the three contracts: the event loops run every handler, and nothing blocks. */
public final class Main {

    private static final String MODE = "reactive";
    private static final int BACKLOG = 1024;
    private static final int STOP_SECONDS = 1;

    private Main() {
    }

    /** Starts the server on HOST and PORT, with CPUS event loops. */
    public static void main(String[] args) throws InterruptedException, SSLException {
        String host = environment("HOST", "127.0.0.1");
        int port = Integer.parseInt(environment("PORT", "8080"));
        int cpus = Integer.parseInt(environment("CPUS", "1"));

        // Falling back to NIO in silence would put another transport's numbers under this name.
        Epoll.ensureAvailability();
        // The routes, and with them the cache, are complete before the port opens.
        ChannelInitializer<SocketChannel> pipeline = Protocol.pipeline(routes());
        EventLoopGroup loops =
                new MultiThreadIoEventLoopGroup(cpus, EpollIoHandler.newFactory());
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(loops)));
        try {
            Channel server = bind(loops, pipeline, host, port);
            System.out.println("listening on " + host + ":" + port + ", mode " + MODE);
            server.closeFuture().sync();
        } finally {
            stop(loops);
        }
    }

    private static Channel bind(
            EventLoopGroup loops, ChannelInitializer<SocketChannel> pipeline, String host, int port)
            throws InterruptedException {
        return new ServerBootstrap()
                .group(loops)
                .channel(EpollServerSocketChannel.class)
                .option(ChannelOption.SO_BACKLOG, BACKLOG)
                .childHandler(pipeline)
                .bind(host, port)
                .sync()
                .channel();
    }

    private static void stop(EventLoopGroup loops) {
        loops.shutdownGracefully(0, STOP_SECONDS, TimeUnit.SECONDS).awaitUninterruptibly();
    }

    private static Map<String, Route> routes() {
        return Map.of(
                "GET /health", Basics::empty,
                Router.ROOT, Basics::empty,
                "GET /no-read", Basics::empty,
                "GET /hello", Basics::hello,
                "GET /file", Basics::file,
                "POST " + LoadAggregator.PATH, Basics::load,
                "GET /hello/" + MODE, new Hello(MODE),
                "GET /data", Compute::data,
                "GET /concat", Compute::concat,
                "GET /fibonacci", Compute::fibonacci);
    }

    private static String environment(String name, String absent) {
        return System.getenv().getOrDefault(name, absent);
    }
}
