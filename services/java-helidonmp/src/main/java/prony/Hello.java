package prony;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import jakarta.ws.rs.core.Response;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.regex.Pattern;

/** The contract hello: waits by blocking the virtual thread of the connection. */
@ApplicationScoped
@Path("/hello/" + Hello.MODE)
public class Hello {

    static final String MODE = "virtual";

    private static final int ENTRIES = 50_000;
    private static final int MAX_SLEEP_MILLIS = 60_000;
    private static final Pattern SLEEP = Pattern.compile("[0-9]{1,2}(\\.[0-9]{1,3})?");
    // Static, for CDI makes the instance on the first request, after readiness.
    private static final Cache<String, String> CACHE = filledCache();

    /** Answers the value of a key, after a sleep and a line in the log, if requested. */
    @GET
    public Response hello(
            @QueryParam("key") @DefaultValue("1") String key,
            @QueryParam("sleep") @DefaultValue("0") String sleep,
            @QueryParam("log") @DefaultValue("false") String log)
            throws InterruptedException {
        OptionalInt millis = sleepMillis(sleep);
        if (millis.isEmpty() || !(log.equals("true") || log.equals("false"))) {
            return Response.status(Response.Status.BAD_REQUEST).build();
        }
        if (millis.getAsInt() > 0) {
            Thread.sleep(millis.getAsInt());
        }
        if (log.equals("true")) {
            // Its name alone would not say that the thread is virtual, nor which carrier runs it.
            String thread = Thread.currentThread().toString();
            System.out.println("hello mode=" + MODE + " key=" + key + " thread=" + thread);
        }
        return greeting(CACHE.getIfPresent(key));
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
