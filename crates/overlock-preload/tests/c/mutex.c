/* Mutexes of all kinds: every function, with its results. */
#include "check.h"

OLD_NAME(__pthread_mutex_init, old_init);
extern int old_init(pthread_mutex_t *, const pthread_mutexattr_t *);
OLD_NAME(__pthread_mutex_destroy, old_destroy);
extern int old_destroy(pthread_mutex_t *);
OLD_NAME(__pthread_mutex_lock, old_lock);
extern int old_lock(pthread_mutex_t *);
OLD_NAME(__pthread_mutex_trylock, old_trylock);
extern int old_trylock(pthread_mutex_t *);
OLD_NAME(__pthread_mutex_unlock, old_unlock);
extern int old_unlock(pthread_mutex_t *);

static pthread_mutex_t static_normal = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t static_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t static_errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t static_adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;

static void with(const char *name, pthread_mutex_t *mutex, int recursive, int checks)
{
    printf("-- %s\n", name);
    struct timespec bad = {1, 1000000000}, worse = {1, -1}, past = {0, 0};
    ANSWER(pthread_mutex_lock(mutex));
    ANSWER(OTHER(pthread_mutex_trylock, mutex));
    ANSWER(OTHER(pthread_mutex_timedlock, mutex, &bad));
    ANSWER(OTHER(pthread_mutex_timedlock, mutex, &worse));
    ANSWER(OTHER(pthread_mutex_timedlock, mutex, &past));
    ANSWER(OTHER(pthread_mutex_clocklock, mutex, CLOCK_PROCESS_CPUTIME_ID, &past));
    ANSWER(pthread_mutex_destroy(mutex));
    TIMED(CLOCK_REALTIME, 20, at, OTHER(pthread_mutex_timedlock, mutex, &at));
    TIMED(CLOCK_REALTIME, -20, at, OTHER(pthread_mutex_timedlock, mutex, &at));
    TIMED(CLOCK_MONOTONIC, 20, at, OTHER(pthread_mutex_clocklock, mutex, CLOCK_MONOTONIC, &at));
    TIMED(CLOCK_REALTIME, 20, at, OTHER(pthread_mutex_clocklock, mutex, CLOCK_REALTIME, &at));
    if (checks) {
        ANSWER(OTHER(pthread_mutex_unlock, mutex));
    }
    ANSWER(pthread_mutex_trylock(mutex));
    if (checks) {
        ANSWER(pthread_mutex_lock(mutex));
    }
    TIMED(CLOCK_REALTIME, 20, at, pthread_mutex_timedlock(mutex, &at));
    TIMED(CLOCK_MONOTONIC, 20, at, pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &at));
    if (recursive) {
        for (int times = 0; times < 4; times++) {
            OK(pthread_mutex_unlock(mutex));
            ANSWER(OTHER(pthread_mutex_trylock, mutex));
        }
    }
    ANSWER(pthread_mutex_unlock(mutex));
    if (checks) {
        ANSWER(pthread_mutex_unlock(mutex));
    }
    /* The mutex is free, so an invalid time does not matter. */
    ANSWER(pthread_mutex_timedlock(mutex, &bad));
    ANSWER(pthread_mutex_unlock(mutex));
    ANSWER(pthread_mutex_timedlock(mutex, &past));
    ANSWER(pthread_mutex_unlock(mutex));
    ANSWER(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &bad));
    ANSWER(pthread_mutex_unlock(mutex));
    ANSWER(pthread_mutex_clocklock(mutex, CLOCK_PROCESS_CPUTIME_ID, &past));
    ANSWER(pthread_mutex_trylock(mutex));
    ANSWER(pthread_mutex_unlock(mutex));
    ANSWER(old_lock(mutex));
    ANSWER(OTHER(old_trylock, mutex));
    ANSWER(old_unlock(mutex));
    ANSWER(pthread_mutex_destroy(mutex));
    ANSWER(pthread_mutex_destroy(mutex));
    ANSWER(pthread_mutex_trylock(mutex));
    ANSWER(pthread_mutex_unlock(mutex));
    ANSWER(pthread_mutex_timedlock(mutex, &past));
    ANSWER(pthread_mutex_init(mutex, NULL));
    ANSWER(pthread_mutex_lock(mutex));
    ANSWER(pthread_mutex_unlock(mutex));
    ANSWER(old_destroy(mutex));
}

int main(void)
{
    with("static, normal", &static_normal, 0, 0);
    with("static, recursive", &static_recursive, 1, 1);
    with("static, error-checking", &static_errorcheck, 0, 1);
    with("static, adaptive", &static_adaptive, 0, 0);
    for (int kind = 0; kind < 4; kind++) {
        pthread_mutexattr_t attr;
        pthread_mutex_t mutex;
        OK(pthread_mutexattr_init(&attr));
        OK(pthread_mutexattr_settype(&attr, kind));
        memset(&mutex, 0xa5, sizeof mutex);
        OK(pthread_mutex_init(&mutex, &attr));
        char name[] = "initialised, 0";
        name[sizeof name - 2] += kind;
        with(name, &mutex, kind == PTHREAD_MUTEX_RECURSIVE,
             kind == PTHREAD_MUTEX_RECURSIVE || kind == PTHREAD_MUTEX_ERRORCHECK);
        OK(old_init(&mutex, &attr));
        OK(pthread_mutex_destroy(&mutex));
    }
    pthread_mutex_t *nobodys = malloc(sizeof *nobodys);
    OK(pthread_mutex_init(nobodys, NULL));
    ANSWER(pthread_mutex_unlock(nobodys) == 0 ? 0 : 0);
    free(nobodys);
    return 0;
}
