// The classes of overlock.hpp with what the standard library has for locks.
#include <overlock.hpp>

#include <thread>
#include <type_traits>
#include <vector>
#if __cplusplus >= 201402L
#include <shared_mutex>
#endif

#include "check.h"

namespace {

overlock::mutex lock;
overlock::shared_mutex shared;
overlock::condition_variable changed;
std::condition_variable_any changed_any;
long counter, shared_counter, turn;

static_assert(std::is_trivially_destructible<overlock::mutex>::value, "a static is never gone");
static_assert(!std::is_copy_constructible<overlock::mutex>::value, "locks stay where they are");
static_assert(sizeof(overlock::mutex) == sizeof(ovl_mutex_t), "nothing else is in it");

const int THREADS = 4, ROUNDS = 3000;

void count() {
    for (int i = 0; i < ROUNDS; i++) {
        {
            std::lock_guard<overlock::mutex> guard(lock);
            counter++;
        }
        {
            std::lock(lock, shared);
            std::lock_guard<overlock::mutex> guard(lock, std::adopt_lock);
            std::lock_guard<overlock::shared_mutex> writer(shared, std::adopt_lock);
            shared_counter++;
        }
#if __cplusplus >= 201402L
        std::shared_lock<overlock::shared_mutex> reader(shared);
        CHECK(shared_counter > 0);
#endif
    }
}

template <class Condition>
void take_turns(Condition& condition, long mine) {
    for (long i = mine; i < 400; i += 2) {
        std::unique_lock<overlock::mutex> guard(lock);
        while (turn != i) {
            condition.wait(guard);
        }
        turn++;
        condition.notify_all();
    }
}

template <class Condition>
void ping_pong(Condition& condition) {
    turn = 0;
    std::thread other([&] { take_turns(condition, 1); });
    take_turns(condition, 0);
    other.join();
    CHECK(turn == 400);
}

void limits() {
    using std::chrono::milliseconds;
    using std::chrono::steady_clock;
    const milliseconds wait(30);
    std::unique_lock<overlock::mutex> guard(lock);
    std::lock_guard<overlock::shared_mutex> writer(shared);
    std::thread([&] {
        steady_clock::time_point start = steady_clock::now();
        CHECK(!std::unique_lock<overlock::mutex>(lock, wait));
        CHECK(!lock.try_lock_until(std::chrono::system_clock::now() + wait));
        CHECK(!shared.try_lock_for(wait));
        CHECK(!shared.try_lock_until(steady_clock::now() + wait));
        CHECK(!shared.try_lock_shared_for(wait));
        CHECK(!shared.try_lock_shared_until(steady_clock::now() + wait));
        CHECK(steady_clock::now() - start >= 6 * wait - milliseconds(1));
        CHECK(!lock.try_lock_for(milliseconds(-1)));
        CHECK(!lock.try_lock_until(steady_clock::time_point::min()));
        CHECK(!shared.try_lock_shared_until(std::chrono::system_clock::time_point::min()));
        CHECK(!lock.try_lock() && !shared.try_lock() && !shared.try_lock_shared());
    }).join();

    steady_clock::time_point start = steady_clock::now();
    CHECK(changed.wait_for(guard, wait) == std::cv_status::timeout);
    CHECK(changed.wait_until(guard, std::chrono::system_clock::now() + wait) == std::cv_status::timeout);
    CHECK(changed.wait_until(guard, steady_clock::time_point::min()) == std::cv_status::timeout);
    CHECK(!changed.wait_for(guard, wait, [] { return false; }));
    CHECK(!changed.wait_until(guard, steady_clock::now() + wait, [] { return false; }));
    CHECK(steady_clock::now() - start >= 4 * wait - milliseconds(1));

    bool done = false;
    std::thread notifier([&] {
        std::lock_guard<overlock::mutex> notifies(lock);
        done = true;
        changed.notify_one();
    });
    CHECK(changed.wait_for(guard, std::chrono::hours::max(), [&] { return done; }));
    notifier.join();
}

}  // namespace

int main() {
    // Nothing is counted: the names are for nothing.
    lock.name("lock");
    shared.name("shared");
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++) {
        threads.emplace_back(count);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(counter == THREADS * ROUNDS && shared_counter == counter);
    ping_pong(changed);
    ping_pong(changed_any);
    limits();
    return 0;
}
