package prony.common;

import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.http.HttpServletRequest;
import org.springframework.boot.webmvc.error.ErrorController;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** Answers errors without the page or the JSON that Spring Boot's own controller would write. */
@RestController
class Errors implements ErrorController {

    @RequestMapping("/error")
    ResponseEntity<Void> error(HttpServletRequest request) {
        Object status = request.getAttribute(RequestDispatcher.ERROR_STATUS_CODE);
        if (status == null) {
            // Someone asked for this very path, which the contract does not name.
            return ResponseEntity.notFound().build();
        }
        // Nor does it know 405 and 415: the one is not found, the other bad input.
        return ResponseEntity.status(switch (HttpStatus.resolve((int) status)) {
            case METHOD_NOT_ALLOWED -> HttpStatus.NOT_FOUND;
            case UNSUPPORTED_MEDIA_TYPE -> HttpStatus.BAD_REQUEST;
            case null -> HttpStatus.INTERNAL_SERVER_ERROR;
            case HttpStatus known -> known;
        }).build();
    }
}
