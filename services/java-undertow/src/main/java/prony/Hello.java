package prony;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.regex.Pattern;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The contract hello: waits by blocking the thread that Undertow's executor gave the request. */
@RestController
class Hello {

    private static final int ENTRIES = 50_000;
    private static final int MAX_SLEEP_MILLIS = 60_000;
    private static final Pattern SLEEP = Pattern.compile("[0-9]{1,2}(\\.[0-9]{1,3})?");

    private final String mode;
    private final Requests requests;
    private final Cache<String, String> cache = filledCache();

    Hello(@Value("${prony.mode}") String mode) {
        if (!(mode.equals("platform") || mode.equals("virtual"))) {
            throw new IllegalArgumentException("MODE is platform or virtual: " + mode);
        }
        this.mode = mode;
        this.requests = new Requests("/hello/" + mode);
    }

    // The defaults are not in the annotations: Spring would put them for an empty value as well.
    @GetMapping("/hello/${prony.mode}")
    ResponseEntity<String> hello(
            @RequestParam(required = false) String key,
            @RequestParam(required = false) String sleep,
            @RequestParam(required = false) String log)
            throws InterruptedException {
        requests.count();
        OptionalInt millis = sleepMillis(Objects.requireNonNullElse(sleep, "0"));
        String logged = Objects.requireNonNullElse(log, "false");
        if (millis.isEmpty() || !(logged.equals("true") || logged.equals("false"))) {
            return ResponseEntity.badRequest().build();
        }
        if (millis.getAsInt() > 0) {
            Thread.sleep(millis.getAsInt());
        }
        String wanted = Objects.requireNonNullElse(key, "1");
        if (logged.equals("true")) {
            System.out.println("hello mode=" + mode + " key=" + wanted + " thread=" + threadName());
        }
        return greeting(cache.getIfPresent(wanted));
    }

    private static ResponseEntity<String> greeting(String value) {
        if (value == null) {
            return ResponseEntity.notFound().build();
        }
        return ResponseEntity.ok()
                .contentType(MediaType.TEXT_PLAIN)
                .body("Hello from REST " + value);
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
