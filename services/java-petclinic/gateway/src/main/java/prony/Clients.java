package prony;

import org.springframework.cloud.client.loadbalancer.LoadBalanced;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.reactive.function.client.WebClient;

/** The client of the gateway's own requests: its hosts are names that discovery knows. */
@Configuration(proxyBeanMethods = false)
class Clients {

    @Bean
    @LoadBalanced
    static WebClient.Builder balanced() {
        return WebClient.builder();
    }

    @Bean
    static WebClient client(@LoadBalanced WebClient.Builder balanced) {
        return balanced.build();
    }
}
