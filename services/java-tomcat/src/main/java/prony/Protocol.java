package prony;

import org.apache.catalina.connector.Connector;
import org.apache.coyote.http2.Http2Protocol;
import org.apache.tomcat.util.net.SSLHostConfig;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;

/** What is spoken: HTTP/1.1 in the clear unless the environment names something else. */
final class Protocol {

    private Protocol() {
    }

    /** Has a connector speak what the environment names. */
    static void set(Connector connector) {
        String protocol = System.getenv().getOrDefault("PROTOCOL", "http");
        switch (protocol) {
            case "http" -> {}
            case "https" -> secure(connector);
            case "h2" -> {
                secure(connector);
                connector.addUpgradeProtocol(new Http2Protocol());
            }
            // HTTP/2 in the clear is taken on the same port, by its preface.
            case "h2c" -> connector.addUpgradeProtocol(new Http2Protocol());
            default -> throw new IllegalArgumentException(
                    "PROTOCOL is http, https, h2 or h2c: " + protocol);
        }
    }

    private static void secure(Connector connector) {
        connector.setSecure(true);
        connector.setScheme("https");
        connector.setProperty("SSLEnabled", "true");
        SSLHostConfig host = new SSLHostConfig();
        SSLHostConfigCertificate pair = new SSLHostConfigCertificate(
                host, SSLHostConfigCertificate.Type.UNDEFINED);
        pair.setCertificateFile(System.getenv("TLS_CERT"));
        pair.setCertificateKeyFile(System.getenv("TLS_KEY"));
        host.addCertificate(pair);
        connector.addSslHostConfig(host);
    }
}
