// Readers and writers of one std::shared_mutex: shared-mutex shared|timed THREADS PERCENT SECONDS
//
// PERCENT of the acquisitions write: they count up 16 numbers, which readers must find equal. At
// the end the numbers are the count of all writes. `timed` is std::shared_timed_mutex, whose
// acquisitions give up after a millisecond, and are tried again.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>
#include <vector>

static volatile unsigned long numbers[16];

static void wrong(const char *what) {
    printf("wrong: %s\n", what);
    fflush(stdout);
    _Exit(1);
}

static void write_all() {
    for (auto &number : numbers)
        number = number + 1;
}

static void read_all() {
    const unsigned long first = numbers[0];
    for (auto &number : numbers)
        if (number != first)
            wrong("a reader met a writer");
}

static void write_with(std::shared_mutex &lock) {
    std::unique_lock<std::shared_mutex> held(lock);
    write_all();
}

static void read_with(std::shared_mutex &lock) {
    std::shared_lock<std::shared_mutex> held(lock);
    read_all();
}

static void write_with(std::shared_timed_mutex &lock) {
    while (!lock.try_lock_for(std::chrono::milliseconds(1))) {
    }
    write_all();
    lock.unlock();
}

static void read_with(std::shared_timed_mutex &lock) {
    while (!lock.try_lock_shared_for(std::chrono::milliseconds(1))) {
    }
    read_all();
    lock.unlock_shared();
}

template <class Lock> static void run(int threads, unsigned percent, int seconds) {
    Lock lock;
    std::atomic<bool> stop{false};
    std::atomic<unsigned long> reads{0}, writes{0};
    std::vector<std::thread> all;
    const auto start = std::chrono::steady_clock::now();
    for (int thread = 0; thread < threads; thread++)
        all.emplace_back([&, thread] {
            std::minstd_rand random(thread + 1);
            unsigned long my_reads = 0, my_writes = 0;
            while (!stop.load(std::memory_order_relaxed)) {
                if (random() % 100 < percent) {
                    write_with(lock);
                    my_writes++;
                } else {
                    read_with(lock);
                    my_reads++;
                }
                // Some work of its own.
                for (volatile int i = 0; i < 50; i = i + 1) {
                }
            }
            reads += my_reads;
            writes += my_writes;
        });
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    stop = true;
    for (auto &thread : all)
        thread.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    read_all();
    if (numbers[0] != writes)
        wrong("a write was lost");
    printf("acquisitions per second: %.0f\n", (reads + writes) / took.count());
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    const auto with = strcmp(argv[1], "timed") ? run<std::shared_mutex> : run<std::shared_timed_mutex>;
    with(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
}
