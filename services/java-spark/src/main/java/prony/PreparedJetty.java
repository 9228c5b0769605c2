package prony;

import java.util.concurrent.CountDownLatch;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.VirtualThreads;
import org.eclipse.jetty.util.component.LifeCycle;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.eclipse.jetty.util.thread.ThreadPool;
import spark.embeddedserver.VirtualThreadAware;
import spark.embeddedserver.jetty.JettyServerFactory;

/**
 * Makes Jetty's server as Spark's own factory does, which cannot be extended, and adds what Spark
 * has no setting for. Spark opens the port at its first route, in a thread of its own: here it
 * waits for the last.
 */
final class PreparedJetty extends VirtualThreadAware.Base implements JettyServerFactory {

    // Jetty leaves the backlog to the JDK, whose 50 would turn connections away in a burst.
    private static final int BACKLOG = 1024;
    // Jetty then adds up to a second for interrupted threads, and the contract allows two in all.
    private static final int STOP_MILLIS = 500;

    private final CountDownLatch routes;

    PreparedJetty(CountDownLatch routes) {
        this.routes = routes;
    }

    /** The arguments are -1: without Spark's threadPool() setting it leaves them to Jetty. */
    @Override
    public Server create(int maxThreads, int minThreads, int threadTimeoutMillis) {
        return create(new QueuedThreadPool());
    }

    @Override
    public Server create(ThreadPool threadPool) {
        if (useVThread() && threadPool instanceof QueuedThreadPool pool) {
            pool.setVirtualThreadsExecutor(VirtualThreads.getDefaultVirtualThreadsExecutor());
        }
        Server server = new Server(threadPool);
        server.setStopTimeout(STOP_MILLIS);
        // Not Spark's stop(): on a time-out it calls System.exit, and hangs in a shutdown hook.
        server.setStopAtShutdown(true);
        server.addEventListener(new LifeCycle.Listener() {
            @Override
            public void lifeCycleStarting(LifeCycle starting) {
                prepare(server);
            }
        });
        return server;
    }

    private void prepare(Server server) {
        for (Connector connector : server.getConnectors()) {
            if (connector instanceof ServerConnector tcp) {
                tcp.setAcceptQueueSize(BACKLOG);
            }
        }
        try {
            routes.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException("interrupted before the last route", e);
        }
    }
}
