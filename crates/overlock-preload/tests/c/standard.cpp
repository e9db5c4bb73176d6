// The C++ standard library's types, which are made of pthread's objects.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>
#if __has_include(<semaphore>)
#include <barrier>
#include <latch>
#include <semaphore>
#endif

#define CHECK(it)                                                         \
    do {                                                                  \
        if (!(it)) {                                                      \
            std::printf("%d: %s does not hold\n", __LINE__, #it);         \
            std::fflush(stdout);                                          \
            std::_Exit(1);                                                \
        }                                                                 \
    } while (0)

using namespace std::chrono_literals;

constexpr int threads = 4, rounds = 20000;

template <typename Run> void each(Run run)
{
    std::vector<std::thread> all;
    for (int number = 0; number < threads; number++) {
        all.emplace_back(run, number);
    }
    for (auto &thread : all) {
        thread.join();
    }
}

template <typename Mutex> void count_with(const char *name)
{
    Mutex mutex;
    long count = 0;
    each([&](int) {
        for (int round = 0; round < rounds; round++) {
            std::lock_guard guard(mutex);
            count++;
        }
    });
    std::printf("%s: %ld\n", name, count);
}

template <typename Mutex> void time_out_with(const char *name)
{
    Mutex mutex;
    mutex.lock();
    bool answers[2];
    std::thread([&] {
        auto start = std::chrono::steady_clock::now();
        answers[0] = mutex.try_lock_for(20ms);
        CHECK(std::chrono::steady_clock::now() - start >= 20ms);
        auto until = std::chrono::system_clock::now() + 20ms;
        answers[1] = mutex.try_lock_until(until);
        CHECK(std::chrono::system_clock::now() >= until);
    }).join();
    mutex.unlock();
    std::printf("%s: %d %d, then %d\n", name, answers[0], answers[1], mutex.try_lock_for(60s));
    mutex.unlock();
}

template <typename Mutex> void share(const char *name)
{
    Mutex mutex;
    long one = 0, two = 0;
    each([&](int) {
        for (int round = 0; round < rounds; round++) {
            if (round % 8 == 0) {
                std::unique_lock lock(mutex);
                one++;
                two++;
            } else {
                std::shared_lock lock(mutex);
                CHECK(one == two);
            }
        }
    });
    std::printf("%s: %ld %ld\n", name, one, two);
}

template <typename Condition, typename Mutex> void pass_on(const char *name)
{
    Mutex mutex;
    Condition condition;
    int turn = 0, handed = 0;
    each([&](int number) {
        for (int round = 0; round < 500; round++) {
            std::unique_lock<Mutex> lock(mutex);
            if (round % 2) {
                condition.wait(lock, [&] { return turn == number; });
            } else {
                CHECK(condition.wait_for(lock, 600s, [&] { return turn == number; }));
            }
            turn = (turn + 1) % threads;
            handed++;
            condition.notify_all();
        }
    });
    std::unique_lock<Mutex> lock(mutex);
    auto start = std::chrono::steady_clock::now();
    CHECK(condition.wait_for(lock, 20ms, [] { return false; }) == false);
    CHECK(std::chrono::steady_clock::now() - start >= 20ms);
    std::printf("%s: %d\n", name, handed);
}

// A shared_mutex's destructor does not call the library.
void free_at_once()
{
    for (int round = 0; round < 3000; round++) {
        struct Counted {
            std::shared_mutex mutex;
            int references = 2;
        };
        auto *counted = new Counted;
        auto drop = [counted] {
            counted->mutex.lock();
            bool last = --counted->references == 0;
            counted->mutex.unlock();
            if (last) {
                delete counted;
            }
        };
        std::thread other(drop);
        drop();
        other.join();
    }
}

// After notify_all a thread may destroy the condition variable, also while it holds the lock.
static void delete_under_the_lock()
{
    for (int round = 0; round < 100; round++) {
        std::mutex mutex;
        bool ready = false, waiting = false;
        auto changed = std::make_unique<std::condition_variable>();
        std::thread waiter([&] {
            std::unique_lock lock(mutex);
            waiting = true;
            while (!ready) {
                changed->wait(lock);
            }
        });
        for (;;) {
            std::unique_lock lock(mutex);
            if (waiting) {
                ready = true;
                changed->notify_all();
                changed.reset();
                break;
            }
            lock.unlock();
            std::this_thread::yield();
        }
        waiter.join();
    }
}

int main()
{
    count_with<std::mutex>("mutex");
    count_with<std::recursive_mutex>("recursive_mutex");
    count_with<std::timed_mutex>("timed_mutex");
    count_with<std::recursive_timed_mutex>("recursive_timed_mutex");
    count_with<std::shared_mutex>("shared_mutex");
    count_with<std::shared_timed_mutex>("shared_timed_mutex");
    time_out_with<std::timed_mutex>("timed_mutex");
    time_out_with<std::recursive_timed_mutex>("recursive_timed_mutex");
    time_out_with<std::shared_timed_mutex>("shared_timed_mutex");
    share<std::shared_mutex>("shared_mutex");
    share<std::shared_timed_mutex>("shared_timed_mutex");
    pass_on<std::condition_variable, std::mutex>("condition_variable");
    pass_on<std::condition_variable_any, std::mutex>("condition_variable_any");
    pass_on<std::condition_variable_any, std::shared_mutex>("condition_variable_any, shared_mutex");
    pass_on<std::condition_variable_any, std::recursive_timed_mutex>("condition_variable_any, recursive_timed_mutex");
    free_at_once();
    delete_under_the_lock();

    std::recursive_mutex twice;
    std::scoped_lock both(twice), again(twice);
    std::once_flag flag;
    int times = 0;
    each([&](int) { std::call_once(flag, [&] { times++; }); });
    auto later = std::async(std::launch::async, [] { return 7; });
    std::printf("once %d, later %d\n", times, later.get());

    // An exception that unwinds through a lock.
    std::mutex mutex;
    try {
        std::lock_guard guard(mutex);
        throw 1;
    } catch (int) {
        CHECK(mutex.try_lock());
        mutex.unlock();
    }

#ifdef __cpp_lib_semaphore
    std::counting_semaphore<3> semaphore(3);
    std::barrier barrier(threads);
    std::latch latch(threads);
    each([&](int) {
        for (int round = 0; round < 1000; round++) {
            semaphore.acquire();
            semaphore.release();
            barrier.arrive_and_wait();
        }
        latch.count_down();
    });
    latch.wait();
    std::printf("semaphore %d\n", semaphore.try_acquire_for(1ms));
#endif
    return 0;
}
