package prony;

import java.time.Duration;
import java.util.List;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.ReactiveHealthIndicator;
import org.springframework.cloud.client.discovery.ReactiveDiscoveryClient;
import org.springframework.stereotype.Component;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Up once customers, visits and vets answer by way of discovery: ready is the whole system. */
@Component
class Reachable implements ReactiveHealthIndicator {

    private static final List<String> SERVICES = List.of("customers", "visits", "vets");
    private static final Duration PATIENCE = Duration.ofSeconds(1);

    private final ReactiveDiscoveryClient discovery;
    private final WebClient client;

    Reachable(ReactiveDiscoveryClient discovery, WebClient client) {
        this.discovery = discovery;
        this.client = client;
    }

    @Override
    public Mono<Health> health() {
        return Flux.fromIterable(SERVICES)
                .concatMap(this::reachable)
                .all(up -> up)
                .timeout(PATIENCE)
                .onErrorReturn(false)
                .map(up -> (up ? Health.up() : Health.down()).build());
    }

    // Discovery goes first: the balancer would remember for a while that it had found nobody.
    private Mono<Boolean> reachable(String service) {
        return discovery.getInstances(service).hasElements().flatMap(known -> !known
                ? Mono.just(false)
                : client.get().uri("http://" + service + "/actuator/health/readiness")
                        .retrieve().toBodilessEntity().thenReturn(true));
    }
}
