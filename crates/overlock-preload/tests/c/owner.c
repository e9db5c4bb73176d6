/* A thread exits while it owns locks. The next one has the same stack and thread pointer, and owns
 * none of them. */
#include "check.h"

static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void *owner(void *with)
{
    (void)with;
    OK(pthread_mutex_lock(&recursive));
    OK(pthread_mutex_lock(&recursive));
    OK(pthread_mutex_lock(&checking));
    OK(pthread_rwlock_wrlock(&rwlock));
    return (void *)pthread_self();
}

static void *next(void *with)
{
    (void)with;
    for (int i = 0; i < 2; i++) {
        pthread_mutex_t *mutex = i == 0 ? &recursive : &checking;
        ANSWER(pthread_mutex_trylock(mutex));
        TIMED(CLOCK_REALTIME, 5, at, pthread_mutex_timedlock(mutex, &at));
        ANSWER(pthread_mutex_unlock(mutex));
        struct timespec later = in_ms(CLOCK_REALTIME, 5);
        ANSWER(pthread_cond_timedwait(&cond, mutex, &later));
    }
    ANSWER(pthread_rwlock_trywrlock(&rwlock));
    ANSWER(pthread_rwlock_tryrdlock(&rwlock));
    TIMED(CLOCK_REALTIME, 5, at, pthread_rwlock_timedwrlock(&rwlock, &at));
    TIMED(CLOCK_REALTIME, 5, at, pthread_rwlock_timedrdlock(&rwlock, &at));
    return (void *)pthread_self();
}

int main(void)
{
    void *first = join(start(owner, NULL));
    CHECK(join(start(next, NULL)) == first);
    return 0;
}
