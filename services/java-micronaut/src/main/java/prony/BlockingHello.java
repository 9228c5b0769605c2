package prony;

import io.micronaut.context.annotation.Requires;
import io.micronaut.http.HttpRequest;
import io.micronaut.http.HttpResponse;
import io.micronaut.http.MediaType;
import io.micronaut.http.annotation.Controller;
import io.micronaut.http.annotation.Get;
import io.micronaut.http.annotation.Produces;
import java.util.Optional;

/** The contract hello on a thread of its own: waits by blocking it. */
@Controller
@Requires(property = "prony.mode", notEquals = ReactiveHello.MODE)
class BlockingHello {

    private final Greeting greeting;

    BlockingHello(Greeting greeting) {
        this.greeting = greeting;
    }

    @Get(uri = "/hello/${prony.mode}", headRoute = false)
    @Produces(MediaType.TEXT_PLAIN)
    HttpResponse<?> hello(HttpRequest<?> request) throws InterruptedException {
        Optional<Greeting.Wanted> wanted = Greeting.wanted(request);
        if (wanted.isEmpty()) {
            return HttpResponse.badRequest();
        }
        if (wanted.get().sleepMillis() > 0) {
            Thread.sleep(wanted.get().sleepMillis());
        }
        return greeting.answer(wanted.get());
    }
}
