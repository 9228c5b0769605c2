package prony;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.core.annotation.Order;
import org.springframework.http.HttpStatus;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.stereotype.Component;
import org.springframework.web.ErrorResponse;
import org.springframework.web.reactive.function.client.WebClientResponseException;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebExceptionHandler;
import reactor.core.publisher.Mono;

/** Answers errors without the page or the JSON of Spring Boot's own handler, whose order is -1. */
@Component
@Order(-2)
class Errors implements WebExceptionHandler {

    private static final Logger LOG = LoggerFactory.getLogger(Errors.class);

    @Override
    public Mono<Void> handle(ServerWebExchange exchange, Throwable error) {
        ServerHttpResponse response = exchange.getResponse();
        if (response.isCommitted()) {
            return Mono.error(error);
        }
        HttpStatusCode status = status(error);
        if (status == HttpStatus.INTERNAL_SERVER_ERROR) {
            LOG.error("{} {}", exchange.getRequest().getMethod(), exchange.getRequest().getPath(),
                    error);
        }
        response.setStatusCode(status);
        response.getHeaders().setContentLength(0);
        return response.setComplete();
    }

    private static HttpStatusCode status(Throwable error) {
        HttpStatusCode status = switch (error) {
            case ErrorResponse own -> own.getStatusCode();
            case WebClientResponseException others -> others.getStatusCode();
            default -> HttpStatus.INTERNAL_SERVER_ERROR;
        };
        // The contract knows no 405: a path with another method is not found.
        return status.isSameCodeAs(HttpStatus.METHOD_NOT_ALLOWED) ? HttpStatus.NOT_FOUND : status;
    }
}
