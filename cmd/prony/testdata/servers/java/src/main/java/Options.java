import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;

/** What a test passes: a folder with cert.pem and key.pem, ports, and SHORT=1 in the environment. */
final class Options {
  final Path dir;
  final int plain;
  final int tls;
  final int h2c;
  final boolean isShort = "1".equals(System.getenv("SHORT"));

  Options(String[] args) {
    dir = Path.of(args[0]);
    plain = port(args[1]);
    tls = port(args[2]);
    h2c = port(args[3]);
  }

  private static int port(String address) {
    return Integer.parseInt(address.substring(address.indexOf(':') + 1));
  }

  /** Returns a context with the certificate and the RSA key of the folder. */
  SSLContext context() throws Exception {
    Certificate certificate = CertificateFactory.getInstance("X.509")
        .generateCertificate(Files.newInputStream(dir.resolve("cert.pem")));
    String text = Files.readString(dir.resolve("key.pem")).replaceAll("-----[^-]+-----", "");
    PrivateKey key = KeyFactory.getInstance("RSA")
        .generatePrivate(new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(text)));
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    store.setKeyEntry("server", key, new char[0], new Certificate[] {certificate});
    KeyManagerFactory managers =
        KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    managers.init(store, new char[0]);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(managers.getKeyManagers(), null, null);
    return context;
  }
}
