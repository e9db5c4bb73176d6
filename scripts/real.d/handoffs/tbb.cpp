// A thread runs loops of four short turns, which TBB hands to its workers: tbb SECONDS

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <tbb/parallel_for.h>

// The turns that each index of the loop has had, in a cache line of its own.
struct alignas(64) Turns {
    unsigned long count = 0;
};

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    Turns turns[4];
    unsigned long loops = 0;
    const auto start = std::chrono::steady_clock::now();
    const auto end = start + std::chrono::seconds(atoi(argv[1]));
    while (std::chrono::steady_clock::now() < end) {
        tbb::parallel_for(0, 4, [&](int index) {
            turns[index].count++;
            for (volatile int i = 0; i < 200; i = i + 1) {
            }
        });
        loops++;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    for (const auto &turn : turns)
        if (turn.count != loops) {
            printf("wrong: %lu loops, %lu turns\n", loops, turn.count);
            return 1;
        }
    printf("per second: %.0f\n", loops / took.count());
}
