package prony;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/** The servlet of one path, which knows one method. Tomcat finds it by the path alone. */
final class Route extends HttpServlet {

    /** Answers a request. */
    @FunctionalInterface
    interface Action {
        void answer(HttpServletRequest request, HttpServletResponse response) throws IOException;
    }

    private static final long serialVersionUID = 1L;

    private final String method;
    // A servlet can be serialised by its type; none ever is.
    private final transient Action action;

    Route(String method, Action action) {
        this.method = method;
        this.action = action;
    }

    // Not doGet: HttpServlet would answer 405, and HEAD and OPTIONS wherever it answers GET.
    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        if (!request.getMethod().equals(method)) {
            Answer.empty(response, HttpServletResponse.SC_NOT_FOUND);
            return;
        }
        action.answer(request, response);
    }
}
