package prony;

import io.micronaut.http.HttpResponse;
import io.micronaut.http.HttpStatus;
import io.micronaut.http.MutableHttpResponse;
import io.micronaut.http.server.exceptions.response.ErrorContext;
import io.micronaut.http.server.exceptions.response.ErrorResponseProcessor;
import jakarta.inject.Singleton;

/** Answers errors without the JSON that Micronaut's own processor would write. */
@Singleton
class Errors implements ErrorResponseProcessor<Void> {

    @Override
    public MutableHttpResponse<Void> processResponse(
            ErrorContext error, MutableHttpResponse<?> response) {
        HttpStatus status = response.status();
        // The contract knows no 405: a path with another method is not found.
        MutableHttpResponse<Void> empty = HttpResponse.status(
                status == HttpStatus.METHOD_NOT_ALLOWED ? HttpStatus.NOT_FOUND : status);
        // Without its length the answer to HEAD would close the connection.
        return empty.contentLength(0);
    }
}
