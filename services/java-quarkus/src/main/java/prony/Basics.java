package prony;

import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpServerRequest;
import java.util.Base64;
import java.util.regex.Pattern;
import org.jboss.resteasy.reactive.RestResponse;

/** The contract http, as far as it is the same in every mode. */
final class Basics {

    static final String HELLO = "Hello world";
    private static final String DEFAULT_SIZE = Integer.toString(1024 * 1024);
    private static final Pattern SIZE = Pattern.compile("[0-9]{1,8}");

    private Basics() {
    }

    static RestResponse<Buffer> file(HttpServerRequest request) {
        String size = parameter(request, "size", DEFAULT_SIZE);
        if (!SIZE.matcher(size).matches() || Integer.parseInt(size) > Lorem.MAX_SIZE) {
            return RestResponse.status(RestResponse.Status.BAD_REQUEST);
        }
        return RestResponse.ok(Lorem.first(Integer.parseInt(size)));
    }

    static byte[] base64(byte[] body) {
        return Base64.getEncoder().encode(body);
    }

    /** Of Vert.x, because an empty parameter is for Quarkus REST the same as none. */
    static String parameter(HttpServerRequest request, String name, String absent) {
        String value = request.getParam(name);
        return value == null ? absent : value;
    }
}
