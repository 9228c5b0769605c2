package prony;

import io.dropwizard.configuration.EnvironmentVariableSubstitutor;
import io.dropwizard.configuration.SubstitutingSourceProvider;
import io.dropwizard.core.Application;
import io.dropwizard.core.server.AbstractServerFactory;
import io.dropwizard.core.setup.Bootstrap;
import io.dropwizard.core.setup.Environment;
import io.dropwizard.jersey.setup.JerseyEnvironment;
import org.glassfish.jersey.server.ServerProperties;

/** Dropwizard behind the three contracts: Jersey on Jetty, whose threads are those of the mode. */
public final class Main extends Application<Settings> {

    // Jersey knows the length of an answer that this holds and chunks the rest; /concat has 10 kB.
    private static final int LENGTH_BUFFER_BYTES = 16 * 1024;

    /** Runs a command of Dropwizard, such as {@code server config.yml}. */
    public static void main(String[] args) throws Exception {
        new Main().run(args);
    }

    @Override
    public void initialize(Bootstrap<Settings> bootstrap) {
        bootstrap.setConfigurationSourceProvider(new SubstitutingSourceProvider(
                bootstrap.getConfigurationSourceProvider(),
                new EnvironmentVariableSubstitutor()));
    }

    // Resources are instances, so that the cache is full before Jetty, built next, opens the port.
    @Override
    public void run(Settings settings, Environment environment) {
        // Set here and not in the file, which cannot turn the name of a mode into true and false.
        AbstractServerFactory server = (AbstractServerFactory) settings.getServerFactory();
        server.setEnableVirtualThreads(settings.mode().equals("virtual"));

        JerseyEnvironment jersey = environment.jersey();
        // Else Jersey leaves an error without a body to Jetty, which gives it a page.
        jersey.property(ServerProperties.RESPONSE_SET_STATUS_OVER_SEND_ERROR, true);
        jersey.property(ServerProperties.OUTBOUND_CONTENT_LENGTH_BUFFER, LENGTH_BUFFER_BYTES);
        jersey.register(new Basics());
        jersey.register(new Hello(settings.mode()));
        jersey.register(new Compute());
        jersey.register(new Errors());
        jersey.register(new NamedMethods());
    }
}
