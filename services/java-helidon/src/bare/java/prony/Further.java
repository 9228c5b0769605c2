package prony;

import io.helidon.webserver.WebServerConfig;

/** What a build with only Helidon's web server speaks beside HTTP/1.1: nothing. */
final class Further {

    private Further() {
    }

    static void set(WebServerConfig.Builder server, String protocol, Hello hello) {
        throw new IllegalArgumentException("PROTOCOL is http or https in this build: " + protocol);
    }
}
