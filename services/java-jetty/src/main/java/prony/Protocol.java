package prony;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import org.eclipse.jetty.alpn.server.ALPNServerConnectionFactory;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.http2.server.HTTP2ServerConnectionFactory;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.SecureRequestCustomizer;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.util.ssl.SslContextFactory;

/** What is spoken: HTTP/1.1 in the clear unless the environment names something else. */
final class Protocol {

    private static final String NAME = System.getenv().getOrDefault("PROTOCOL", "http");
    // A store in memory has a password by its form alone.
    private static final String PASSWORD = "none";

    private Protocol() {
    }

    /** Has the handlers answer in what the environment names. */
    static Handler handler(Handler routes) {
        return NAME.startsWith("h2") ? new Drain(routes) : routes;
    }

    /** Makes the connector that speaks what the environment names. */
    static ServerConnector connector(Server server) throws IOException, GeneralSecurityException {
        HttpConfiguration config = new HttpConfiguration();
        switch (NAME) {
            case "http" -> {
                return new ServerConnector(server);
            }
            case "h2c" -> {
                return new ServerConnector(server, new HTTP2CServerConnectionFactory(config));
            }
            case "https" -> {
                config.addCustomizer(new SecureRequestCustomizer());
                HttpConnectionFactory http = new HttpConnectionFactory(config);
                return new ServerConnector(server, secure(http.getProtocol()), http);
            }
            case "h2" -> {
                config.addCustomizer(new SecureRequestCustomizer());
                ALPNServerConnectionFactory choice = new ALPNServerConnectionFactory();
                return new ServerConnector(server, secure(choice.getProtocol()), choice,
                        new HTTP2ServerConnectionFactory(config));
            }
            default -> throw new IllegalArgumentException(
                    "PROTOCOL is http, https, h2 or h2c: " + NAME);
        }
    }

    private static SslConnectionFactory secure(String next)
            throws IOException, GeneralSecurityException {
        SslContextFactory.Server context = new SslContextFactory.Server();
        context.setKeyStore(store(
                Path.of(System.getenv("TLS_CERT")), Path.of(System.getenv("TLS_KEY"))));
        context.setKeyStorePassword(PASSWORD);
        return new SslConnectionFactory(context, next);
    }

    /** Jetty takes a store of the JDK's, which in turn knows no file in PEM that has a key. */
    private static KeyStore store(Path certificate, Path key)
            throws IOException, GeneralSecurityException {
        Certificate[] chain;
        try (InputStream in = Files.newInputStream(certificate)) {
            chain = CertificateFactory.getInstance("X.509").generateCertificates(in)
                    .toArray(new Certificate[0]);
        }
        String text = Files.readString(key).replaceAll("-----[A-Z ]+-----|\\s", "");
        PrivateKey secret = KeyFactory.getInstance(chain[0].getPublicKey().getAlgorithm())
                .generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text)));
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setKeyEntry("service", secret, PASSWORD.toCharArray(), chain);
        return store;
    }
}
