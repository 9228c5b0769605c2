package prony;

import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatus;
import org.springframework.stereotype.Component;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebFilterChain;
import reactor.core.publisher.Mono;

/** Spring answers HEAD and OPTIONS wherever it answers GET; the contract names GET alone. */
@Component
class NamedMethods implements WebFilter {

    @Override
    public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
        HttpMethod method = exchange.getRequest().getMethod();
        if (method.equals(HttpMethod.HEAD) || method.equals(HttpMethod.OPTIONS)) {
            exchange.getResponse().setStatusCode(HttpStatus.NOT_FOUND);
            exchange.getResponse().getHeaders().setContentLength(0);
            return exchange.getResponse().setComplete();
        }
        return chain.filter(exchange);
    }
}
