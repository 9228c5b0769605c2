package prony;

import io.helidon.common.media.type.MediaType;
import io.helidon.common.media.type.MediaTypes;
import io.helidon.http.Status;
import io.helidon.webserver.http.ServerResponse;
import java.nio.charset.StandardCharsets;

/** Writes the answers of the contracts; Helidon says the length of what it is given at once. */
final class Answer {

    private Answer() {
    }

    static void empty(ServerResponse response, Status status) {
        response.status(status).send();
    }

    static void text(ServerResponse response, String text) {
        bytes(response, MediaTypes.TEXT_PLAIN, text.getBytes(StandardCharsets.US_ASCII));
    }

    static void bytes(ServerResponse response, MediaType type, byte[] body) {
        response.headers().contentType(type);
        response.send(body);
    }
}
