package prony;

import io.vertx.core.Future;
import io.vertx.core.VerticleBase;
import io.vertx.core.http.HttpServer;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import java.time.Duration;

/** One verticle: a server on one event loop. Those of one port share its connections in turn. */
final class Server extends VerticleBase {

    private static final Duration GRACE = Duration.ofSeconds(1);

    private final String host;
    private final int port;
    private final Hello hello;
    private HttpServer server;

    Server(String host, int port, Hello hello) {
        this.host = host;
        this.port = port;
        this.hello = hello;
    }

    @Override
    public Future<?> start() {
        HttpServerOptions options = Protocol.options().setHost(host).setPort(port);
        server = vertx.createHttpServer(options).requestHandler(router());
        return server.listen();
    }

    @Override
    public Future<?> stop() {
        return server.shutdown(GRACE);
    }

    private Router router() {
        Router router = Router.router(vertx);
        router.route().handler(Server::strictly);
        router.get("/health").handler(Basics::empty);
        router.get("/").handler(Basics::root);
        router.get("/no-read").handler(Basics::empty);
        router.get("/hello").handler(Basics::hello);
        router.get("/file").handler(Basics::file);
        router.post("/load").handler(Basics::load);
        router.get("/hello/" + Main.MODE).handler(hello);
        router.get("/data").handler(Compute::data);
        router.get("/concat").handler(Compute::concat);
        router.get("/fibonacci").handler(Compute::fibonacci);
        withoutErrorPages(router);
        return router;
    }

    /** Vert.x Web knows no strict routing: its route /hello would take /hello/ as well. */
    private static void strictly(RoutingContext ctx) {
        String path = ctx.request().path();
        if (path.length() > 1 && path.endsWith("/")) {
            ctx.fail(404);
        } else {
            ctx.next();
        }
    }

    /** Vert.x Web answers errors with a short text, and a wrong method with 405. */
    private static void withoutErrorPages(Router router) {
        router.errorHandler(405, failed -> status(failed, 404));
        for (int status : new int[] {400, 404, 413, 500}) {
            router.errorHandler(status, failed -> status(failed, status));
        }
    }

    private static void status(RoutingContext failed, int status) {
        if (status == 500) {
            System.err.println("failed on " + failed.request().path() + ": " + failed.failure());
        }
        if (!failed.response().headWritten()) {
            failed.response().setStatusCode(status).end();
        }
    }
}
