package prony;

import static org.apache.pekko.http.javadsl.server.Directives.complete;
import static org.apache.pekko.http.javadsl.server.Directives.completeWithFuture;
import static org.apache.pekko.http.javadsl.server.Directives.extractMaterializer;
import static org.apache.pekko.http.javadsl.server.Directives.extractRequest;
import static org.apache.pekko.http.javadsl.server.Directives.parameterOptional;

import java.util.Base64;
import java.util.concurrent.CompletionStage;
import java.util.regex.Pattern;
import org.apache.pekko.http.javadsl.model.ContentTypes;
import org.apache.pekko.http.javadsl.model.HttpEntity;
import org.apache.pekko.http.javadsl.model.HttpRequest;
import org.apache.pekko.http.javadsl.model.HttpResponse;
import org.apache.pekko.http.javadsl.model.StatusCode;
import org.apache.pekko.http.javadsl.model.StatusCodes;
import org.apache.pekko.http.javadsl.server.Route;
import org.apache.pekko.stream.Materializer;
import org.apache.pekko.util.ByteString;

/** The contract http, and the health path. */
final class Basics {

    private static final long BODY_MILLIS = 60_000;
    private static final String DEFAULT_SIZE = Integer.toString(1024 * 1024);
    private static final Pattern SIZE = Pattern.compile("[0-9]{1,8}");

    private Basics() {
    }

    static Route health() {
        return complete(empty(StatusCodes.OK));
    }

    static Route root() {
        return extractRequest(request -> extractMaterializer(materializer ->
                completeWithFuture(request.discardEntityBytes(materializer)
                        .completionStage()
                        .thenApply(read -> empty(StatusCodes.OK)))));
    }

    static Route noRead() {
        return complete(empty(StatusCodes.OK));
    }

    static Route hello() {
        return complete(text("Hello world"));
    }

    static Route file() {
        return parameterOptional("size", size -> complete(file(size.orElse(DEFAULT_SIZE))));
    }

    private static HttpResponse file(String size) {
        if (!SIZE.matcher(size).matches() || Integer.parseInt(size) > Lorem.MAX_SIZE) {
            return empty(StatusCodes.BAD_REQUEST);
        }
        return HttpResponse.create().withEntity(
                ContentTypes.APPLICATION_OCTET_STREAM, Lorem.first(Integer.parseInt(size)));
    }

    static Route load() {
        return extractRequest(request -> extractMaterializer(materializer ->
                completeWithFuture(encoded(request, materializer))));
    }

    private static CompletionStage<HttpResponse> encoded(
            HttpRequest request, Materializer materializer) {
        // The setting max-content-length is the limit, and answers 413; the one here answers 500.
        return request.entity()
                .toStrict(BODY_MILLIS, Long.MAX_VALUE, materializer)
                .thenApply(Basics::encoded);
    }

    private static HttpResponse encoded(HttpEntity.Strict body) {
        byte[] encoded = Base64.getEncoder().encode(body.getData().toArray());
        return HttpResponse.create().withEntity(
                ContentTypes.TEXT_PLAIN_UTF8, ByteString.fromArrayUnsafe(encoded));
    }

    static HttpResponse text(String text) {
        return HttpResponse.create().withEntity(ContentTypes.TEXT_PLAIN_UTF8, text);
    }

    static HttpResponse empty(StatusCode status) {
        return HttpResponse.create().withStatus(status);
    }
}
