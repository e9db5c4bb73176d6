/* Reader-writer locks: every function, its results, and barging. */
#include "check.h"

typedef pthread_rwlock_t rwlock;

OLD_NAME(__pthread_rwlock_init, old_init);
extern int old_init(rwlock *, const pthread_rwlockattr_t *);
OLD_NAME(__pthread_rwlock_destroy, old_destroy);
extern int old_destroy(rwlock *);
OLD_NAME(__pthread_rwlock_rdlock, old_rdlock);
extern int old_rdlock(rwlock *);
OLD_NAME(__pthread_rwlock_wrlock, old_wrlock);
extern int old_wrlock(rwlock *);
OLD_NAME(__pthread_rwlock_tryrdlock, old_tryrdlock);
extern int old_tryrdlock(rwlock *);
OLD_NAME(__pthread_rwlock_trywrlock, old_trywrlock);
extern int old_trywrlock(rwlock *);
OLD_NAME(__pthread_rwlock_unlock, old_unlock);
extern int old_unlock(rwlock *);


static rwlock static_lock = PTHREAD_RWLOCK_INITIALIZER;
static rwlock static_writer = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

/* Acquires and releases at once. */
static int tryrdlock_and_unlock(rwlock *lock)
{
    int answer = pthread_rwlock_tryrdlock(lock);
    return answer != 0 ? answer : pthread_rwlock_unlock(lock);
}

static int trywrlock_and_unlock(rwlock *lock)
{
    int answer = pthread_rwlock_trywrlock(lock);
    return answer != 0 ? answer : pthread_rwlock_unlock(lock);
}

static int timedrdlock_and_unlock(rwlock *lock, const struct timespec *at)
{
    int answer = pthread_rwlock_timedrdlock(lock, at);
    return answer != 0 ? answer : pthread_rwlock_unlock(lock);
}

static void *write_once(void *lock)
{
    OK(pthread_rwlock_wrlock(lock));
    OK(pthread_rwlock_unlock(lock));
    return NULL;
}

static void *read_once(void *lock)
{
    OK(pthread_rwlock_rdlock(lock));
    OK(pthread_rwlock_unlock(lock));
    return NULL;
}

