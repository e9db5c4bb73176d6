// As chain.c, in C++: methods of a class template.
#include <chrono>
#include <latch>
#include <mutex>
#include <thread>

static std::mutex till;
static std::mutex safe;
static std::latch kept(1), asked(1);

template <class Coin> struct Shop {
    __attribute__((noinline)) void guard() {
        std::lock_guard held(safe);
        kept.count_down();
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    __attribute__((noinline)) void manager() {
        std::lock_guard held(till);
        asked.count_down();
        std::lock_guard other(safe);
    }
    __attribute__((noinline)) void clerk() { std::lock_guard held(till); }
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
