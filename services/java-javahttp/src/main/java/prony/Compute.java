package prony;

import io.fusionauth.http.server.HTTPRequest;
import io.fusionauth.http.server.HTTPResponse;
import java.io.IOException;
import java.math.BigDecimal;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
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

    static void data(HTTPRequest request, HTTPResponse response) throws IOException {
        json(response, CATALOGUE);
    }

    static void concat(HTTPRequest request, HTTPResponse response) throws IOException {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        StringBuilder text = new StringBuilder(CONCAT_LENGTH);
        for (int i = 0; i < CONCAT_LENGTH; i++) {
            text.append(LETTERS.charAt(random.nextInt(LETTERS.length())));
        }
        json(response, new Concat(text.toString()));
    }

    static void fibonacci(HTTPRequest request, HTTPResponse response) throws IOException {
        json(response, new Fibonacci(fibonacci(FIBONACCI_OF)));
    }

    private static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    private static void json(HTTPResponse response, Object value) throws IOException {
        Answer.bytes(response, "application/json", MAPPER.writeValueAsBytes(value));
    }
}
