package prony;

import java.time.Duration;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.ImportRuntimeHints;
import org.springframework.http.client.ReactorResourceFactory;

/** Spring WebFlux on Netty behind the three contracts: event loops run it, and nothing blocks. */
@SpringBootApplication
@ImportRuntimeHints(NativeHints.class)
public class Main {

    /** Starts the application. */
    public static void main(String[] args) {
        SpringApplication.run(Main.class, args);
    }

    /** As Spring Boot makes it, but its loops end at once, not after two seconds without work. */
    @Bean
    static ReactorResourceFactory reactorResourceFactory() {
        ReactorResourceFactory resources = new ReactorResourceFactory();
        resources.setShutdownQuietPeriod(Duration.ZERO);
        return resources;
    }
}
