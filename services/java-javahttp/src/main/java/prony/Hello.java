package prony;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.fusionauth.http.server.HTTPHandler;
import io.fusionauth.http.server.HTTPRequest;
import io.fusionauth.http.server.HTTPResponse;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.regex.Pattern;

/** The contract hello: waits by blocking the virtual thread of its connection. */
final class Hello implements HTTPHandler {

    private static final int ENTRIES = 50_000;
    private static final int MAX_SLEEP_MILLIS = 60_000;
    private static final Pattern SLEEP = Pattern.compile("[0-9]{1,2}(\\.[0-9]{1,3})?");

    private final String mode;
    private final Cache<String, String> cache = filledCache();

    Hello(String mode) {
        this.mode = mode;
    }

    @Override
    public void handle(HTTPRequest request, HTTPResponse response) throws IOException {
        OptionalInt millis = sleepMillis(value(request, "sleep", "0"));
        String log = value(request, "log", "false");
        if (millis.isEmpty() || !(log.equals("true") || log.equals("false"))) {
            response.setStatus(400);
            return;
        }
        String key = value(request, "key", "1");
        sleep(millis.getAsInt());
        if (log.equals("true")) {
            System.out.println("hello mode=" + mode + " key=" + key + " thread="
                    + Thread.currentThread());
        }
        greet(response, cache.getIfPresent(key));
    }

    private static void greet(HTTPResponse response, String value) throws IOException {
        if (value == null) {
            response.setStatus(404);
            return;
        }
        byte[] greeting = ("Hello from REST " + value).getBytes(StandardCharsets.US_ASCII);
        Answer.bytes(response, "text/plain", greeting);
    }

    private static String value(HTTPRequest request, String name, String absent) {
        String value = request.getURLParameter(name);
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
