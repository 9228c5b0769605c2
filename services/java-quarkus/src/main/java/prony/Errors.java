package prony;

import io.vertx.core.http.HttpMethod;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import jakarta.enterprise.event.Observes;
import jakarta.ws.rs.NotAllowedException;
import org.jboss.resteasy.reactive.RestResponse;
import org.jboss.resteasy.reactive.server.ServerExceptionMapper;

/** What the contract does not name is 404 without a body. */
class Errors {

    void strictly(@Observes Router router) {
        router.route().order(Integer.MIN_VALUE).handler(Errors::strictly);
        // Vert.x Web would describe it in a page.
        router.errorHandler(404, Errors::notFound);
    }

    @ServerExceptionMapper
    RestResponse<Void> otherMethod(NotAllowedException e) {
        return RestResponse.notFound();
    }

    /** Quarkus REST takes /hello/ for /hello, and answers HEAD and OPTIONS where it answers GET. */
    private static void strictly(RoutingContext ctx) {
        String path = ctx.request().path();
        HttpMethod method = ctx.request().method();
        if (path.length() > 1 && path.endsWith("/")
                || method.equals(HttpMethod.HEAD)
                || method.equals(HttpMethod.OPTIONS)) {
            notFound(ctx);
        } else {
            ctx.next();
        }
    }

    private static void notFound(RoutingContext ctx) {
        ctx.response().setStatusCode(404).end();
    }
}
