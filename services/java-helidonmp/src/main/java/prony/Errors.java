package prony;

import jakarta.ws.rs.NotAllowedException;
import jakarta.ws.rs.WebApplicationException;
import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.ext.ExceptionMapper;
import jakarta.ws.rs.ext.Provider;

/** Answers what JAX-RS refuses by the status alone; the contract knows no 405, only 404. */
@Provider
public class Errors implements ExceptionMapper<WebApplicationException> {

    @Override
    public Response toResponse(WebApplicationException e) {
        if (e instanceof NotAllowedException) {
            return Response.status(Response.Status.NOT_FOUND).build();
        }
        return Response.status(e.getResponse().getStatus()).build();
    }
}
