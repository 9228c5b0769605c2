package prony;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import java.io.IOException;
import java.util.Map;

/**
 * Finds the handler of a method and path. The server's own contexts match by prefix and know no
 * methods, so there is one context, and exact matches here.
 */
final class Router implements HttpHandler {

    private final Map<String, HttpHandler> routes;

    Router(Map<String, HttpHandler> routes) {
        this.routes = routes;
    }

    @Override
    public void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            String route = exchange.getRequestMethod() + " " + exchange.getRequestURI().getPath();
            routes.getOrDefault(route, Router::notFound).handle(exchange);
        }
    }

    private static void notFound(HttpExchange exchange) throws IOException {
        Answer.empty(exchange, 404);
    }
}