static void answers(rwlock *lock)
{
    struct timespec bad = {1, 1000000000}, worse = {1, -1}, past = {0, 0};
    ANSWER(pthread_rwlock_wrlock(lock));
    ANSWER(pthread_rwlock_wrlock(lock));
    ANSWER(pthread_rwlock_rdlock(lock));
    ANSWER(pthread_rwlock_trywrlock(lock));
    ANSWER(pthread_rwlock_tryrdlock(lock));
    TIMED(CLOCK_REALTIME, 20, at, pthread_rwlock_timedwrlock(lock, &at));
    TIMED(CLOCK_REALTIME, 20, at, pthread_rwlock_timedrdlock(lock, &at));
    TIMED(CLOCK_MONOTONIC, 20, at, pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &at));
    TIMED(CLOCK_MONOTONIC, 20, at, pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &at));
    ANSWER(pthread_rwlock_timedrdlock(lock, &bad));
    ANSWER(OTHER(pthread_rwlock_trywrlock, lock));
    ANSWER(OTHER(pthread_rwlock_tryrdlock, lock));
    ANSWER(OTHER(pthread_rwlock_timedrdlock, lock, &past));
    ANSWER(OTHER(pthread_rwlock_timedwrlock, lock, &past));
    ANSWER(OTHER(pthread_rwlock_timedwrlock, lock, &worse));
    ANSWER(OTHER(pthread_rwlock_clockrdlock, lock, CLOCK_PROCESS_CPUTIME_ID, &past));
    ANSWER(OTHER(pthread_rwlock_clockwrlock, lock, CLOCK_PROCESS_CPUTIME_ID, &past));
    TIMED(CLOCK_REALTIME, 20, at, OTHER(pthread_rwlock_timedrdlock, lock, &at));
    TIMED(CLOCK_REALTIME, 20, at, OTHER(pthread_rwlock_timedwrlock, lock, &at));
    TIMED(CLOCK_MONOTONIC, 20, at, OTHER(pthread_rwlock_clockrdlock, lock, CLOCK_MONOTONIC, &at));
    TIMED(CLOCK_REALTIME, 20, at, OTHER(pthread_rwlock_clockwrlock, lock, CLOCK_REALTIME, &at));
    ANSWER(pthread_rwlock_unlock(lock));
    ANSWER(pthread_rwlock_rdlock(lock));
    ANSWER(pthread_rwlock_rdlock(lock));
    ANSWER(pthread_rwlock_tryrdlock(lock));
    ANSWER(pthread_rwlock_trywrlock(lock));
    TIMED(CLOCK_REALTIME, 20, at, pthread_rwlock_timedwrlock(lock, &at));
    TIMED(CLOCK_MONOTONIC, 20, at, pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &at));
    TIMED(CLOCK_REALTIME, 20, at, OTHER(timedrdlock_and_unlock, lock, &at));
    ANSWER(pthread_rwlock_unlock(lock));
    ANSWER(pthread_rwlock_unlock(lock));
    ANSWER(OTHER(pthread_rwlock_trywrlock, lock));
    ANSWER(pthread_rwlock_unlock(lock));
    ANSWER(OTHER(trywrlock_and_unlock, lock));
    /* Free locks, with invalid times. */
    ANSWER(pthread_rwlock_timedrdlock(lock, &bad));
    ANSWER(pthread_rwlock_timedwrlock(lock, &worse));
    ANSWER(pthread_rwlock_clockrdlock(lock, CLOCK_PROCESS_CPUTIME_ID, &past));
    ANSWER(pthread_rwlock_timedwrlock(lock, &past));
    ANSWER(pthread_rwlock_unlock(lock));
    ANSWER(old_wrlock(lock));
    ANSWER(old_tryrdlock(lock));
    ANSWER(old_unlock(lock));
    ANSWER(old_rdlock(lock));
    ANSWER(old_trywrlock(lock));
    ANSWER(pthread_rwlock_destroy(lock));
    ANSWER(old_unlock(lock));
    ANSWER(old_destroy(lock));
}

static atomic_int waiting;

static void *write_as_told(void *with)
{
    atomic_store(&waiting, gettid());
    return write_once(with);
}

/* Acquisitions while a reader holds the lock and a writer waits. */
static void with_waiting_writer(rwlock *lock, int recursive)
{
    puts("-- a writer waits");
    OK(pthread_rwlock_rdlock(lock));
    atomic_store(&waiting, 0);
    pthread_t writer = start(write_as_told, lock);
    await_sleep(&waiting);
    ANSWER(OTHER(tryrdlock_and_unlock, lock));
    ANSWER(OTHER(pthread_rwlock_trywrlock, lock));
    if (recursive) {
        for (int times = 0; times < 100; times++) {
            OK(pthread_rwlock_rdlock(lock));
        }
        for (int times = 0; times < 100; times++) {
            OK(pthread_rwlock_unlock(lock));
        }
        /* Another reader, for which this one waits. */
        join(start(read_once, lock));
        TIMED(CLOCK_REALTIME, 60000, at, OTHER(timedrdlock_and_unlock, lock, &at));
    } else {
        TIMED(CLOCK_MONOTONIC, 50, at, OTHER(pthread_rwlock_clockrdlock, lock, CLOCK_MONOTONIC, &at));
    }
    OK(pthread_rwlock_unlock(lock));
    join(writer);
    ANSWER(pthread_rwlock_trywrlock(lock));
    OK(pthread_rwlock_unlock(lock));
}

/* A writer holds the lock, and all waiters sleep. */
static void with_writer(rwlock *lock)
{
    pthread_t threads[6];
    OK(pthread_rwlock_wrlock(lock));
    for (int i = 0; i < 6; i++) {
        threads[i] = start(i % 2 ? write_once : read_once, lock);
    }
    sleep_ms(50);
    OK(pthread_rwlock_unlock(lock));
    for (int i = 0; i < 6; i++) {
        join(threads[i]);
    }
    /* A single waiter. */
    for (int i = 0; i < 2; i++) {
        OK(pthread_rwlock_wrlock(lock));
        threads[0] = start(i ? write_once : read_once, lock);
        sleep_ms(50);
        OK(pthread_rwlock_unlock(lock));
        join(threads[0]);
    }
}

