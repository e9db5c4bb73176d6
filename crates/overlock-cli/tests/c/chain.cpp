// As chain.c, in C++: methods of a class template.
#include <chrono>
#include <latch>
#include <mutex>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include "asleep.h"

static std::mutex till;
static std::mutex safe;
static std::latch kept(1), asked(1);
static volatile pid_t manager_id, clerk_id;

template <class Coin> struct Shop {
    __attribute__((noinline)) void guard() {
        std::lock_guard held(safe);
        kept.count_down();
        while (!is_asleep(manager_id) || !is_asleep(clerk_id))
            usleep(1000);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    __attribute__((noinline)) void manager() {
        std::lock_guard held(till);
        asked.count_down();
        manager_id = gettid();
        std::lock_guard other(safe);
    }
    __attribute__((noinline)) void clerk() {
        clerk_id = gettid();
        std::lock_guard held(till);
    }
};

int main() {
    Shop<int> shop;
    std::thread guard(&Shop<int>::guard, &shop);
    kept.wait();
    std::thread manager(&Shop<int>::manager, &shop);
    asked.wait();
    std::thread clerk(&Shop<int>::clerk, &shop);
    guard.join();
    manager.join();
    clerk.join();
}
