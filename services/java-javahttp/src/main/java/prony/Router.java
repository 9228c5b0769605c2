package prony;

import io.fusionauth.http.server.HTTPHandler;
import io.fusionauth.http.server.HTTPRequest;
import io.fusionauth.http.server.HTTPResponse;
import java.util.Map;

/** Finds the handler of a method and path: java-http has one handler and leaves that to it. */
final class Router implements HTTPHandler {

    private final Map<String, HTTPHandler> routes;

    Router(Map<String, HTTPHandler> routes) {
        this.routes = routes;
    }

    @Override
    public void handle(HTTPRequest request, HTTPResponse response) throws Exception {
        String route = request.getMethod().name() + " " + request.getPath();
        routes.getOrDefault(route, Router::notFound).handle(request, response);
    }

    private static void notFound(HTTPRequest request, HTTPResponse response) {
        response.setStatus(404);
    }
}
