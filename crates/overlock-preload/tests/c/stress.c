/* More threads than CPUs on each kind of object: their counts must add up. */
#include "check.h"

enum { THREADS = 8, ROUNDS = 50000, FEW = 2000 };

static pthread_mutex_t mutexes[] = {
    PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
    PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
    PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
};

/* All begin at once: otherwise the first would be done before the last has started. */
static atomic_int there;
static thread_main what;

static void *begin(void *with)
{
    there++;
    while (there < THREADS) {
        sched_yield();
    }
    return what(with);
}

static void each(thread_main run, void *with)
{
    pthread_t threads[THREADS];
    there = 0;
    what = run;
    for (int i = 0; i < THREADS; i++) {
        threads[i] = start(begin, with);
    }
    for (int i = 0; i < THREADS; i++) {
        join(threads[i]);
    }
}

static long count, second;

static void *with_mutex(void *mutex)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct timespec at;
        switch (round % 8) {
        case 0:
            while (pthread_mutex_trylock(mutex) != 0) {
                sched_yield();
            }
            break;
        case 1:
            at = in_ms(CLOCK_REALTIME, 600000);
            OK(pthread_mutex_timedlock(mutex, &at));
            break;
        case 2:
            at = in_ms(CLOCK_MONOTONIC, 0);
            while (pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &at) != 0) {
                at = in_ms(CLOCK_MONOTONIC, 1);
            }
            break;
        default: OK(pthread_mutex_lock(mutex)); break;
        }
        count++;
        OK(pthread_mutex_unlock(mutex));
    }
    return NULL;
}

static void *with_rwlock(void *lock)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct timespec at;
        int answer = 0;
        switch (round % 16) {
        case 0: OK(pthread_rwlock_wrlock(lock)); break;
        case 5:
            at = in_ms(CLOCK_MONOTONIC, 1);
            answer = pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &at);
            break;
        case 7: answer = pthread_rwlock_trywrlock(lock); break;
        case 9: answer = pthread_rwlock_tryrdlock(lock); break;
        case 11:
            at = in_ms(CLOCK_REALTIME, 1);
            answer = pthread_rwlock_timedrdlock(lock, &at);
            break;
        default: OK(pthread_rwlock_rdlock(lock)); break;
        }
        int writes = round % 16 == 0 || round % 16 == 5 || round % 16 == 7;
        if (answer != 0) {
            CHECK(answer == EBUSY || answer == ETIMEDOUT);
            if (!writes) {
                continue;
            }
            OK(pthread_rwlock_wrlock(lock));
        }
        if (writes) {
            count++;
            second++;
        } else {
            CHECK(__atomic_load_n(&count, __ATOMIC_RELAXED) == __atomic_load_n(&second, __ATOMIC_RELAXED));
            if (round % 3 == 0) {
                /* A recursive read lock, while writers may wait. */
                OK(pthread_rwlock_rdlock(lock));
                OK(pthread_rwlock_unlock(lock));
            }
        }
        OK(pthread_rwlock_unlock(lock));
    }
    return NULL;
}

/* As above, without recursive read locks. */
static void *with_writers(void *lock)
{
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 4 == 0) {
            OK(pthread_rwlock_wrlock(lock));
            count++;
            second++;
        } else {
            OK(pthread_rwlock_rdlock(lock));
            CHECK(__atomic_load_n(&count, __ATOMIC_RELAXED) == __atomic_load_n(&second, __ATOMIC_RELAXED));
        }
        OK(pthread_rwlock_unlock(lock));
    }
    return NULL;
}

static void *with_spin(void *lock)
{
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 4 == 0) {
            while (pthread_spin_trylock(lock) != 0) {
                sched_yield();
            }
        } else {
            OK(pthread_spin_lock(lock));
        }
        count++;
        OK(pthread_spin_unlock(lock));
    }
    return NULL;
}

static void *with_barrier(void *barrier)
{
    for (int round = 0; round < FEW; round++) {
        __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
        if (pthread_barrier_wait(barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
            second++;
        }
        CHECK(__atomic_load_n(&count, __ATOMIC_RELAXED) >= (round + 1) * THREADS);
    }
    return NULL;
}

/* At most three threads hold the semaphore. */
static void *with_sem(void *sem)
{
    static atomic_int inside;
    for (int round = 0; round < ROUNDS; round++) {
        struct timespec at;
        switch (round % 4) {
        case 0:
            while (sem_trywait(sem) != 0) {
                sched_yield();
            }
            break;
        case 1:
            at = in_ms(CLOCK_MONOTONIC, 600000);
            OK(sem_clockwait(sem, CLOCK_MONOTONIC, &at));
            break;
        default: OK(sem_wait(sem)); break;
        }
        CHECK(++inside <= 3);
        __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
        inside--;
        OK(sem_post(sem));
    }
    return NULL;
}

/* A bounded buffer: producers, consumers, two conditions. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    int held;
    atomic_int role;
} buffer = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};

static void *with_cond(void *broadcasts)
{
    int produces = buffer.role++ % 2;
    for (int round = 0; round < FEW; round++) {
        OK(pthread_mutex_lock(&buffer.mutex));
        if (produces) {
            while (buffer.held == 4) {
                OK(pthread_cond_wait(&buffer.emptied, &buffer.mutex));
            }
            buffer.held++;
            count++;
        } else {
            while (buffer.held == 0) {
                struct timespec at = in_ms(CLOCK_REALTIME, 1);
                int answer = pthread_cond_timedwait(&buffer.filled, &buffer.mutex, &at);
                CHECK(answer == 0 || answer == ETIMEDOUT);
            }
            buffer.held--;
            second++;
        }
        pthread_cond_t *cond = produces ? &buffer.filled : &buffer.emptied;
        OK(broadcasts != NULL ? pthread_cond_broadcast(cond) : pthread_cond_signal(cond));
        OK(pthread_mutex_unlock(&buffer.mutex));
    }
    return NULL;
}

static void report(const char *name)
{
    printf("%s: %ld, %ld\n", name, count, second);
    fflush(stdout);
    count = second = 0;
}

int main(void)
{
    for (int kind = 0; kind < 4; kind++) {
        each(with_mutex, &mutexes[kind]);
        report("mutex");
    }
    static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    static pthread_rwlock_t writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    each(with_rwlock, &lock);
    report("rwlock");
    each(with_writers, &writers);
    report("rwlock, for writers");
    pthread_spinlock_t spin;
    OK(pthread_spin_init(&spin, 0));
    each(with_spin, (void *)&spin);
    report("spinlock");
    pthread_barrier_t barrier;
    OK(pthread_barrier_init(&barrier, NULL, THREADS));
    each(with_barrier, &barrier);
    report("barrier");
    sem_t sem;
    OK(sem_init(&sem, 0, 3));
    each(with_sem, &sem);
    report("semaphore");
    each(with_cond, NULL);
    report("condition, signals");
    each(with_cond, &count);
    report("condition, broadcasts");
    return 0;
}
