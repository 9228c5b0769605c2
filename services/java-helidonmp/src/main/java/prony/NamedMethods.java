package prony;

import jakarta.ws.rs.HttpMethod;
import jakarta.ws.rs.container.ContainerRequestContext;
import jakarta.ws.rs.container.ContainerRequestFilter;
import jakarta.ws.rs.container.PreMatching;
import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.ext.Provider;

/** JAX-RS answers HEAD and OPTIONS wherever it answers GET; the contract names GET alone. */
@Provider
@PreMatching
public class NamedMethods implements ContainerRequestFilter {

    @Override
    public void filter(ContainerRequestContext request) {
        switch (request.getMethod()) {
            case HttpMethod.HEAD, HttpMethod.OPTIONS ->
                    request.abortWith(Response.status(Response.Status.NOT_FOUND).build());
            default -> {}
        }
    }
}
