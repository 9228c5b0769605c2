package prony;

import io.fusionauth.http.server.HTTPHandler;
import io.fusionauth.http.server.HTTPListenerConfiguration;
import io.fusionauth.http.server.HTTPServer;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.Map;

/** FusionAuth's java-http behind the three contracts: handlers block their virtual thread. */
public final class Main {

    private static final String MODE = "virtual";
    // java-http's default of 250 would turn connections away in a burst.
    private static final int BACKLOG = 1024;
    // Its default of 10 s would cut off the longest sleep, 60 s.
    private static final Duration PROCESSING_TIMEOUT = Duration.ofSeconds(70);
    private static final Duration STOP_TIMEOUT = Duration.ofSeconds(1);
    private static final int NO_MINIMUM = -1;

    private Main() {
    }

    /** Starts the server on HOST and PORT. */
    public static void main(String[] args) throws UnknownHostException {
        String host = environment("HOST", "127.0.0.1");
        int port = Integer.parseInt(environment("PORT", "8080"));

        HTTPServer server = new HTTPServer()
                // The handlers, and with them the cache, are complete before the port opens.
                .withHandler(new Router(routes()))
                .withListener(new HTTPListenerConfiguration(InetAddress.getByName(host), port))
                .withCompressByDefault(false)
                .withMaxPendingSocketConnections(BACKLOG)
                .withProcessingTimeoutDuration(PROCESSING_TIMEOUT)
                // The minima are averages of a connection's whole life and would close one that
                // is used seldom: 16 KiB/s is about a hundred small requests a second.
                .withMinimumReadThroughput(NO_MINIMUM)
                .withMinimumWriteThroughput(NO_MINIMUM)
                .withShutdownDuration(STOP_TIMEOUT);
        Runtime.getRuntime().addShutdownHook(new Thread(server::close));
        server.start();
        System.out.println("listening on " + host + ":" + port + ", mode " + MODE);
    }

    private static Map<String, HTTPHandler> routes() {
        return Map.of(
                "GET /health", Basics::health,
                "GET /", Basics::root,
                "GET /no-read", Basics::noRead,
                "GET /hello", Basics::hello,
                "GET /file", Basics::file,
                "POST /load", Basics::load,
                "GET /hello/" + MODE, new Hello(MODE),
                "GET /data", Compute::data,
                "GET /concat", Compute::concat,
                "GET /fibonacci", Compute::fibonacci);
    }

    private static String environment(String name, String absent) {
        return System.getenv().getOrDefault(name, absent);
    }
}
