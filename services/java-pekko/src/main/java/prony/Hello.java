package prony;

import static org.apache.pekko.http.javadsl.server.Directives.complete;
import static org.apache.pekko.http.javadsl.server.Directives.completeWithFuture;
import static org.apache.pekko.http.javadsl.server.Directives.parameterMap;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Pattern;
import org.apache.pekko.actor.ClassicActorSystemProvider;
import org.apache.pekko.http.javadsl.model.HttpResponse;
import org.apache.pekko.http.javadsl.model.StatusCodes;
import org.apache.pekko.http.javadsl.server.Route;
import org.apache.pekko.pattern.Patterns;

/** The contract hello: waits by a timer of the actor system's scheduler. */
final class Hello {

    private static final int ENTRIES = 50_000;
    private static final int MAX_SLEEP_MILLIS = 60_000;
    private static final Pattern SLEEP = Pattern.compile("[0-9]{1,2}(\\.[0-9]{1,3})?");

    private final String mode;
    private final ClassicActorSystemProvider system;
    private final Cache<String, String> cache = filledCache();

    Hello(String mode, ClassicActorSystemProvider system) {
        this.mode = mode;
        this.system = system;
    }

    Route route() {
        return parameterMap(this::route);
    }

    private Route route(Map<String, String> parameters) {
        OptionalInt millis = sleepMillis(parameters.getOrDefault("sleep", "0"));
        String log = parameters.getOrDefault("log", "false");
        if (millis.isEmpty() || !(log.equals("true") || log.equals("false"))) {
            return complete(Basics.empty(StatusCodes.BAD_REQUEST));
        }
        String key = parameters.getOrDefault("key", "1");
        boolean logged = log.equals("true");
        if (millis.getAsInt() == 0) {
            return complete(greeting(key, logged));
        }
        return completeWithFuture(Patterns.after(
                Duration.ofMillis(millis.getAsInt()),
                system,
                () -> CompletableFuture.completedStage(greeting(key, logged))));
    }

    private HttpResponse greeting(String key, boolean logged) {
        if (logged) {
            String thread = Thread.currentThread().getName();
            System.out.println("hello mode=" + mode + " key=" + key + " thread=" + thread);
        }
        String value = cache.getIfPresent(key);
        return value == null
                ? Basics.empty(StatusCodes.NOT_FOUND)
                : Basics.text("Hello from REST " + value);
    }

    private static OptionalInt sleepMillis(String seconds) {
        if (!SLEEP.matcher(seconds).matches()) {
            return OptionalInt.empty();
        }
        int millis = new BigDecimal(seconds).movePointRight(3).intValueExact();
        return millis <= MAX_SLEEP_MILLIS ? OptionalInt.of(millis) : OptionalInt.empty();
    }

    private static Cache<String, String> filledCache() {
        Cache<String, String> cache = Caffeine.newBuilder()
                .maximumSize(ENTRIES)
                .expireAfterWrite(Duration.ofDays(1))
                .build();
        for (int i = 1; i <= ENTRIES; i++) {
            cache.put(Integer.toString(i), "value-" + i);
        }
        return cache;
    }
}
