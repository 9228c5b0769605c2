package prony;

import static org.apache.pekko.http.javadsl.server.Directives.concat;
import static org.apache.pekko.http.javadsl.server.Directives.get;
import static org.apache.pekko.http.javadsl.server.Directives.mapResponse;
import static org.apache.pekko.http.javadsl.server.Directives.path;
import static org.apache.pekko.http.javadsl.server.Directives.pathSingleSlash;
import static org.apache.pekko.http.javadsl.server.Directives.post;
import static org.apache.pekko.http.javadsl.server.PathMatchers.segment;

import java.time.Duration;
import org.apache.pekko.actor.typed.ActorSystem;
import org.apache.pekko.actor.typed.javadsl.Behaviors;
import org.apache.pekko.http.javadsl.Http;
import org.apache.pekko.http.javadsl.model.HttpResponse;
import org.apache.pekko.http.javadsl.model.StatusCodes;
import org.apache.pekko.http.javadsl.server.Route;

/** Pekko HTTP behind the three contracts, by its routing DSL; nothing blocks. */
public final class Main {

    private static final String MODE = "reactive";
    // What is left after it is cut off, and the contract allows two seconds in all.
    private static final Duration GRACE = Duration.ofSeconds(1);

    private Main() {
    }

    /** Starts the server on HOST and PORT. */
    public static void main(String[] args) {
        String host = environment("HOST", "127.0.0.1");
        int port = Integer.parseInt(environment("PORT", "8080"));

        ActorSystem<Void> system = ActorSystem.create(Behaviors.empty(), "prony");
        // The routes, and with them the cache, are complete before the port opens.
        Route routes = withoutErrorTexts(routes(new Hello(MODE, system)));
        Http.get(system)
                .newServerAt(host, port)
                .bind(routes)
                .thenApply(binding -> binding.addToCoordinatedShutdown(GRACE, system))
                .whenComplete((binding, failure) -> {
                    if (failure == null) {
                        System.out.println(
                                "listening on " + host + ":" + port + ", mode " + MODE);
                    } else {
                        System.err.println("cannot listen: " + failure.getMessage());
                        // The dispatcher would keep the process alive without a server.
                        Runtime.getRuntime().halt(1);
                    }
                });
    }

    /** What a directive wraps is made anew for each request that it lets in: the path is first. */
    private static Route routes(Hello hello) {
        return concat(
                path("health", () -> get(Basics::health)),
                pathSingleSlash(() -> get(Basics::root)),
                path("no-read", () -> get(Basics::noRead)),
                path("hello", () -> get(Basics::hello)),
                path("file", () -> get(Basics::file)),
                path("load", () -> post(Basics::load)),
                path(segment("hello").slash(MODE), () -> get(hello::route)),
                path("data", () -> get(Compute::data)),
                path("concat", () -> get(Compute::concat)),
                path("fibonacci", () -> get(Compute::fibonacci)));
    }

    /** Pekko answers errors with a short text, and a wrong method with 405. */
    private static Route withoutErrorTexts(Route routes) {
        return mapResponse(Main::withoutErrorText, routes::seal);
    }

    private static HttpResponse withoutErrorText(HttpResponse response) {
        if (response.status().isSuccess()) {
            return response;
        }
        boolean method = response.status().equals(StatusCodes.METHOD_NOT_ALLOWED);
        return Basics.empty(method ? StatusCodes.NOT_FOUND : response.status());
    }

    private static String environment(String name, String absent) {
        return System.getenv().getOrDefault(name, absent);
    }
}
