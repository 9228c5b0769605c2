package prony;

import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Mono;

/** Brings all data back to what they were at start. Vets never change. */
@RestController
class Reset {

    private final WebClient client;

    Reset(WebClient client) {
        this.client = client;
    }

    @PostMapping("/api/reset")
    @ResponseStatus(HttpStatus.NO_CONTENT)
    Mono<Void> reset() {
        return reset("customers").then(reset("visits"));
    }

    private Mono<Void> reset(String service) {
        return client.post().uri("http://" + service + "/reset").retrieve().toBodilessEntity().then();
    }
}
