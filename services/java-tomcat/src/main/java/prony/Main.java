package prony;

import jakarta.servlet.http.HttpServletResponse;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.core.StandardContext;
import org.apache.catalina.core.StandardHost;
import org.apache.catalina.core.StandardService;
import org.apache.catalina.startup.Tomcat;
import org.apache.catalina.valves.HealthCheckValve;
import org.apache.tomcat.util.modeler.Registry;

/** Embedded Tomcat with a plain servlet for each path of the three contracts. */
public final class Main {

    // Tomcat's 100 would turn connections away in a burst.
    private static final int BACKLOG = 1024;
    // Tomcat then waits, in turn, for servlets at work and for threads; two seconds are all.
    private static final int STOP_MILLIS = 1000;
    private static final int SECOND_GRACE_MILLIS = 100;

    private Main() {
    }

    /** Starts the server on HOST and PORT, with the threads of MODE, and waits for its end. */
    public static void main(String[] args) throws Exception {
        String mode = environment("MODE", "platform");
        String host = environment("HOST", "127.0.0.1");
        int port = Integer.parseInt(environment("PORT", "8080"));

        // No MBeans, as with Spring Boot: nobody asks for them. It must come before all else.
        Registry.disableRegistry();
        Tomcat tomcat = new Tomcat();
        File work = workFolder();
        tomcat.setBaseDir(work.getPath());
        tomcat.setConnector(connector(mode, host, port));
        ((StandardService) tomcat.getService()).setGracefulStopAwaitMillis(STOP_MILLIS);
        ((StandardHost) tomcat.getHost()).setErrorReportValveClass(BareErrors.class.getName());
        // The servlets, and with them the cache, are complete before the port opens.
        routes(context(tomcat, work), mode);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(tomcat)));
        tomcat.start();
        System.out.println("listening on " + host + ":" + port + ", mode " + mode);
        // Tomcat's own threads are daemons and would let the process end.
        tomcat.getServer().await();
    }

    private static Connector connector(String mode, String host, int port) {
        Connector connector = new Connector();
        connector.setPort(port);
        property(connector, "address", host);
        property(connector, "acceptCount", Integer.toString(BACKLOG));
        property(connector, "useVirtualThreads", Boolean.toString(virtual(mode)));
        // A port that opens with the start is one that closes first when Tomcat stops.
        property(connector, "bindOnInit", "false");
        property(connector, "executorTerminationTimeoutMillis", "" + SECOND_GRACE_MILLIS);
        // Else Tomcat itself answers it 405, which the contract does not know.
        connector.setAllowTrace(true);
        Protocol.set(connector);
        return connector;
    }

    private static void property(Connector connector, String name, String value) {
        if (!connector.setProperty(name, value)) {
            throw new IllegalStateException("Tomcat's connector does not know " + name);
        }
    }

    private static Context context(Tomcat tomcat, File work) {
        StandardContext context = (StandardContext) tomcat.addContext("", null);
        context.setWorkDir(work.getPath());
        context.setUnloadDelay(SECOND_GRACE_MILLIS);
        context.getPipeline().addValve(new HealthCheckValve());
        return context;
    }

    private static void routes(Context context, String mode) {
        // The servlet specification writes the root, and nothing below it, as an empty path.
        add(context, "GET", "", Basics::root);
        add(context, "GET", "/no-read", Basics::noRead);
        add(context, "GET", "/hello", Basics::hello);
        add(context, "GET", "/file", Basics::file);
        add(context, "POST", "/load", Basics::load);
        add(context, "GET", "/hello/" + mode, new Hello(mode));
        add(context, "GET", "/data", Compute::data);
        add(context, "GET", "/concat", Compute::concat);
        add(context, "GET", "/fibonacci", Compute::fibonacci);
        // And all that no other servlet takes as a slash.
        add(context, "GET", "/", (request, response) ->
                Answer.empty(response, HttpServletResponse.SC_NOT_FOUND));
    }

    private static void add(Context context, String method, String path, Route.Action action) {
        Tomcat.addServlet(context, path, new Route(method, action)).addMapping(path);
    }

    private static boolean virtual(String mode) {
        return switch (mode) {
            case "platform" -> false;
            case "virtual" -> true;
            default -> throw new IllegalArgumentException("MODE is platform or virtual: " + mode);
        };
    }

    // Tomcat wants a folder, though these servlets put nothing there.
    private static File workFolder() throws IOException {
        File folder = Files.createTempDirectory("java-tomcat").toFile();
        folder.deleteOnExit();
        return folder;
    }

    private static void stop(Tomcat tomcat) {
        try {
            tomcat.stop();
            tomcat.destroy();
        } catch (LifecycleException e) {
            e.printStackTrace();
        }
    }

    private static String environment(String name, String absent) {
        return System.getenv().getOrDefault(name, absent);
    }
}
