package prony;

import jakarta.enterprise.context.ApplicationScoped;
import jakarta.ws.rs.ApplicationPath;
import jakarta.ws.rs.core.Application;
import java.util.Map;
import org.glassfish.jersey.server.ServerProperties;

/** The JAX-RS application; Helidon's own main class starts it, and finds its resources by CDI. */
@ApplicationScoped
@ApplicationPath("/")
public class Service extends Application {

    // Jersey knows the length of an answer that this holds and chunks the rest; /concat has 10 kB.
    private static final int LENGTH_BUFFER_BYTES = 16 * 1024;

    @Override
    public Map<String, Object> getProperties() {
        return Map.of(ServerProperties.OUTBOUND_CONTENT_LENGTH_BUFFER, LENGTH_BUFFER_BYTES);
    }
}
