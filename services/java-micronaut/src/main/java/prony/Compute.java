package prony;

import io.micronaut.http.annotation.Controller;
import io.micronaut.http.annotation.Get;
import io.micronaut.serde.annotation.Serdeable;
import java.math.BigDecimal;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/** The contract compute: JSON by Micronaut Serialization on Jackson, made anew on each request. */
@Controller
class Compute {

    // BigDecimal, because a price is written as it was given: 1, not 1.0.
    @Serdeable
    record Product(String id, String name, BigDecimal price, int weight) {
    }

    @Serdeable
    record Catalogue(List<Product> data) {
    }

    @Serdeable
    record Concat(String concat) {
    }

    @Serdeable
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

    @Get(uri = "/data", headRoute = false)
    Catalogue data() {
        return CATALOGUE;
    }

    @Get(uri = "/concat", headRoute = false)
    Concat concat() {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        StringBuilder text = new StringBuilder(CONCAT_LENGTH);
        for (int i = 0; i < CONCAT_LENGTH; i++) {
            text.append(LETTERS.charAt(random.nextInt(LETTERS.length())));
        }
        return new Concat(text.toString());
    }

    @Get(uri = "/fibonacci", headRoute = false)
    Fibonacci fibonacci() {
        return new Fibonacci(fibonacci(FIBONACCI_OF));
    }

    private static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }
}
