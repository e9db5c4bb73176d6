import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/** Threads that use monitors, locks, pools and the collector. */
public class Crowd {
    static long monitor;
    static long written;

    public static void main(String[] words) throws Exception {
        var pool = Executors.newFixedThreadPool(16);
        var map = new ConcurrentHashMap<Integer, Long>();
        var lock = new ReentrantReadWriteLock();
        for (int task = 0; task < 64; task++) {
            pool.submit(() -> {
                for (int i = 0; i < 5000; i++) {
                    synchronized (Crowd.class) {
                        monitor++;
                    }
                    map.merge(i % 100, 1L, Long::sum);
                    lock.writeLock().lock();
                    written++;
                    lock.writeLock().unlock();
                    byte[] garbage = new byte[2000];
                    garbage[i % 2000] = 1;
                }
                return null;
            });
        }
        pool.shutdown();
        pool.awaitTermination(60, TimeUnit.SECONDS);
        System.out.println(monitor + " " + written + " " + map.values().stream().mapToLong(v -> v).sum());
    }
}
