package prony;

import java.util.concurrent.CountDownLatch;
import org.eclipse.jetty.http.BadMessageException;
import spark.Route;
import spark.Service;
import spark.embeddedserver.EmbeddedServers;
import spark.embeddedserver.jetty.EmbeddedJettyFactory;

/** Spark behind the three contracts, on its own Jetty, with one thread pool per mode. */
public final class Main {

    private Main() {
    }

    /** Starts the server on HOST and PORT, with the threads of MODE. */
    public static void main(String[] args) {
        String mode = environment("MODE", "platform");
        String host = environment("HOST", "127.0.0.1");
        int port = Integer.parseInt(environment("PORT", "8080"));

        CountDownLatch complete = new CountDownLatch(1);
        EmbeddedServers.add(
                EmbeddedServers.Identifiers.JETTY,
                new EmbeddedJettyFactory(new PreparedJetty(complete)));
        Service spark = Service.ignite().ipAddress(host).port(port);
        spark.useVThread(virtual(mode));
        try {
            routes(spark, mode);
        } finally {
            // Else Jetty's thread would wait for ever.
            complete.countDown();
        }
        spark.awaitInitialization();
        System.out.println("listening on " + host + ":" + port + ", mode " + mode);
    }

    private static void routes(Service spark, String mode) {
        spark.get("/health", Basics::health);
        spark.get("/", Basics::root);
        spark.get("/no-read", Basics::noRead);
        spark.get("/hello", Basics::hello);
        spark.get("/file", Basics::file);
        spark.post("/load", Basics::load);
        spark.get("/hello/" + mode, new Hello(mode));
        spark.get("/data", Compute::data);
        spark.get("/concat", Compute::concat);
        spark.get("/fibonacci", Compute::fibonacci);
        Route notFound = (request, response) -> Answer.empty(response, 404);
        // Spark would answer 200 to HEAD wherever there is a GET.
        spark.head("*", notFound);
        // Spark describes an error in a page of its own; the contract wants the status alone.
        spark.notFound(notFound);
        spark.internalServerError((request, response) -> Answer.empty(response, 500));
        // A broken percent sign in a query, which would be a 500.
        spark.exception(BadMessageException.class, (e, request, response) ->
                response.body(Answer.empty(response, e.getCode())));
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
