package prony;

import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import org.springframework.boot.web.servlet.error.ErrorController;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** Answers errors without the page or the JSON that Spring Boot's own controller would write. */
@RestController
class Errors implements ErrorController {

    @RequestMapping("/error")
    ResponseEntity<Void> error(HttpServletRequest request) {
        Object status = request.getAttribute(RequestDispatcher.ERROR_STATUS_CODE);
        // Without a status someone asked for this very path, which the contract does not name.
        // Nor does it know 405: a path with another method is not found.
        if (status == null || status.equals(HttpServletResponse.SC_METHOD_NOT_ALLOWED)) {
            return ResponseEntity.notFound().build();
        }
        return ResponseEntity.status((int) status).build();
    }
}
