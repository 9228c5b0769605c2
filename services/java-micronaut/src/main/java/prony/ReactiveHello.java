package prony;

import io.micronaut.context.annotation.Requires;
import io.micronaut.http.HttpRequest;
import io.micronaut.http.HttpResponse;
import io.micronaut.http.MediaType;
import io.micronaut.http.annotation.Controller;
import io.micronaut.http.annotation.Get;
import io.micronaut.http.annotation.Produces;
import java.time.Duration;
import java.util.Optional;
import reactor.core.publisher.Mono;

/** The contract hello on the event loop: waits by Reactor's timer and blocks no thread. */
@Controller
@Requires(property = "prony.mode", value = ReactiveHello.MODE)
class ReactiveHello {

    static final String MODE = "reactive";

    private final Greeting greeting;

    ReactiveHello(Greeting greeting) {
        this.greeting = greeting;
    }

    @Get(uri = "/hello/" + MODE, headRoute = false)
    @Produces(MediaType.TEXT_PLAIN)
    Mono<HttpResponse<?>> hello(HttpRequest<?> request) {
        Optional<Greeting.Wanted> wanted = Greeting.wanted(request);
        if (wanted.isEmpty()) {
            return Mono.just(HttpResponse.badRequest());
        }
        Mono<HttpResponse<?>> answer = Mono.fromSupplier(() -> greeting.answer(wanted.get()));
        int millis = wanted.get().sleepMillis();
        return millis == 0 ? answer : Mono.delay(Duration.ofMillis(millis)).then(answer);
    }
}
