package prony;

import java.math.BigDecimal;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The contract compute: JSON by Spring's Jackson encoder, made anew on every request. */
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

    // An object alone is encoded as one buffer, so its answer has a length.
    @GetMapping("/data")
    Catalogue data() {
        return CATALOGUE;
    }

    @GetMapping("/concat")
    Concat concat() {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        StringBuilder text = new StringBuilder(CONCAT_LENGTH);
        for (int i = 0; i < CONCAT_LENGTH; i++) {
            text.append(LETTERS.charAt(random.nextInt(LETTERS.length())));
        }
        return new Concat(text.toString());
    }

    @GetMapping("/fibonacci")
    Fibonacci fibonacci() {
        return new Fibonacci(fibonacci(FIBONACCI_OF));
    }

    private static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }
}
