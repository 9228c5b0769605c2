import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** A service as main.go: each request takes UNITS equal units of CPU time beside the JDK's server. */
public final class Units {
  private static volatile long kept; // keeps the compiler from removing the work

  private static void work(int units) {
    long x = units + 88172645463325252L;
    for (int i = 0; i < units * 40; i++) {
      x ^= x << 13;
      x ^= x >>> 7;
      x ^= x << 17;
    }
    kept = x;
  }

  public static void main(String[] args) throws IOException {
    int units = Integer.parseInt(System.getenv().getOrDefault("UNITS", "0"));
    int port = Integer.parseInt(System.getenv("PORT"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    byte[] hello = "hello".getBytes();
    server.createContext("/", exchange -> {
      work(units);
      exchange.sendResponseHeaders(200, hello.length);
      exchange.getResponseBody().write(hello);
      exchange.close();
    });
    server.setExecutor(Executors.newFixedThreadPool(2));
    server.start();
  }
}
