package prony;

import java.net.URI;
import java.util.HashMap;
import java.util.Map;

/** The parameters of a request. The JDK has no parser for them; the contract needs no decoding. */
record Query(Map<String, String> values) {

    private static final Query NONE = new Query(Map.of());

    static Query of(URI uri) {
        String text = uri.getRawQuery();
        if (text == null) {
            return NONE;
        }
        Map<String, String> values = new HashMap<>();
        for (String pair : text.split("&")) {
            int equals = pair.indexOf('=');
            if (equals < 0) {
                values.put(pair, "");
            } else {
                values.put(pair.substring(0, equals), pair.substring(equals + 1));
            }
        }
        return new Query(values);
    }

    String get(String name, String absent) {
        return values.getOrDefault(name, absent);
    }
}
