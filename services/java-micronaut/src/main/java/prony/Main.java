package prony;

import io.micronaut.runtime.Micronaut;
import java.util.Set;

/** Micronaut on Netty behind the three contracts; the environment of the mode picks the threads. */
public final class Main {

    private static final Set<String> MODES = Set.of("platform", "virtual", "reactive", "loom");

    private Main() {
    }

    /** Starts the server on HOST and PORT, with the threads of MODE. */
    public static void main(String[] args) {
        String mode = System.getenv().getOrDefault("MODE", "platform");
        if (!MODES.contains(mode)) {
            throw new IllegalArgumentException("MODE is one of " + MODES + ": " + mode);
        }
        // It reads application.properties and application-MODE.properties.
        Micronaut.build(args)
                .mainClass(Main.class)
                .environments(mode)
                .banner(false)
                .start();
    }
}
