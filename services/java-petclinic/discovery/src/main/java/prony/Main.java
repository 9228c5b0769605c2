package prony;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.netflix.eureka.server.EnableEurekaServer;

/** The discovery server, a single Eureka. */
@EnableEurekaServer
@SpringBootApplication
public class Main {

    /** Starts the application. */
    public static void main(String[] args) {
        SpringApplication.run(Main.class, args);
    }
}
