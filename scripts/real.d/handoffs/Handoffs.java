import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Executors;

/** A thread hands work to another: {@code Handoffs executor|queue|monitor SECONDS}. */
public class Handoffs {
    /** What is done again and again: it gets a number, and returns what came back. */
    interface RoundTrip {
        long make(long number) throws Exception;
    }

    static final long OVER = -1;

    public static void main(String[] words) throws Exception {
        int seconds = Integer.parseInt(words[1]);
        switch (words[0]) {
            case "executor" -> executor(seconds);
            case "queue" -> queue(seconds);
            case "monitor" -> monitor(seconds);
            default -> System.exit(2);
        }
    }

    /** Makes round trips until the time is over, and prints their rate. */
    static void repeat(int seconds, RoundTrip trip) throws Exception {
        long start = System.nanoTime();
        long limit = seconds * 1_000_000_000L;
        long count = 0;
        while (System.nanoTime() - start < limit) {
            if (trip.make(count) != count) {
                System.out.println("wrong: another number than " + count + " came back");
                System.exit(1);
            }
            count++;
        }
        double took = (System.nanoTime() - start) / 1e9;
        System.out.printf("per second: %d%n", Math.round(count / took));
    }

    /** A task of a pool of one thread; the caller waits for its result. */
    static void executor(int seconds) throws Exception {
        var pool = Executors.newFixedThreadPool(1);
        repeat(seconds, number -> pool.submit(() -> number).get());
        pool.shutdown();
    }

    /** Two queues that hold one number each. */
    static void queue(int seconds) throws Exception {
        var there = new ArrayBlockingQueue<Long>(1);
        var back = new ArrayBlockingQueue<Long>(1);
        var thread = new Thread(() -> {
            try {
                for (long number = there.take(); number != OVER; number = there.take()) {
                    back.put(number);
                }
            } catch (InterruptedException nobodyInterrupts) {
                throw new IllegalStateException(nobodyInterrupts);
            }
        });
        thread.start();
        repeat(seconds, number -> {
            there.put(number);
            return back.take();
        });
        there.put(OVER);
        thread.join();
    }

    /** A number under a monitor, and whether it is the question or the answer. */
    static class Slot {
        long number;
        boolean asked;

        synchronized void ask(long question) {
            number = question;
            asked = true;
            notify();
        }

        synchronized long awaitAnswer() throws InterruptedException {
            while (asked) {
                wait();
            }
            return number;
        }

        /** Answers questions until the one that is the end. */
        synchronized void answer() {
            try {
                while (true) {
                    while (!asked) {
                        wait();
                    }
                    if (number == OVER) {
                        return;
                    }
                    asked = false;
                    notify();
                }
            } catch (InterruptedException nobodyInterrupts) {
                throw new IllegalStateException(nobodyInterrupts);
            }
        }
    }

    /** A monitor with wait and notify. */
    static void monitor(int seconds) throws Exception {
        var slot = new Slot();
        var thread = new Thread(slot::answer);
        thread.start();
        repeat(seconds, number -> {
            slot.ask(number);
            return slot.awaitAnswer();
        });
        slot.ask(OVER);
        thread.join();
    }
}
