package prony;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.PathParam;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import jakarta.ws.rs.core.Response;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.regex.Pattern;

/** The contract hello: waits by blocking the thread that Jetty gave the request. */
@Path("/hello/{mode}")
public class Hello {

    private static final int ENTRIES = 50_000;
    private static final int MAX_SLEEP_MILLIS = 60_000;
    private static final Pattern SLEEP = Pattern.compile("[0-9]{1,2}(\\.[0-9]{1,3})?");

    private final String mode;
    private final Cache<String, String> cache = filledCache();

    Hello(String mode) {
        this.mode = mode;
    }

    /** Answers the value of a key, after a sleep and a line in the log, if requested. */
    @GET
    public Response hello(
            @PathParam("mode") String asked,
            @QueryParam("key") @DefaultValue("1") String key,
            @QueryParam("sleep") @DefaultValue("0") String sleep,
            @QueryParam("log") @DefaultValue("false") String log)
            throws InterruptedException {
        if (!asked.equals(mode)) {
            return Response.status(Response.Status.NOT_FOUND).build();
        }
        OptionalInt millis = sleepMillis(sleep);
        if (millis.isEmpty() || !(log.equals("true") || log.equals("false"))) {
            return Response.status(Response.Status.BAD_REQUEST).build();
        }
        if (millis.getAsInt() > 0) {
            Thread.sleep(millis.getAsInt());
        }
        if (log.equals("true")) {
            System.out.println("hello mode=" + mode + " key=" + key + " thread=" + threadName());
        }
        return greeting(cache.getIfPresent(key));
    }

    private static Response greeting(String value) {
        if (value == null) {
            return Response.status(Response.Status.NOT_FOUND).build();
        }
        return Response.ok("Hello from REST " + value, MediaType.TEXT_PLAIN_TYPE).build();
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
