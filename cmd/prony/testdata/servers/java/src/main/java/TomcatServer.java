import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.apache.coyote.http11.AbstractHttp11Protocol;
import org.apache.coyote.http2.Http2Protocol;
import org.apache.tomcat.util.net.SSLHostConfig;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;

/** Tomcat with a servlet that counts its requests; GET /count answers the number of others. */
public final class TomcatServer {
  private static final AtomicLong COUNT = new AtomicLong();

  public static void main(String[] args) throws Exception {
    Options options = new Options(args);
    Tomcat tomcat = new Tomcat();
    tomcat.setBaseDir(options.dir.toString());
    Connector plain = connector(options, options.plain);
    tomcat.setConnector(plain);
    tomcat.getService().addConnector(connector(options, options.h2c));
    Connector tls = connector(options, options.tls);
    tls.setScheme("https");
    tls.setSecure(true);
    SSLHostConfig host = new SSLHostConfig();
    SSLHostConfigCertificate pair =
        new SSLHostConfigCertificate(host, SSLHostConfigCertificate.Type.RSA);
    pair.setCertificateFile(options.dir.resolve("cert.pem").toString());
    pair.setCertificateKeyFile(options.dir.resolve("key.pem").toString());
    host.addCertificate(pair);
    AbstractHttp11Protocol<?> handler = (AbstractHttp11Protocol<?>) tls.getProtocolHandler();
    handler.setSSLEnabled(true);
    handler.addSslHostConfig(host);
    tomcat.getService().addConnector(tls);
    Context context = tomcat.addContext("", options.dir.toString());
    Tomcat.addServlet(context, "all", new HttpServlet() {
      @Override
      protected void doGet(HttpServletRequest request, HttpServletResponse response)
          throws IOException {
        boolean asked = request.getRequestURI().equals("/count");
        long count = asked ? COUNT.get() : COUNT.incrementAndGet();
        response.getWriter().print(asked ? String.valueOf(count) : "ok");
      }
    });
    context.addServletMappingDecoded("/*", "all");
    tomcat.start();
    tomcat.getServer().await();
  }

  private static Connector connector(Options options, int port) {
    Connector connector = new Connector();
    connector.setPort(port);
    connector.setProperty("address", "127.0.0.1");
    Http2Protocol h2 = new Http2Protocol();
    if (options.isShort) {
      connector.setProperty("maxKeepAliveRequests", "10");
      connector.setProperty("keepAliveTimeout", "1000");
      h2.setKeepAliveTimeout(1000);
    }
    connector.addUpgradeProtocol(h2);
    return connector;
  }
}
