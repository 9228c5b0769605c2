import java.util.concurrent.atomic.AtomicLong;
import org.eclipse.jetty.alpn.server.ALPNServerConnectionFactory;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.http2.server.HTTP2ServerConnectionFactory;
import org.eclipse.jetty.server.ConnectionFactory;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.ssl.SslContextFactory;

/** Jetty with a handler that counts its requests; GET /count answers the number of others. */
public final class Jetty {
  private static final AtomicLong COUNT = new AtomicLong();

  public static void main(String[] args) throws Exception {
    Options options = new Options(args);
    Server server = new Server();
    HttpConfiguration http = new HttpConfiguration();
    SslContextFactory.Server context = new SslContextFactory.Server();
    context.setSslContext(options.context());
    HTTP2CServerConnectionFactory clear = new HTTP2CServerConnectionFactory(http);
    listen(server, options, options.plain, new HttpConnectionFactory(http), clear);
    listen(server, options, options.h2c, new HttpConnectionFactory(http), clear);
    listen(server, options, options.tls, new SslConnectionFactory(context, "alpn"),
        new ALPNServerConnectionFactory("h2", "http/1.1"), new HTTP2ServerConnectionFactory(http),
        new HttpConnectionFactory(http));
    server.setHandler(new Handler.Abstract.NonBlocking() {
      @Override
      public boolean handle(Request request, Response response, Callback done) {
        boolean asked = request.getHttpURI().getPath().equals("/count");
        long count = asked ? COUNT.get() : COUNT.incrementAndGet();
        if (!asked && options.isShort && count % 10 == 0
            && request.getConnectionMetaData().getHttpVersion().getVersion() < 20) {
          response.getHeaders().put("Connection", "close");
        }
        String body = asked ? String.valueOf(count) : "ok";
        response.getHeaders().put("Content-Length", body.length());
        response.write(true, java.nio.ByteBuffer.wrap(body.getBytes()), done);
        return true;
      }
    });
    server.start();
  }

  private static void listen(Server server, Options options, int port, ConnectionFactory... how) {
    ServerConnector connector = new ServerConnector(server, 1, 1, how);
    connector.setHost("127.0.0.1");
    connector.setPort(port);
    if (options.isShort) {
      connector.setIdleTimeout(1000);
    }
    server.addConnector(connector);
  }
}
