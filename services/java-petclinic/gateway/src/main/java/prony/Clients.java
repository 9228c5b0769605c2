package prony;

import java.time.Duration;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.cloud.client.loadbalancer.LoadBalanced;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.client.reactive.ReactorClientHttpConnector;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.netty.http.client.HttpClient;
import reactor.netty.resources.ConnectionProvider;

/** The client of the gateway's own requests: its hosts are names that discovery knows. */
@Configuration(proxyBeanMethods = false)
class Clients {

    // Reactor Netty's default, which its builder does not have.
    private static final int MAX_CONNECTIONS = 500;
    // Spring's 256 KiB are fewer than the visits of a pet may be.
    private static final int MAX_BODY = 16 * 1024 * 1024;

    /** Connections rest no longer than those of the routes: one setting is for both. */
    @Bean
    @LoadBalanced
    static WebClient.Builder balanced(
            @Value("${spring.cloud.gateway.server.webflux.httpclient.pool.max-idle-time}")
            Duration rest) {
        ConnectionProvider connections = ConnectionProvider.builder("details")
                .maxConnections(MAX_CONNECTIONS)
                .maxIdleTime(rest)
                .build();
        return WebClient.builder()
                .clientConnector(new ReactorClientHttpConnector(HttpClient.create(connections)))
                .codecs(codecs -> codecs.defaultCodecs().maxInMemorySize(MAX_BODY));
    }

    @Bean
    static WebClient client(@LoadBalanced WebClient.Builder balanced) {
        return balanced.build();
    }
}
