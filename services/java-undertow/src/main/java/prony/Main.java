package prony;

import io.undertow.server.DefaultByteBufferPool;
import java.util.concurrent.Executors;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.embedded.undertow.UndertowBuilderCustomizer;
import org.springframework.boot.web.embedded.undertow.UndertowDeploymentInfoCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Profile;

/** Spring MVC on Undertow behind the three contracts; the profile of the mode picks the threads. */
@SpringBootApplication
public class Main {

    // Undertow's own size, chosen for 16 KiB with the header of a record of TLS.
    private static final int BUFFER_BYTES = 16 * 1024 - 20;
    private static final int NO_MAXIMUM = -1;
    private static final int NONE_PER_THREAD = 0;

    /** Starts the application. */
    public static void main(String[] args) {
        SpringApplication.run(Main.class, args);
    }

    /** Spring's setting for virtual threads reaches Tomcat and Jetty, not Undertow. */
    @Bean
    @Profile("virtual")
    static UndertowDeploymentInfoCustomizer virtualThreads() {
        return deployment -> deployment.setExecutor(Executors.newVirtualThreadPerTaskExecutor());
    }

    /** By default each thread keeps four buffers, and one that ended keeps them from the others. */
    @Bean
    @Profile("virtual")
    static UndertowBuilderCustomizer sharedBuffers() {
        return builder -> builder.setByteBufferPool(new DefaultByteBufferPool(
                true, BUFFER_BYTES, NO_MAXIMUM, NONE_PER_THREAD));
    }
}
