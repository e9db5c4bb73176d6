// A thread asks, another answers, by waits of C++20's library: cxx atomic|semaphore SECONDS

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <semaphore>
#include <thread>

// One word says whose turn it is.
class Atomic {
    enum { ASKER, ANSWERER };
    std::atomic<int> turn{ASKER};

    void pass(int to) {
        turn = to;
        turn.notify_one();
    }

public:
    void ask() {
        pass(ANSWERER);
    }
    void await_answer() {
        turn.wait(ANSWERER);
    }
    void await_question() {
        turn.wait(ASKER);
    }
    void answer() {
        pass(ASKER);
    }
};

// Each way has a semaphore.
class Semaphore {
    std::binary_semaphore questions{0}, answers{0};

public:
    void ask() {
        questions.release();
    }
    void await_answer() {
        answers.acquire();
    }
    void await_question() {
        questions.acquire();
    }
    void answer() {
        answers.release();
    }
};

template <class Way> static int run(int seconds) {
    Way way;
    bool over = false;
    unsigned long questions = 0, answers = 0;
    std::thread thread([&] {
        for (;;) {
            way.await_question();
            if (over)
                return;
            answers++;
            way.answer();
        }
    });
    const auto start = std::chrono::steady_clock::now();
    const auto end = start + std::chrono::seconds(seconds);
    while (std::chrono::steady_clock::now() < end) {
        questions++;
        way.ask();
        way.await_answer();
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    over = true;
    way.ask();
    thread.join();
    if (answers != questions) {
        printf("wrong: %lu questions, %lu answers\n", questions, answers);
        return 1;
    }
    printf("per second: %.0f\n", questions / took.count());
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    const auto with = strcmp(argv[1], "atomic") ? run<Semaphore> : run<Atomic>;
    return with(atoi(argv[2]));
}
