package prony;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.vertx.core.Handler;
import io.vertx.ext.web.RoutingContext;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.regex.Pattern;

/** The contract hello: waits by a timer of the connection's event loop. */
final class Hello implements Handler<RoutingContext> {

    private static final int ENTRIES = 50_000;
    private static final int MAX_SLEEP_MILLIS = 60_000;
    private static final Pattern SLEEP = Pattern.compile("[0-9]{1,2}(\\.[0-9]{1,3})?");

    private final String mode;
    private final Cache<String, String> cache = filledCache();

    Hello(String mode) {
        this.mode = mode;
    }

    @Override
    public void handle(RoutingContext ctx) {
        OptionalInt millis = sleepMillis(Basics.parameter(ctx, "sleep", "0"));
        String log = Basics.parameter(ctx, "log", "false");
        if (millis.isEmpty() || !(log.equals("true") || log.equals("false"))) {
            ctx.fail(400);
            return;
        }
        String key = Basics.parameter(ctx, "key", "1");
        boolean logged = log.equals("true");
        if (millis.getAsInt() == 0) {
            greet(ctx, key, logged);
        } else {
            ctx.vertx().setTimer(millis.getAsInt(), timer -> greet(ctx, key, logged));
        }
    }

    private void greet(RoutingContext ctx, String key, boolean logged) {
        if (logged) {
            String thread = Thread.currentThread().getName();
            System.out.println("hello mode=" + mode + " key=" + key + " thread=" + thread);
        }
        String value = cache.getIfPresent(key);
        if (value == null) {
            ctx.fail(404);
        } else {
            Basics.text(ctx, "Hello from REST " + value);
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
