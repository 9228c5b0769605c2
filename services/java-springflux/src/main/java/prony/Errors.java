package prony;

import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.boot.webflux.error.ErrorWebExceptionHandler;
import org.springframework.core.annotation.Order;
import org.springframework.http.HttpStatus;
import org.springframework.http.HttpStatusCode;
import org.springframework.stereotype.Component;
import org.springframework.web.ErrorResponse;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;

/** Answers errors without the page or the JSON that Spring Boot's own handler would write. */
@Component
@Order(-1) // where Spring Boot has its own, before that of Spring, which is at 0
class Errors implements ErrorWebExceptionHandler {

    private static final Log LOG = LogFactory.getLog(Errors.class);

    @Override
    public Mono<Void> handle(ServerWebExchange exchange, Throwable error) {
        if (exchange.getResponse().isCommitted()) {
            return Mono.error(error);
        }
        exchange.getResponse().setStatusCode(status(error));
        return exchange.getResponse().setComplete();
    }

    private static HttpStatusCode status(Throwable error) {
        if (!(error instanceof ErrorResponse response)) {
            LOG.error("answering 500", error);
            return HttpStatus.INTERNAL_SERVER_ERROR;
        }
        HttpStatusCode status = response.getStatusCode();
        // The contract knows no 405: a path with another method is not found.
        return status.isSameCodeAs(HttpStatus.METHOD_NOT_ALLOWED) ? HttpStatus.NOT_FOUND : status;
    }
}
