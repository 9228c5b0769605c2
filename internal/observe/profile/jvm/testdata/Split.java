import java.util.concurrent.locks.ReentrantLock;

/** Work that is split three to one between two functions: time, bytes, waiting. */
public class Split {
    static volatile long sum;
    static volatile Object kept;
    static final ReentrantLock lock = new ReentrantLock();

    static long spin(int n) {
        long x = 88172645463325252L;
        for (int i = 0; i < n; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x;
    }

    static long three() { return spin(3_000_000); }

    static long one() { return spin(1_000_000); }

    static void allocThree() { kept = new byte[3 * 4096 - 16]; } // 16 bytes are the header

    static void allocOne() { kept = new byte[4096 - 16]; }

    static long random = 1;

    /** Bytes of a random number, so that no sampling at equal distances falls in step. */
    static void pad() {
        random ^= random << 13;
        random ^= random >>> 7;
        random ^= random << 17;
        kept = new byte[(int) (random & 0xfff)];
    }

    static void hold(int ms) {
        lock.lock();
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        } finally {
            lock.unlock();
        }
    }

    static void nap(int ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void napThree() { nap(75); }

    static void napOne() { nap(25); }

    static void repeat(Runnable turn) {
        Thread t = new Thread(() -> {
            while (true) turn.run();
        });
        t.setDaemon(true);
        t.start();
    }

    public static void main(String[] args) throws Exception {
        repeat(() -> { sum += three(); sum += one(); });
        repeat(() -> {
            for (int i = 0; i < 1000; i++) { allocThree(); pad(); allocOne(); pad(); }
            nap(10);
        });
        repeat(() -> hold(3));
        repeat(() -> hold(3));
        repeat(() -> { napThree(); napOne(); });
        System.out.println("ready");
        System.in.read(); // until the test ends
    }
}
