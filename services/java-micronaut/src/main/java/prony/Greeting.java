package prony;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.micronaut.context.annotation.Context;
import io.micronaut.context.annotation.Value;
import io.micronaut.http.HttpRequest;
import io.micronaut.http.HttpResponse;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.Optional;
import java.util.regex.Pattern;

/** What both controllers of the contract hello do: read the parameters, log, look up. */
@Context // Made, and the cache with it, before the port opens.
class Greeting {

    /** One request's parameters, checked. */
    record Wanted(String key, int sleepMillis, boolean log) {
    }

    private static final int ENTRIES = 50_000;
    private static final int MAX_SLEEP_MILLIS = 60_000;
    private static final Pattern SLEEP = Pattern.compile("[0-9]{1,2}(\\.[0-9]{1,3})?");

    private final String mode;
    private final Cache<String, String> cache = filledCache();

    Greeting(@Value("${prony.mode}") String mode) {
        this.mode = mode;
    }

    /** Nothing, if one of them is not as the contract has it. */
    static Optional<Wanted> wanted(HttpRequest<?> request) {
        String sleep = Basics.parameter(request, "sleep", "0");
        if (!SLEEP.matcher(sleep).matches()) {
            return Optional.empty();
        }
        int millis = new BigDecimal(sleep).movePointRight(3).intValueExact();
        String log = Basics.parameter(request, "log", "false");
        if (millis > MAX_SLEEP_MILLIS || !(log.equals("true") || log.equals("false"))) {
            return Optional.empty();
        }
        String key = Basics.parameter(request, "key", "1");
        return Optional.of(new Wanted(key, millis, log.equals("true")));
    }

    HttpResponse<?> answer(Wanted wanted) {
        if (wanted.log) {
            String thread = threadName();
            System.out.println("hello mode=" + mode + " key=" + wanted.key + " thread=" + thread);
        }
        String value = cache.getIfPresent(wanted.key);
        if (value == null) {
            return HttpResponse.notFound();
        }
        return HttpResponse.ok("Hello from REST " + value);
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
