package prony;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.regex.Pattern;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.Fields;

/** The contract hello: waits by blocking the thread that the mode's pool gave it. */
final class Hello implements Route.Action {

    private static final int ENTRIES = 50_000;
    private static final int MAX_SLEEP_MILLIS = 60_000;
    private static final Pattern SLEEP = Pattern.compile("[0-9]{1,2}(\\.[0-9]{1,3})?");

    private final String mode;
    private final Cache<String, String> cache = filledCache();

    Hello(String mode) {
        this.mode = mode;
    }

    @Override
    public void answer(Request request, Response response, Callback callback) throws IOException {
        Fields query = Request.extractQueryParameters(request);
        OptionalInt millis = sleepMillis(value(query, "sleep", "0"));
        String log = value(query, "log", "false");
        if (millis.isEmpty() || !(log.equals("true") || log.equals("false"))) {
            Answer.empty(response, callback, 400);
            return;
        }
        String key = value(query, "key", "1");
        sleep(millis.getAsInt());
        if (log.equals("true")) {
            System.out.println("hello mode=" + mode + " key=" + key + " thread=" + threadName());
        }
        greet(response, callback, cache.getIfPresent(key));
    }

    private static void greet(Response response, Callback callback, String value)
            throws IOException {
        if (value == null) {
            Answer.empty(response, callback, 404);
            return;
        }
        byte[] greeting = ("Hello from REST " + value).getBytes(StandardCharsets.US_ASCII);
        Answer.bytes(response, callback, "text/plain", greeting);
    }

    private static String value(Fields query, String name, String absent) {
        String value = query.getValue(name);
        return value == null ? absent : value;
    }

    private static OptionalInt sleepMillis(String seconds) {
        if (!SLEEP.matcher(seconds).matches()) {
            return OptionalInt.empty();
        }
        int millis = new BigDecimal(seconds).movePointRight(3).intValueExact();
        return millis <= MAX_SLEEP_MILLIS ? OptionalInt.of(millis) : OptionalInt.empty();
    }

    private static void sleep(int millis) throws IOException {
        if (millis == 0) {
            return;
        }
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("interrupted while sleeping");
        }
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
