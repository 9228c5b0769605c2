package prony;

import io.helidon.webserver.WebServer;
import io.helidon.webserver.WebServerConfig;
import io.helidon.webserver.http.HttpRouting;

/** Helidon's web server behind the three contracts: handlers block their virtual thread. */
public final class Main {

    private static final String MODE = "virtual";

    private Main() {
    }

    /** Starts the server on HOST and PORT. */
    public static void main(String[] args) {
        String host = environment("HOST", "127.0.0.1");
        int port = Integer.parseInt(environment("PORT", "8080"));

        // The routes, and with them the cache, are complete before the port opens.
        Hello hello = new Hello(MODE);
        WebServerConfig.Builder server = WebServer.builder()
                .host(host)
                .port(port)
                // Off by default, and then an answer in two writes waits for an ACK, 40 ms.
                .connectionOptions(options -> options.tcpNoDelay(true))
                .routing(routing -> routes(routing, hello));
        Protocol.set(server, hello);
        server.build().start();
        System.out.println("listening on " + host + ":" + port + ", mode " + MODE);
    }

    private static void routes(HttpRouting.Builder routing, Hello hello) {
        routing.get("/health", Basics::empty)
                .get("/", Basics::root)
                .get("/no-read", Basics::empty)
                .get("/hello", Basics::hello)
                .get("/file", Basics::file)
                .post("/load", Basics::load)
                .get("/hello/" + MODE, hello)
                .get("/data", Compute::data)
                .get("/concat", Compute::concat)
                .get("/fibonacci", Compute::fibonacci)
                .any(Basics::notFound);
    }

    private static String environment(String name, String absent) {
        return System.getenv().getOrDefault(name, absent);
    }
}
