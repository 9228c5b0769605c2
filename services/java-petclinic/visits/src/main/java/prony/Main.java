package prony;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Visits of pets to the clinic. */
@SpringBootApplication
public class Main {

    /** Starts the application. */
    public static void main(String[] args) {
        SpringApplication.run(Main.class, args);
    }
}
