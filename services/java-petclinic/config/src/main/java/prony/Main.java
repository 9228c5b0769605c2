package prony;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.config.server.EnableConfigServer;

/** The config server: hands out the files of its own class path, in the folder served. */
@EnableConfigServer
@SpringBootApplication
public class Main {

    /** Starts the application. */
    public static void main(String[] args) {
        SpringApplication.run(Main.class, args);
    }
}
