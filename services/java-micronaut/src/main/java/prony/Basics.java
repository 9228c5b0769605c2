package prony;

import io.micronaut.http.HttpRequest;
import io.micronaut.http.HttpResponse;
import io.micronaut.http.MediaType;
import io.micronaut.http.annotation.Body;
import io.micronaut.http.annotation.Consumes;
import io.micronaut.http.annotation.Controller;
import io.micronaut.http.annotation.Get;
import io.micronaut.http.annotation.Post;
import io.micronaut.http.annotation.Produces;
import jakarta.annotation.Nullable;
import java.util.Base64;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.regex.Pattern;

/** The contract http, and the health path. */
@Controller
@Consumes(MediaType.ALL)
class Basics {

    private static final String DEFAULT_SIZE = Integer.toString(1024 * 1024);
    private static final Pattern SIZE = Pattern.compile("[0-9]{1,8}");
    private static final byte[] NOTHING = {};

    // Micronaut gives the body of a GET in the future only; there is none where there is no body.
    @Get(uri = "/", headRoute = false)
    @Produces(MediaType.ALL)
    CompletionStage<HttpResponse<?>> root(@Nullable @Body CompletableFuture<byte[]> body) {
        return body == null
                ? CompletableFuture.completedStage(HttpResponse.ok())
                : body.thenApply(read -> HttpResponse.ok());
    }

    @Get(uri = "/health", headRoute = false)
    @Produces(MediaType.ALL)
    HttpResponse<?> health() {
        return HttpResponse.ok();
    }

    @Get(uri = "/no-read", headRoute = false)
    @Produces(MediaType.ALL)
    HttpResponse<?> noRead() {
        return HttpResponse.ok();
    }

    @Get(uri = "/hello", headRoute = false)
    @Produces(MediaType.TEXT_PLAIN)
    String hello() {
        return "Hello world";
    }

    @Get(uri = "/file", headRoute = false)
    @Produces(MediaType.APPLICATION_OCTET_STREAM)
    HttpResponse<?> file(HttpRequest<?> request) {
        String size = parameter(request, "size", DEFAULT_SIZE);
        if (SIZE.matcher(size).matches() && Integer.parseInt(size) <= Lorem.MAX_SIZE) {
            return HttpResponse.ok(Lorem.first(Integer.parseInt(size)));
        }
        return HttpResponse.badRequest();
    }

    // Jakarta's annotation says that the array may be missing, JSpecify's would speak of its bytes.
    @Post("/load")
    @Produces(MediaType.TEXT_PLAIN)
    byte[] load(@Nullable @Body byte[] body) {
        return Base64.getEncoder().encode(body == null ? NOTHING : body);
    }

    static String parameter(HttpRequest<?> request, String name, String absent) {
        String value = request.getParameters().get(name);
        return value == null ? absent : value;
    }
}
