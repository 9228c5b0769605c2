package prony;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.regex.Pattern;
import spark.Request;
import spark.Response;
import spark.Route;

/** The contract hello: waits by blocking the thread that the mode's pool gave it. */
final class Hello implements Route {

    private static final int ENTRIES = 50_000;
    private static final int MAX_SLEEP_MILLIS = 60_000;
    private static final Pattern SLEEP = Pattern.compile("[0-9]{1,2}(\\.[0-9]{1,3})?");

    private final String mode;
    private final Cache<String, String> cache = filledCache();

    Hello(String mode) {
        this.mode = mode;
    }

    @Override
    public Object handle(Request request, Response response) throws InterruptedException {
        OptionalInt millis = sleepMillis(request.queryParamOrDefault("sleep", "0"));
        String log = request.queryParamOrDefault("log", "false");
        if (millis.isEmpty() || !(log.equals("true") || log.equals("false"))) {
            return Answer.empty(response, 400);
        }
        String key = request.queryParamOrDefault("key", "1");
        if (millis.getAsInt() > 0) {
            Thread.sleep(millis.getAsInt());
        }
        if (log.equals("true")) {
            System.out.println("hello mode=" + mode + " key=" + key + " thread=" + threadName());
        }
        String value = cache.getIfPresent(key);
        if (value == null) {
            return Answer.empty(response, 404);
        }
        byte[] greeting = ("Hello from REST " + value).getBytes(StandardCharsets.US_ASCII);
        return Answer.bytes(response, "text/plain", greeting);
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
        // A virtual thread has no name of its own; its text says what it is and its carrier.
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
