import io.undertow.Undertow;
import io.undertow.UndertowOptions;
import io.undertow.util.Headers;
import java.util.concurrent.atomic.AtomicLong;

/** Undertow with a handler that counts its requests; GET /count answers the number of others. */
public final class UndertowServer {
  private static final AtomicLong COUNT = new AtomicLong();

  public static void main(String[] args) throws Exception {
    Options options = new Options(args);
    Undertow.Builder server = Undertow.builder().setIoThreads(1).setWorkerThreads(4)
        .addHttpListener(options.plain, "127.0.0.1").addHttpListener(options.h2c, "127.0.0.1")
        .addHttpsListener(options.tls, "127.0.0.1", options.context())
        .setServerOption(UndertowOptions.ENABLE_HTTP2, true)
        .setHandler(exchange -> {
          boolean asked = exchange.getRequestPath().equals("/count");
          long count = asked ? COUNT.get() : COUNT.incrementAndGet();
          if (!asked && options.isShort && count % 10 == 0) {
            exchange.setPersistent(false);
          }
          exchange.getResponseHeaders().put(Headers.CONTENT_TYPE, "text/plain");
          exchange.getResponseSender().send(asked ? String.valueOf(count) : "ok");
        });
    if (options.isShort) {
      server.setServerOption(UndertowOptions.IDLE_TIMEOUT, 1000);
      server.setServerOption(UndertowOptions.NO_REQUEST_TIMEOUT, 1000);
    }
    server.build().start();
  }
}
