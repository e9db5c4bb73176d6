// A parallel loop over a map of TBB's, with a mutex of the standard library beside it.
#include <cstdio>
#include <mutex>
#include <tbb/concurrent_hash_map.h>
#include <tbb/parallel_for.h>

int main()
{
    tbb::concurrent_hash_map<int, long> map;
    std::mutex mutex;
    long sum = 0;
    tbb::parallel_for(0, 200000, [&](int i) {
        tbb::concurrent_hash_map<int, long>::accessor at;
        map.insert(at, i % 1000);
        at->second += 1;
        if (i % 10 == 0) {
            std::lock_guard<std::mutex> held(mutex);
            sum += i;
        }
    });
    std::printf("%zu %ld\n", map.size(), sum);
}
