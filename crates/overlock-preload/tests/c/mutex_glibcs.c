/* Mutexes that stay the C library's: robust, process-shared, with priority protocols. */
#include "check.h"

static void *die_with(void *mutex)
{
    OK(pthread_mutex_lock(mutex));
    return NULL;
}

static void robust(int shared)
{
    printf("-- robust, %s\n", shared ? "shared" : "private");
    pthread_mutexattr_t attr;
    pthread_mutex_t *mutex = shared_memory(sizeof *mutex);
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    OK(pthread_mutexattr_setpshared(&attr, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE));
    OK(pthread_mutex_init(mutex, &attr));
    if (shared) {
        pid_t child = fork();
        if (child == 0) {
            OK(pthread_mutex_lock(mutex));
            _exit(0);
        }
        reap(child);
    } else {
        join(start(die_with, mutex));
    }
    ANSWER(pthread_mutex_lock(mutex));
    ANSWER(pthread_mutex_consistent(mutex));
    ANSWER(pthread_mutex_unlock(mutex));
    join(start(die_with, mutex));
    ANSWER(pthread_mutex_trylock(mutex));
    ANSWER(pthread_mutex_unlock(mutex));
    ANSWER(pthread_mutex_lock(mutex));
    ANSWER(pthread_mutex_destroy(mutex));
}

static void priorities(int protocol)
{
    printf("-- protocol %d\n", protocol);
    pthread_mutexattr_t attr;
    pthread_mutex_t mutex;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_setprotocol(&attr, protocol));
    OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK));
    OK(pthread_mutex_init(&mutex, &attr));
    int answer = pthread_mutex_lock(&mutex);
    printf("lock: %s\n", name_of(answer));
    if (answer == 0) {
        ANSWER(pthread_mutex_lock(&mutex));
        ANSWER(OTHER(pthread_mutex_trylock, &mutex));
        TIMED(CLOCK_REALTIME, 20, at, OTHER(pthread_mutex_timedlock, &mutex, &at));
        ANSWER(pthread_mutex_unlock(&mutex));
    }
    ANSWER(pthread_mutex_destroy(&mutex));
}

enum { ROUNDS = 20000 };

struct both {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    long count;
    int turn;
};

static void shared(void)
{
    puts("-- shared");
    struct both *both = shared_memory(sizeof *both);
    pthread_mutexattr_t attr;
    pthread_condattr_t cond_attr;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    OK(pthread_condattr_init(&cond_attr));
    OK(pthread_condattr_setpshared(&cond_attr, PTHREAD_PROCESS_SHARED));
    OK(pthread_mutex_init(&both->mutex, &attr));
    OK(pthread_cond_init(&both->cond, &cond_attr));
    pid_t child = fork();
    CHECK(child >= 0);
    for (int round = 0; round < ROUNDS; round++) {
        OK(pthread_mutex_lock(&both->mutex));
        both->count++;
        OK(pthread_mutex_unlock(&both->mutex));
    }
    int me = child == 0;
    for (int round = 0; round < 1000; round++) {
        OK(pthread_mutex_lock(&both->mutex));
        while (both->turn != me) {
            OK(pthread_cond_wait(&both->cond, &both->mutex));
        }
        both->turn = !me;
        OK(pthread_cond_broadcast(&both->cond));
        OK(pthread_mutex_unlock(&both->mutex));
    }
    if (child == 0) {
        _exit(0);
    }
    reap(child);
    printf("counted %ld\n", both->count);
    OK(pthread_cond_destroy(&both->cond));
    OK(pthread_mutex_destroy(&both->mutex));
}

int main(void)
{
    robust(0);
    robust(1);
    priorities(PTHREAD_PRIO_INHERIT);
    priorities(PTHREAD_PRIO_PROTECT);
    shared();
    return 0;
}
