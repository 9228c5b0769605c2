package prony;

import java.util.concurrent.Executors;
import org.eclipse.jetty.http.pathmap.ServletPathSpec;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.GracefulHandler;
import org.eclipse.jetty.server.handler.PathMappingsHandler;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/** Jetty's core handlers, without servlets, behind the three contracts. */
public final class Main {

    // Jetty leaves the backlog to the JDK, whose 50 would turn connections away in a burst.
    private static final int BACKLOG = 1024;
    // Jetty then adds up to a second for interrupted threads, and the contract allows two in all.
    private static final int STOP_MILLIS = 500;

    private Main() {
    }

    /** Starts the server on HOST and PORT, with the threads of MODE. */
    public static void main(String[] args) throws Exception {
        String mode = environment("MODE", "platform");
        String host = environment("HOST", "127.0.0.1");
        int port = Integer.parseInt(environment("PORT", "8080"));

        Server server = new Server(threadPool(mode));
        ServerConnector connector = Protocol.connector(server);
        connector.setHost(host);
        connector.setPort(port);
        connector.setAcceptQueueSize(BACKLOG);
        server.addConnector(connector);
        // The handlers, and with them the cache, are complete before the port opens.
        server.setHandler(new GracefulHandler(Protocol.handler(routes(mode))));
        // Jetty describes an error in a page of its own; the contract wants the status alone.
        server.setErrorHandler((request, response, callback) -> {
            callback.succeeded();
            return true;
        });
        server.setStopTimeout(STOP_MILLIS);
        server.setStopAtShutdown(true);
        server.start();
        System.out.println("listening on " + host + ":" + port + ", mode " + mode);
    }

    private static QueuedThreadPool threadPool(String mode) {
        QueuedThreadPool pool = new QueuedThreadPool();
        switch (mode) {
            case "platform" -> {}
            // Selectors stay on the pool; what may block, as handlers do, gets a virtual thread.
            case "virtual" -> pool.setVirtualThreadsExecutor(
                    Executors.newVirtualThreadPerTaskExecutor());
            default -> throw new IllegalArgumentException("MODE is platform or virtual: " + mode);
        }
        return pool;
    }

    private static Handler routes(String mode) {
        PathMappingsHandler routes = new PathMappingsHandler.NoContext();
        add(routes, "GET", "/health", Basics::health);
        // The servlet specification writes the root, and nothing below it, as an empty path.
        add(routes, "GET", "", Basics::root);
        add(routes, "GET", "/no-read", Basics::noRead);
        add(routes, "GET", "/hello", Basics::hello);
        add(routes, "GET", "/file", Basics::file);
        add(routes, "POST", "/load", Basics::load);
        add(routes, "GET", "/hello/" + mode, new Hello(mode));
        add(routes, "GET", "/data", Compute::data);
        add(routes, "GET", "/concat", Compute::concat);
        add(routes, "GET", "/fibonacci", Compute::fibonacci);
        return routes;
    }

    private static void add(
            PathMappingsHandler routes, String method, String path, Route.Action action) {
        routes.addMapping(new ServletPathSpec(path), new Route(method, action));
    }

    private static String environment(String name, String absent) {
        return System.getenv().getOrDefault(name, absent);
    }
}
