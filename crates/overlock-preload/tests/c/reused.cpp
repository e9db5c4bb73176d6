// Memory that is used again for other locks, which nobody initialises or destroys: a sound program,
// in which the places of two locks change, not the locks' order. The argument names the scene.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <pthread.h>
#include <shared_mutex>
#include <sys/mman.h>
#include <thread>
#include <vector>

// Takes the first, then the second.
template <class First, class Second> static void both(First &first, Second &second) {
    first.lock();
    second.lock();
    second.unlock();
    first.unlock();
}

// New locks in the same memory, which has been freed or is zeroed, taken in the other order.
template <class Lock> static void in_turn(bool zeroed) {
    alignas(16) static char memory[2 * sizeof(Lock)];
    for (int turn = 0; turn < 4; turn++) {
        if (zeroed)
            memset(memory, 0, sizeof memory);
        Lock *a = reinterpret_cast<Lock *>(memory), *b = a + 1;
        if (!zeroed) {
            a = new (a) Lock;
            b = new (b) Lock;
        }
        if (turn % 2)
            both(*a, *b);
        else
            both(*b, *a);
    }
}

struct Object {
    std::mutex lock;
    long rows[20] = {};
};

static void heap() {
    Object *a = new Object, *b = new Object;
    both(a->lock, b->lock);
    uintptr_t first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
    delete b;
    delete a;
    std::vector<Object *> made;
    Object *in_first = nullptr, *in_second = nullptr;
    for (int i = 0; i < 8; i++) {
        made.push_back(new Object);
        uintptr_t place = reinterpret_cast<uintptr_t>(made.back());
        if (place == first)
            in_first = made.back();
        if (place == second)
            in_second = made.back();
    }
    if (in_first && in_second)
        both(in_second->lock, in_first->lock);
    for (Object *object : made)
        delete object;
}

// Not inlined, so that its locks lie where those of the call before lay.
__attribute__((noinline)) static void on_stack(bool turned) {
    std::mutex locks[2];
    both(locks[turned], locks[!turned]);
}

static void *on_new_stack(void *turned) {
    pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t *first = turned ? &a : &b, *second = turned ? &b : &a;
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
    return nullptr;
}

static void mapped() {
    void *at = nullptr;
    for (int turn = 0; turn < 4; turn++) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0);
        at = mmap(at, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
        std::mutex *locks = static_cast<std::mutex *>(at);
        both(locks[turn % 2], locks[1 - turn % 2]);
        munmap(at, 4096);
    }
}

// What was copied from a lock that has been used is another lock.
static void copied() {
    static pthread_mutex_t from = PTHREAD_MUTEX_INITIALIZER, locks[2];
    pthread_mutex_lock(&from);
    pthread_mutex_unlock(&from);
    for (int turn = 0; turn < 4; turn++) {
        for (pthread_mutex_t &lock : locks)
            memcpy(static_cast<void *>(&lock), &from, sizeof from);
        pthread_mutex_t *first = &locks[turn % 2], *second = &locks[1 - turn % 2];
        pthread_mutex_lock(first);
        pthread_mutex_lock(second);
        pthread_mutex_unlock(second);
        pthread_mutex_unlock(first);
    }
}

// Its memory is gone while it is held, and another's now.
static void held() {
    static pthread_mutex_t lock, other = PTHREAD_MUTEX_INITIALIZER;
    for (int turn = 0; turn < 3; turn++) {
        memset(static_cast<void *>(&lock), 0, sizeof lock);
        pthread_mutex_lock(&lock);
        pthread_mutex_lock(&other);
        pthread_mutex_unlock(&other);
    }
    pthread_mutex_unlock(&lock);
}

// More locks at a time than there are classes, and then more pairs, one after the other, than
// there is room for.
static void many(int more) {
    static std::mutex outer;
    std::vector<Object> all(20000);
    for (Object &object : all)
        both(outer, object.lock);
    for (int i = 0; i < more; i++) {
        Object *object = new Object;
        both(outer, object->lock);
        delete object;
    }
}

int main(int count, char **scenes) {
    const char *scene = count > 1 ? scenes[1] : "";
    auto is = [&](const char *name) { return !strcmp(scene, name); };
    if (is("heap"))
        heap();
    else if (is("stack"))
        for (int turn = 0; turn < 4; turn++)
            on_stack(turn % 2);
    else if (is("stacks"))
        for (long turn = 0; turn < 4; turn++) {
            pthread_t thread;
            pthread_create(&thread, nullptr, on_new_stack, reinterpret_cast<void *>(turn % 2));
            pthread_join(thread, nullptr);
        }
    else if (is("mapped"))
        mapped();
    else if (is("copied"))
        copied();
    else if (is("held"))
        held();
    else if (is("many"))
        many(115000);
    else if (is("inverted")) {
        many(0);
        static std::mutex a, b;
        both(a, b);
        std::thread([] { both(b, a); }).join();
    } else if (is("kinds"))
        for (bool zeroed : {false, true}) {
            in_turn<std::mutex>(zeroed);
            in_turn<std::timed_mutex>(zeroed);
            in_turn<std::shared_mutex>(zeroed);
            in_turn<std::shared_timed_mutex>(zeroed);
            if (!zeroed)
                in_turn<std::recursive_mutex>(zeroed);
        }
    else
        return 1;
    puts("done");
}
