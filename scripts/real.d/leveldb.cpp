// Many threads on one database: leveldb DIRECTORY THREADS SECONDS
//
// Of ten operations one writes two neighbours in one batch, and nine read both in one snapshot:
// they must be of the same batch. At the end all of them are read again.

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

constexpr int PAIRS = 5000;

static void check(bool right, const char *what) {
    if (!right) {
        printf("wrong: %s\n", what);
        fflush(stdout);
        _Exit(1);
    }
}

static std::string key(int pair, int which) {
    char text[32];
    snprintf(text, sizeof text, "%08d-%d", pair, which);
    return text;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    const int threads = atoi(argv[2]), seconds = atoi(argv[3]);
    leveldb::Options options;
    options.create_if_missing = true;
    options.paranoid_checks = true;
    options.write_buffer_size = 1 << 20;
    std::unique_ptr<leveldb::Cache> cache(leveldb::NewLRUCache(1 << 20));
    options.block_cache = cache.get();
    leveldb::DB *opened = nullptr;
    check(leveldb::DB::Open(options, argv[1], &opened).ok(), "the database does not open");
    std::unique_ptr<leveldb::DB> db(opened);

    auto write = [&](int pair, const std::string &value) {
        leveldb::WriteBatch batch;
        batch.Put(key(pair, 0), value);
        batch.Put(key(pair, 1), value);
        check(db->Write(leveldb::WriteOptions(), &batch).ok(), "a batch is not written");
    };
    auto read = [&](int pair, const leveldb::Snapshot *snapshot) {
        leveldb::ReadOptions options;
        options.snapshot = snapshot;
        options.verify_checksums = true;
        std::string one, other;
        check(db->Get(options, key(pair, 0), &one).ok() && db->Get(options, key(pair, 1), &other).ok(), "a key is not found");
        check(one == other, "two keys of one batch differ");
    };
    for (int pair = 0; pair < PAIRS; pair++)
        write(pair, std::string(100, '.'));

    std::atomic<bool> stop{false};
    std::atomic<unsigned long> operations{0};
    std::vector<std::thread> all;
    const auto start = std::chrono::steady_clock::now();
    for (int thread = 0; thread < threads; thread++)
        all.emplace_back([&, thread] {
            std::minstd_rand random(thread + 1);
            unsigned long done = 0;
            for (; !stop.load(std::memory_order_relaxed); done++) {
                const int pair = random() % PAIRS;
                if (done % 10 == 0) {
                    write(pair, std::to_string(thread) + ":" + std::to_string(done) + std::string(80, '.'));
                } else {
                    const leveldb::Snapshot *snapshot = db->GetSnapshot();
                    read(pair, snapshot);
                    db->ReleaseSnapshot(snapshot);
                }
            }
            operations += done;
        });
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    stop = true;
    for (auto &thread : all)
        thread.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    for (int pair = 0; pair < PAIRS; pair++)
        read(pair, nullptr);
    printf("operations per second: %.0f\n", operations / took.count());
}
