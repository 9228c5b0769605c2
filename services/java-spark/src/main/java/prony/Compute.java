package prony;

import java.math.BigDecimal;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import spark.Request;
import spark.Response;
import tools.jackson.databind.json.JsonMapper;

/** The contract compute: JSON by Jackson, made anew on every request. */
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
    private static final JsonMapper MAPPER = JsonMapper.builder().build();

    private Compute() {
    }

    static Object data(Request request, Response response) {
        return json(response, CATALOGUE);
    }

    static Object concat(Request request, Response response) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        StringBuilder text = new StringBuilder(CONCAT_LENGTH);
        for (int i = 0; i < CONCAT_LENGTH; i++) {
            text.append(LETTERS.charAt(random.nextInt(LETTERS.length())));
        }
        return json(response, new Concat(text.toString()));
    }

    static Object fibonacci(Request request, Response response) {
        return json(response, new Fibonacci(fibonacci(FIBONACCI_OF)));
    }

    private static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    private static Object json(Response response, Object value) {
        return Answer.bytes(response, "application/json", MAPPER.writeValueAsBytes(value));
    }
}
