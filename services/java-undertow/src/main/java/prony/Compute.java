package prony;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.math.BigDecimal;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The contract compute: JSON by Spring's own Jackson mapper, made anew on every request. */
@RestController
class Compute {

    // BigDecimal, because a price is written as it was given: 1, not 1.0.
    record Product(String id, String name, BigDecimal price, int weight) {
    }

    record Catalogue(List<Product> data) {
    }

    record Concat(String concat) {
    }

    record Fibonacci(int fibonacci) {
    }

    private static final Catalogue CATALOGUE = new Catalogue(List.of(
            new Product("prod3568", "Egg Whisk", new BigDecimal("3.99"), 150),
            new Product("prod7340", "Tea Cosy", new BigDecimal("5.99"), 100),
            new Product("prod8643", "Spatula", new BigDecimal("1"), 80)));

    private static final String LETTERS =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    private static final int CONCAT_LENGTH = 10_000;
    private static final int FIBONACCI_OF = 30;

    private final ObjectMapper mapper;

    Compute(ObjectMapper mapper) {
        this.mapper = mapper;
    }

    @GetMapping("/data")
    ResponseEntity<byte[]> data() throws JsonProcessingException {
        return json(CATALOGUE);
    }

    @GetMapping("/concat")
    ResponseEntity<byte[]> concat() throws JsonProcessingException {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        StringBuilder text = new StringBuilder(CONCAT_LENGTH);
        for (int i = 0; i < CONCAT_LENGTH; i++) {
            text.append(LETTERS.charAt(random.nextInt(LETTERS.length())));
        }
        return json(new Concat(text.toString()));
    }

    @GetMapping("/fibonacci")
    ResponseEntity<byte[]> fibonacci() throws JsonProcessingException {
        return json(new Fibonacci(fibonacci(FIBONACCI_OF)));
    }

    private static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    // Spring's JSON converter writes without a length, in chunks; the contract wants the length.
    private ResponseEntity<byte[]> json(Object value) throws JsonProcessingException {
        return ResponseEntity.ok()
                .contentType(MediaType.APPLICATION_JSON)
                .body(mapper.writeValueAsBytes(value));
    }
}
