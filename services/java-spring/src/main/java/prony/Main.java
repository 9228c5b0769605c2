package prony;

import org.apache.catalina.core.StandardContext;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.tomcat.TomcatContextCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.ImportRuntimeHints;

/** Spring MVC on Tomcat behind the three contracts; the profile of the mode picks the threads. */
@SpringBootApplication
@ImportRuntimeHints(NativeHints.class)
public class Main {

    private static final int SECOND_GRACE_MILLIS = 100;

    /** Starts the application. */
    public static void main(String[] args) {
        SpringApplication.run(Main.class, args);
    }

    /** Tomcat would wait two seconds more, after Spring's own grace; zero would be for ever. */
    @Bean
    static TomcatContextCustomizer shortSecondGrace() {
        return context -> ((StandardContext) context).setUnloadDelay(SECOND_GRACE_MILLIS);
    }
}
