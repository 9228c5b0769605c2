package prony;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.quarkus.runtime.Startup;
import io.smallrye.mutiny.Uni;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpServerRequest;
import jakarta.inject.Singleton;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.Set;
import java.util.regex.Pattern;
import org.eclipse.microprofile.config.inject.ConfigProperty;
import org.jboss.resteasy.reactive.RestResponse;

/** The contract hello: waits as the mode does. The cache is filled before the port opens. */
@Startup
@Singleton
class Hello {

    private static final Set<String> MODES = Set.of("platform", "virtual", "reactive");
    private static final int ENTRIES = 50_000;
    private static final int MAX_SLEEP_MILLIS = 60_000;
    private static final Pattern SLEEP = Pattern.compile("[0-9]{1,2}(\\.[0-9]{1,3})?");

    private final String mode;
    private final Vertx vertx;
    private final Requests requests;
    private final Cache<String, String> cache = filledCache();

    Hello(@ConfigProperty(name = "prony.mode") String mode, Vertx vertx) {
        if (!MODES.contains(mode)) {
            throw new IllegalArgumentException("MODE is platform, virtual or reactive: " + mode);
        }
        this.mode = mode;
        this.requests = new Requests("/hello/" + mode);
        this.vertx = vertx;
    }

    RestResponse<String> blocking(HttpServerRequest request) throws InterruptedException {
        requests.count();
        String log = Basics.parameter(request, "log", "false");
        OptionalInt millis = sleepMillis(Basics.parameter(request, "sleep", "0"));
        if (millis.isEmpty() || !isBoolean(log)) {
            return RestResponse.status(RestResponse.Status.BAD_REQUEST);
        }
        String key = Basics.parameter(request, "key", "1");
        if (millis.getAsInt() > 0) {
            Thread.sleep(millis.getAsInt());
        }
        return greeting(key, log);
    }

    Uni<RestResponse<String>> reactive(HttpServerRequest request) {
        requests.count();
        String log = Basics.parameter(request, "log", "false");
        OptionalInt millis = sleepMillis(Basics.parameter(request, "sleep", "0"));
        if (millis.isEmpty() || !isBoolean(log)) {
            return Uni.createFrom().item(RestResponse.status(RestResponse.Status.BAD_REQUEST));
        }
        String key = Basics.parameter(request, "key", "1");
        if (millis.getAsInt() == 0) {
            return Uni.createFrom().item(() -> greeting(key, log));
        }
        // Mutiny's own delay would end on a worker thread; this timer is that of the event loop.
        return Uni.createFrom().emitter(waiting ->
                vertx.setTimer(millis.getAsInt(), timer -> waiting.complete(greeting(key, log))));
    }

    private RestResponse<String> greeting(String key, String log) {
        if (log.equals("true")) {
            System.out.println("hello mode=" + mode + " key=" + key + " thread=" + threadName());
        }
        String value = cache.getIfPresent(key);
        return value == null
                ? RestResponse.notFound()
                : RestResponse.ok("Hello from REST " + value);
    }

    private static boolean isBoolean(String text) {
        return text.equals("true") || text.equals("false");
    }

    private static OptionalInt sleepMillis(String seconds) {
        if (!SLEEP.matcher(seconds).matches()) {
            return OptionalInt.empty();
        }
        int millis = new BigDecimal(seconds).movePointRight(3).intValueExact();
        return millis <= MAX_SLEEP_MILLIS ? OptionalInt.of(millis) : OptionalInt.empty();
    }

    private static String threadName() {
        Thread thread = Thread.currentThread();
        // Only the text of a virtual thread says that it is one, and names its carrier.
        return thread.isVirtual() ? thread.toString() : thread.getName();
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
