package prony;

import io.helidon.http.NotFoundException;
import io.helidon.http.Status;
import io.helidon.microprofile.server.ServerCdiExtension;
import jakarta.annotation.Priority;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.context.Initialized;
import jakarta.enterprise.event.Observes;
import jakarta.enterprise.inject.spi.BeanManager;
import jakarta.interceptor.Interceptor;

/** What no resource matched goes back to Helidon's routing, which words its 404 in the body. */
@ApplicationScoped
public class Unrouted {

    // By its priority before the server is started, which observes the same event.
    void configure(
            @Observes @Priority(Interceptor.Priority.APPLICATION)
            @Initialized(ApplicationScoped.class) Object event,
            BeanManager beans) {
        beans.getExtension(ServerCdiExtension.class)
                .serverRoutingBuilder()
                .error(NotFoundException.class, (request, response, e) ->
                        response.status(Status.NOT_FOUND_404).send());
    }
}
