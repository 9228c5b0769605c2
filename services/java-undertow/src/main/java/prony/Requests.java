package prony;

import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.metrics.LongCounter;

/** The counter spring.request.count of one endpoint; without an agent it counts nothing. */
final class Requests {

    private final LongCounter counter = GlobalOpenTelemetry.getMeter("java-undertow")
            .counterBuilder("spring.request.count")
            .setDescription("Requests of the endpoint hello.")
            .setUnit("{request}")
            .build();
    private final Attributes endpoint;

    Requests(String endpoint) {
        this.endpoint = Attributes.of(AttributeKey.stringKey("endpoint"), endpoint);
    }

    void count() {
        counter.add(1, endpoint);
    }
}
