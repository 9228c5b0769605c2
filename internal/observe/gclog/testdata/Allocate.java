import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;

/** Allocates as many MiB as told and says when, how much, and what the JVM's own beans counted. */
public class Allocate {
    static final int KEPT = 1024, SIZE = 16 * 1024 - 16; // an array's header is 16 bytes

    public static void main(String[] args) {
        byte[][] kept = new byte[KEPT][];
        System.gc();
        long[] before = beans();
        long begin = System.nanoTime();
        int n = Integer.parseInt(args[0]) * 64;
        for (int i = 0; i < n; i++) {
            kept[i % KEPT] = new byte[SIZE];
        }
        long end = System.nanoTime();
        long[] after = beans();
        System.gc(); // so that the last stretch has an end
        System.out.println("from " + begin + " to " + end + " bytes " + n * 16384L + " count "
                + (after[0] - before[0]) + " millis " + (after[1] - before[1]) + " kept "
                + kept[KEPT - 1].length);
    }

    /** Pauses, where there are beans of pauses, and collections, where these are all pauses. */
    static long[] beans() {
        long count = 0, millis = 0;
        for (GarbageCollectorMXBean b : ManagementFactory.getGarbageCollectorMXBeans()) {
            if (!b.getName().contains("Cycles")) {
                count += b.getCollectionCount();
                millis += b.getCollectionTime();
            }
        }
        return new long[] {count, millis};
    }
}
