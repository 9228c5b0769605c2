package prony;

import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpFilter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.springframework.stereotype.Component;

/** Spring answers these methods wherever it answers GET; the contract names GET alone. */
@Component
class NamedMethods extends HttpFilter {

    private static final long serialVersionUID = 1L;

    @Override
    protected void doFilter(
            HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        switch (request.getMethod()) {
            case "HEAD", "OPTIONS", "TRACE" -> {
                response.setStatus(HttpServletResponse.SC_NOT_FOUND);
                response.setContentLength(0);
            }
            default -> chain.doFilter(request, response);
        }
    }
}
