package prony;

import io.javalin.Javalin;
import io.javalin.compression.CompressionStrategy;
import io.javalin.config.JavalinConfig;
import io.javalin.config.RoutesConfig;
import io.javalin.http.HttpResponseException;
import io.javalin.http.HttpStatus;
import io.javalin.json.JavalinJackson3;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/** Javalin behind the three contracts, on its own Jetty, with one thread pool per mode. */
public final class Main {

    // Jetty leaves the backlog to the JDK, whose 50 would turn connections away in a burst.
    private static final int BACKLOG = 1024;
    // Jetty then adds up to a second for interrupted threads, and the contract allows two in all.
    private static final int STOP_MILLIS = 500;

    private Main() {
    }

    /** Starts the server on HOST and PORT, with the threads of MODE. */
    public static void main(String[] args) {
        String mode = environment("MODE", "platform");
        String host = environment("HOST", "127.0.0.1");
        int port = Integer.parseInt(environment("PORT", "8080"));

        // The handlers, and with them the cache, are complete before the port opens.
        Javalin app = Javalin.create(config -> {
            configure(config, virtual(mode));
            config.jetty.addConnector((server, http) -> connector(server, http, host, port));
            routes(config.routes, mode);
        });
        Runtime.getRuntime().addShutdownHook(new Thread(app::stop));
        app.start();
        System.out.println("listening on " + host + ":" + port + ", mode " + mode);
    }

    private static void configure(JavalinConfig config, boolean virtual) {
        config.concurrency.useVirtualThreads = virtual;
        config.jsonMapper(new JavalinJackson3(null, virtual));
        config.http.compressionStrategy = CompressionStrategy.NONE;
        config.http.maxRequestSize = Basics.MAX_BODY;
        config.router.ignoreTrailingSlashes = false;
        config.startup.showJavalinBanner = false;
        // Its advice to upgrade depends on the date, and the version is pinned anyway.
        config.startup.showOldJavalinVersionWarning = false;
        config.jetty.modifyServer(server -> server.setStopTimeout(STOP_MILLIS));
    }

    private static ServerConnector connector(
            Server server, HttpConfiguration http, String host, int port) {
        ServerConnector connector =
                new ServerConnector(server, new HttpConnectionFactory(http));
        connector.setHost(host);
        connector.setPort(port);
        connector.setAcceptQueueSize(BACKLOG);
        return connector;
    }

    private static void routes(RoutesConfig routes, String mode) {
        routes.get("/health", Basics::health);
        routes.get("/", Basics::root);
        routes.get("/no-read", Basics::noRead);
        routes.get("/hello", Basics::hello);
        routes.get("/file", Basics::file);
        routes.post("/load", Basics::load);
        routes.get("/hello/" + mode, new Hello(mode));
        routes.get("/data", Compute::data);
        routes.get("/concat", Compute::concat);
        routes.get("/fibonacci", Compute::fibonacci);
        // Javalin would answer 200 to HEAD wherever there is a GET.
        routes.head("*", ctx -> ctx.status(HttpStatus.NOT_FOUND));
        // Javalin throws these for no route and for a body too large, and words them in the body.
        routes.exception(HttpResponseException.class, (e, ctx) -> ctx.status(e.getStatus()));
    }

    private static boolean virtual(String mode) {
        return switch (mode) {
            case "platform" -> false;
            case "virtual" -> true;
            default -> throw new IllegalArgumentException("MODE is platform or virtual: " + mode);
        };
    }

    private static String environment(String name, String absent) {
        return System.getenv().getOrDefault(name, absent);
    }
}
