import java.lang.invoke.MethodHandles;
import java.util.concurrent.locks.LockSupport;

/** A virtual thread that parks in class initializers, where it cannot leave its carrier thread. */
public class Pinned {
    static class Sleeper {
        static {
            LockSupport.parkNanos(5_000_000);
        }
    }

    public static void main(String[] args) throws Exception {
        byte[] code;
        try (var in = Pinned.class.getResourceAsStream("Pinned$Sleeper.class")) {
            code = in.readAllBytes();
        }
        var lookup = MethodHandles.lookup();
        Thread.ofVirtual().start(() -> {
            while (true) {
                try {
                    lookup.defineHiddenClass(code, true);
                } catch (IllegalAccessException e) {
                    throw new IllegalStateException(e);
                }
            }
        });
        System.out.println("ready");
        System.in.read(); // until the test ends
    }
}
