package prony;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Owners, their pets and the types of pets. */
@SpringBootApplication
public class Main {

    /** Starts the application. */
    public static void main(String[] args) {
        SpringApplication.run(Main.class, args);
    }
}