/* Writers that time out leave the lock's state as it was. */
static void at_its_limit(rwlock *lock)
{
    OK(pthread_rwlock_rdlock(lock));
    TIMED(CLOCK_MONOTONIC, 30, at, OTHER(pthread_rwlock_clockwrlock, lock, CLOCK_MONOTONIC, &at));
    ANSWER(OTHER(tryrdlock_and_unlock, lock));
    OK(pthread_rwlock_unlock(lock));
    OK(pthread_rwlock_wrlock(lock));
    TIMED(CLOCK_MONOTONIC, 30, at, OTHER(pthread_rwlock_clockrdlock, lock, CLOCK_MONOTONIC, &at));
    OK(pthread_rwlock_unlock(lock));
    ANSWER(pthread_rwlock_trywrlock(lock));
    OK(pthread_rwlock_unlock(lock));
}

/* Two locks, two readers that take them in opposite orders, and a writer for each. */
static pthread_barrier_t meet;

struct two {
    rwlock *first, *second;
};

static void *read_two(void *with)
{
    struct two *two = with;
    OK(pthread_rwlock_rdlock(two->first));
    pthread_barrier_wait(&meet);
    sleep_ms(50);
    OK(pthread_rwlock_rdlock(two->second));
    OK(pthread_rwlock_unlock(two->second));
    OK(pthread_rwlock_unlock(two->first));
    return NULL;
}

static void crosswise(void)
{
    puts("-- crosswise");
    static rwlock locks[2] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
    OK(pthread_barrier_init(&meet, NULL, 3));
    struct two pairs[2] = {{&locks[0], &locks[1]}, {&locks[1], &locks[0]}};
    pthread_t threads[4];
    for (int i = 0; i < 2; i++) {
        threads[i] = start(read_two, &pairs[i]);
    }
    pthread_barrier_wait(&meet);
    for (int i = 0; i < 2; i++) {
        threads[2 + i] = start(write_once, &locks[i]);
    }
    for (int i = 0; i < 4; i++) {
        join(threads[i]);
    }
}

enum { ROUNDS = 20000 };

static void shared(void)
{
    puts("-- shared");
    struct {
        rwlock lock;
        long count;
    } *both = shared_memory(sizeof *both);
    pthread_rwlockattr_t attr;
    OK(pthread_rwlockattr_init(&attr));
    OK(pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    OK(pthread_rwlock_init(&both->lock, &attr));
    pid_t child = fork();
    CHECK(child >= 0);
    for (int round = 0; round < ROUNDS; round++) {
        OK(pthread_rwlock_wrlock(&both->lock));
        both->count++;
        OK(pthread_rwlock_unlock(&both->lock));
        OK(pthread_rwlock_rdlock(&both->lock));
        OK(pthread_rwlock_unlock(&both->lock));
    }
    if (child == 0) {
        _exit(0);
    }
    reap(child);
    printf("counted %ld\n", both->count);
    answers(&both->lock);
}

int main(void)
{
    puts("-- static");
    answers(&static_lock);
    with_waiting_writer(&static_lock, 1);
    at_its_limit(&static_lock);
    with_writer(&static_lock);
    puts("-- static, for writers");
    answers(&static_writer);
    with_waiting_writer(&static_writer, 0);
    at_its_limit(&static_writer);
    with_writer(&static_writer);
    for (int kind = 0; kind < 3; kind++) {
        printf("-- kind %d\n", kind);
        rwlock lock;
        memset(&lock, 0xa5, sizeof lock);
        pthread_rwlockattr_t attr;
        OK(pthread_rwlockattr_init(&attr));
        OK(pthread_rwlockattr_setkind_np(&attr, kind));
        OK(kind == 1 ? old_init(&lock, &attr) : pthread_rwlock_init(&lock, &attr));
        answers(&lock);
        with_waiting_writer(&lock, kind != PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    }
    crosswise();
    shared();
    return 0;
}
