package prony;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.regex.Pattern;

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
    public void answer(HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        OptionalInt millis = sleepMillis(value(request, "sleep", "0"));
        String log = value(request, "log", "false");
        if (millis.isEmpty() || !(log.equals("true") || log.equals("false"))) {
            Answer.empty(response, HttpServletResponse.SC_BAD_REQUEST);
            return;
        }
        String key = value(request, "key", "1");
        sleep(millis.getAsInt());
        if (log.equals("true")) {
            System.out.println("hello mode=" + mode + " key=" + key + " thread=" + threadName());
        }
        greet(response, cache.getIfPresent(key));
    }

    private static void greet(HttpServletResponse response, String value)
            throws IOException {
        if (value == null) {
            Answer.empty(response, HttpServletResponse.SC_NOT_FOUND);
            return;
        }
        byte[] greeting = ("Hello from REST " + value).getBytes(StandardCharsets.US_ASCII);
        Answer.bytes(response, "text/plain", greeting);
    }

    private static String value(HttpServletRequest request, String name, String absent) {
        String value = request.getParameter(name);
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
