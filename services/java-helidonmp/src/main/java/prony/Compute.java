package prony;

import jakarta.enterprise.context.ApplicationScoped;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.core.MediaType;
import java.math.BigDecimal;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/** The contract compute: JSON by Jersey's provider of JSON-B, made anew on every request. */
@ApplicationScoped
@Path("/")
@Produces(MediaType.APPLICATION_JSON)
public class Compute {

    // BigDecimal, because a price is written as it was given: 1, not 1.0.
    public record Product(String id, String name, BigDecimal price, int weight) {
    }

    public record Catalogue(List<Product> data) {
    }

    public record Concat(String concat) {
    }

    public record Fibonacci(int fibonacci) {
    }

    private static final Catalogue CATALOGUE = new Catalogue(List.of(
            new Product("prod3568", "Egg Whisk", new BigDecimal("3.99"), 150),
            new Product("prod7340", "Tea Cosy", new BigDecimal("5.99"), 100),
            new Product("prod8643", "Spatula", new BigDecimal("1"), 80)));

    private static final String LETTERS =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    private static final int CONCAT_LENGTH = 10_000;
    private static final int FIBONACCI_OF = 30;

    @GET
    @Path("data")
    public Catalogue data() {
        return CATALOGUE;
    }

    @GET
    @Path("concat")
    public Concat concat() {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        StringBuilder text = new StringBuilder(CONCAT_LENGTH);
        for (int i = 0; i < CONCAT_LENGTH; i++) {
            text.append(LETTERS.charAt(random.nextInt(LETTERS.length())));
        }
        return new Concat(text.toString());
    }

    @GET
    @Path("fibonacci")
    public Fibonacci fibonacci() {
        return new Fibonacci(fibonacci(FIBONACCI_OF));
    }

    private static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }
}
