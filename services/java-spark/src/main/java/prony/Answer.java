package prony;

import spark.Response;

/**
 * The answers of the contracts, as the object that a Spark route returns. Spark leaves the length
 * to Jetty and flushes before it closes, which chunks every answer that has none.
 */
final class Answer {

    private Answer() {
    }

    static String empty(Response response, int status) {
        response.status(status);
        response.raw().setContentLength(0);
        // Spark takes null for a route that was not found, and this for a body.
        return "";
    }

    static Object bytes(Response response, String type, byte[] body) {
        begin(response, type, body.length);
        return body;
    }

    /** Sets the headers; the caller writes {@code length} bytes to the raw response. */
    static void begin(Response response, String type, int length) {
        response.type(type);
        response.raw().setContentLength(length);
    }
}
