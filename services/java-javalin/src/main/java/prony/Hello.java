package prony;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.javalin.http.Context;
import io.javalin.http.Handler;
import io.javalin.http.HttpStatus;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.regex.Pattern;

/** The contract hello: waits by blocking the thread that the mode's pool gave it. */
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
    public void handle(Context ctx) throws InterruptedException {
        OptionalInt millis = sleepMillis(parameter(ctx, "sleep", "0"));
        String log = parameter(ctx, "log", "false");
        if (millis.isEmpty() || !(log.equals("true") || log.equals("false"))) {
            ctx.status(HttpStatus.BAD_REQUEST);
            return;
        }
        String key = parameter(ctx, "key", "1");
        if (millis.getAsInt() > 0) {
            Thread.sleep(millis.getAsInt());
        }
        if (log.equals("true")) {
            System.out.println("hello mode=" + mode + " key=" + key + " thread=" + threadName());
        }
        String value = cache.getIfPresent(key);
        if (value == null) {
            ctx.status(HttpStatus.NOT_FOUND);
            return;
        }
        ctx.result("Hello from REST " + value);
    }

    private static String parameter(Context ctx, String name, String absent) {
        String value = ctx.queryParam(name);
        return value == null ? absent : value;
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
        // The text of a virtual thread says what it is, its name and its carrier.
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
