package prony;

import io.vertx.core.DeploymentOptions;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Vert.x behind the three contracts: as many verticles as event loops, and nothing blocks. */
public final class Main {

    static final String MODE = "reactive";
    private static final int START_SECONDS = 30;
    // One for the requests under way (Server), and a little to close the event loops.
    private static final int STOP_MILLIS = 1_500;

    private Main() {
    }

    /** Starts the server on HOST and PORT, with CPUS event loops. */
    public static void main(String[] args) throws TimeoutException {
        String host = environment("HOST", "127.0.0.1");
        int port = Integer.parseInt(environment("PORT", "8080"));
        int cpus = Integer.parseInt(environment("CPUS", "1"));

        Vertx vertx = Vertx.vertx(new VertxOptions()
                .setPreferNativeTransport(true)
                .setEventLoopPoolSize(cpus));
        try {
            deploy(vertx, host, port, cpus);
        } catch (RuntimeException | TimeoutException e) {
            // The event loops would keep the process alive without a server.
            vertx.close();
            throw e;
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(vertx)));
        System.out.println("listening on " + host + ":" + port + ", mode " + MODE);
    }

    private static void deploy(Vertx vertx, String host, int port, int instances)
            throws TimeoutException {
        if (!vertx.isNativeTransportEnabled()) {
            // Falling back to NIO in silence would put another transport's numbers under this name.
            throw new IllegalStateException(
                    "no epoll transport", vertx.unavailableNativeTransportCause());
        }
        // One cache for all verticles, complete before the port opens.
        Hello hello = new Hello(MODE);
        vertx.deployVerticle(
                        () -> new Server(host, port, hello),
                        new DeploymentOptions().setInstances(instances))
                .await(START_SECONDS, TimeUnit.SECONDS);
    }

    private static void stop(Vertx vertx) {
        try {
            vertx.close().await(STOP_MILLIS, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            System.err.println("stopping with requests under way: " + e.getMessage());
        }
    }

    private static String environment(String name, String absent) {
        return System.getenv().getOrDefault(name, absent);
    }
}
