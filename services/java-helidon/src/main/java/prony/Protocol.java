package prony;

import io.helidon.common.configurable.Resource;
import io.helidon.common.pki.Keys;
import io.helidon.webserver.WebServerConfig;
import java.nio.file.Path;

/** What is spoken: HTTP/1.1 in the clear unless the environment names something else. */
final class Protocol {

    private Protocol() {
    }

    /** Has a server speak what the environment names. */
    static void set(WebServerConfig.Builder server, Hello hello) {
        String protocol = System.getenv().getOrDefault("PROTOCOL", "http");
        switch (protocol) {
            case "http" -> {}
            case "https" -> secure(server);
            default -> Further.set(server, protocol, hello);
        }
    }

    static void secure(WebServerConfig.Builder server) {
        Keys own = Keys.builder()
                .pem(pem -> pem.key(file("TLS_KEY")).certChain(file("TLS_CERT")))
                .build();
        server.tls(tls -> tls.privateKey(own).privateKeyCertChain(own));
    }

    private static Resource file(String variable) {
        return Resource.create(Path.of(System.getenv(variable)));
    }
}
