package prony;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.helidon.common.uri.UriQuery;
import io.helidon.http.Status;
import io.helidon.webserver.http.Handler;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.regex.Pattern;

/** The contract hello: waits by blocking the virtual thread of the connection. */
final class Hello implements Handler {

    private static final int ENTRIES = 50_000;
    private static final int MAX_SLEEP_MILLIS = 60_000;
    private static final Pattern SLEEP = Pattern.compile("[0-9]{1,2}(\\.[0-9]{1,3})?");

    private final String mode;
    private final Cache<String, String> cache = filledCache();

    Hello(String mode) {
        this.mode = mode;
    }

    @Override
    public void handle(ServerRequest request, ServerResponse response)
            throws InterruptedException {
        UriQuery query = request.query();
        OptionalInt millis = sleepMillis(query.first("sleep").orElse("0"));
        String log = query.first("log").orElse("false");
        if (millis.isEmpty() || !(log.equals("true") || log.equals("false"))) {
            Answer.empty(response, Status.BAD_REQUEST_400);
            return;
        }
        String key = query.first("key").orElse("1");
        if (millis.getAsInt() > 0) {
            Thread.sleep(millis.getAsInt());
        }
        if (log.equals("true")) {
            // Its name alone would not say that the thread is virtual, nor which carrier runs it.
            String thread = Thread.currentThread().toString();
            System.out.println("hello mode=" + mode + " key=" + key + " thread=" + thread);
        }
        greet(response, lookUp(key));
    }

    String lookUp(String key) {
        return cache.getIfPresent(key);
    }

    private static void greet(ServerResponse response, String value) {
        if (value == null) {
            Answer.empty(response, Status.NOT_FOUND_404);
        } else {
            Answer.text(response, "Hello from REST " + value);
        }
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
