// A cache that is mostly read, and a sum of all threads.
//
//     c++ -std=c++14 -O2 cache.cpp $(pkg-config --cflags --libs overlock) -o cache
#include <overlock.hpp>

#include <iostream>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

class Squares {
public:
    long square(int number) {
        {
            std::shared_lock<overlock::shared_mutex> reading(lock_);
            const auto known = squares_.find(number);
            if (known != squares_.end()) {
                return known->second;
            }
        }
        std::lock_guard<overlock::shared_mutex> writing(lock_);
        return squares_[number] = static_cast<long>(number) * number;
    }

private:
    overlock::shared_mutex lock_;
    std::map<int, long> squares_;
};

int main() {
    Squares squares;
    overlock::mutex lock;
    long sum = 0;

    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++) {
        threads.emplace_back([&] {
            long mine = 0;
            for (int round = 0; round < 10000; round++) {
                mine += squares.square(round % 100);
            }
            std::lock_guard<overlock::mutex> guard(lock);
            sum += mine;
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    std::cout << "sum " << sum << '\n';
}
