package prony;

import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.http.HttpVersion;
import io.vertx.core.net.PemKeyCertOptions;
import java.util.List;

/** What is spoken: HTTP/1.1 in the clear unless the environment names something else. */
final class Protocol {

    private Protocol() {
    }

    static HttpServerOptions options() {
        String protocol = System.getenv().getOrDefault("PROTOCOL", "http");
        return switch (protocol) {
            // Vert.x takes HTTP/2 in the clear on the same port, by its preface.
            case "http", "h2c" -> new HttpServerOptions();
            case "https" -> secure(HttpVersion.HTTP_1_1);
            case "h2" -> secure(HttpVersion.HTTP_2);
            default -> throw new IllegalArgumentException(
                    "PROTOCOL is http, https, h2 or h2c: " + protocol);
        };
    }

    private static HttpServerOptions secure(HttpVersion version) {
        return new HttpServerOptions()
                .setSsl(true)
                .setUseAlpn(true)
                .setAlpnVersions(List.of(version))
                .setKeyCertOptions(new PemKeyCertOptions()
                        .setCertPath(System.getenv("TLS_CERT"))
                        .setKeyPath(System.getenv("TLS_KEY")));
    }
}
