package prony;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.regex.Pattern;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Mono;

/** The contract hello: waits by Reactor's timer and blocks no thread. */
@RestController
class Hello {

    private static final String MODE = "reactive";
    private static final int ENTRIES = 50_000;
    private static final int MAX_SLEEP_MILLIS = 60_000;
    private static final Pattern SLEEP = Pattern.compile("[0-9]{1,2}(\\.[0-9]{1,3})?");

    private final Requests requests = new Requests("/hello/" + MODE);
    private final Cache<String, String> cache = filledCache();

    // The defaults are not in the annotations: Spring would put them for an empty value as well.
    @GetMapping("/hello/" + MODE)
    Mono<ResponseEntity<String>> hello(
            @RequestParam(required = false) String key,
            @RequestParam(required = false) String sleep,
            @RequestParam(required = false) String log) {
        requests.count();
        OptionalInt millis = sleepMillis(Objects.requireNonNullElse(sleep, "0"));
        String logged = Objects.requireNonNullElse(log, "false");
        if (millis.isEmpty() || !(logged.equals("true") || logged.equals("false"))) {
            return Mono.just(ResponseEntity.badRequest().build());
        }
        String wanted = Objects.requireNonNullElse(key, "1");
        Mono<ResponseEntity<String>> greeting =
                Mono.fromSupplier(() -> greeting(wanted, logged.equals("true")));
        return millis.getAsInt() == 0
                ? greeting
                : Mono.delay(Duration.ofMillis(millis.getAsInt())).then(greeting);
    }

    private ResponseEntity<String> greeting(String key, boolean logged) {
        if (logged) {
            String thread = Thread.currentThread().getName();
            System.out.println("hello mode=" + MODE + " key=" + key + " thread=" + thread);
        }
        String value = cache.getIfPresent(key);
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
