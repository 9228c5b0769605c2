package prony;

import io.vertx.ext.web.RoutingContext;
import java.math.BigDecimal;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/** The contract compute: JSON by the Jackson of Vert.x, made anew on every request. */
final class Compute {

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

    private Compute() {
    }

    static void data(RoutingContext ctx) {
        ctx.json(CATALOGUE);
    }

    static void concat(RoutingContext ctx) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        StringBuilder text = new StringBuilder(CONCAT_LENGTH);
        for (int i = 0; i < CONCAT_LENGTH; i++) {
            text.append(LETTERS.charAt(random.nextInt(LETTERS.length())));
        }
        ctx.json(new Concat(text.toString()));
    }

    static void fibonacci(RoutingContext ctx) {
        ctx.json(new Fibonacci(fibonacci(FIBONACCI_OF)));
    }

    private static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }
}
