package prony;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/** The contract hello: waits by a timer of the connection's event loop. */
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
    public void answer(ChannelHandlerContext ctx, HttpRequest request, QueryStringDecoder uri) {
        OptionalInt millis = sleepMillis(Route.parameter(uri, "sleep", "0"));
        String log = Route.parameter(uri, "log", "false");
        if (millis.isEmpty() || !(log.equals("true") || log.equals("false"))) {
            Answer.empty(ctx, HttpResponseStatus.BAD_REQUEST);
            return;
        }
        String key = Route.parameter(uri, "key", "1");
        boolean logged = log.equals("true");
        if (millis.getAsInt() == 0) {
            greet(ctx, key, logged);
        } else {
            sleep(ctx.channel(), millis.getAsInt(), () -> greet(ctx, key, logged));
        }
    }

    /** Reads nothing meanwhile, so that no pipelined request overtakes the one that sleeps. */
    private static void sleep(Channel channel, int millis, Runnable then) {
        channel.config().setAutoRead(false);
        Runnable wake = () -> {
            then.run();
            channel.config().setAutoRead(true);
        };
        channel.eventLoop().schedule(wake, millis, TimeUnit.MILLISECONDS);
    }

    private void greet(ChannelHandlerContext ctx, String key, boolean logged) {
        if (logged) {
            String thread = Thread.currentThread().getName();
            System.out.println("hello mode=" + mode + " key=" + key + " thread=" + thread);
        }
        String value = cache.getIfPresent(key);
        if (value == null) {
            Answer.empty(ctx, HttpResponseStatus.NOT_FOUND);
        } else {
            Answer.text(ctx, "Hello from REST " + value);
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
