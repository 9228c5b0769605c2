package prony;

import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;

/** The HTTP server of the JDK behind the three contracts, with one executor per mode. */
public final class Main {

    // The JDK's default of 50 would turn connections away in a burst.
    private static final int BACKLOG = 1024;
    // As many as Tomcat and Jetty have by default: the pool that a Java team would run.
    private static final int POOL_THREADS = 200;
    private static final int STOP_SECONDS = 1;

    private Main() {
    }

    /** Starts the server on HOST and PORT, with the threads of MODE. */
    public static void main(String[] args) throws IOException {
        String mode = environment("MODE", "platform");
        String host = environment("HOST", "127.0.0.1");
        int port = Integer.parseInt(environment("PORT", "8080"));

        Executor executor = executor(mode);
        // The handlers, and with them the cache, are complete before the port opens.
        Router router = new Router(routes(mode));
        HttpServer server =
                HttpServer.create(new InetSocketAddress(host, port), BACKLOG, "/", router);
        server.setExecutor(executor);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> server.stop(STOP_SECONDS)));
        server.start();
        System.out.println("listening on " + host + ":" + port + ", mode " + mode);
    }

    private static Executor executor(String mode) {
        return switch (mode) {
            case "platform" -> Executors.newFixedThreadPool(POOL_THREADS);
            case "virtual" -> Executors.newVirtualThreadPerTaskExecutor();
            default -> throw new IllegalArgumentException("MODE is platform or virtual: " + mode);
        };
    }

    private static Map<String, HttpHandler> routes(String mode) {
        return Map.of(
                "GET /health", Basics::health,
                "GET /", Basics::root,
                "GET /no-read", Basics::noRead,
                "GET /hello", Basics::hello,
                "GET /file", Basics::file,
                "POST /load", Basics::load,
                "GET /hello/" + mode, new Hello(mode),
                "GET /data", Compute::data,
                "GET /concat", Compute::concat,
                "GET /fibonacci", Compute::fibonacci);
    }

    private static String environment(String name, String absent) {
        return System.getenv().getOrDefault(name, absent);
    }
}
