/* One thread notifies with the mutex locked, and another unlocks the mutex. POSIX forbids that for
 * a normal mutex, but it works. */
#include "check.h"

struct pair {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int ready;
    atomic_int waiting;
};

static void *wait_for(void *with)
{
    struct pair *pair = with;
    OK(pthread_mutex_lock(&pair->mutex));
    atomic_store(&pair->waiting, gettid());
    while (!pair->ready) {
        OK(pthread_cond_wait(&pair->cond, &pair->mutex));
    }
    OK(pthread_mutex_unlock(&pair->mutex));
    return NULL;
}

static void *unlock(void *with)
{
    struct pair *pair = with;
    OK(pthread_mutex_unlock(&pair->mutex));
    return NULL;
}

static void unlocked_by_another(int all)
{
    struct pair pair = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    pthread_t waiter = start(wait_for, &pair);
    await_sleep(&pair.waiting);
    OK(pthread_mutex_lock(&pair.mutex));
    pair.ready = 1;
    OK(all ? pthread_cond_broadcast(&pair.cond) : pthread_cond_signal(&pair.cond));
    join(start(unlock, &pair));
    join(waiter);
    printf("unlocked by another: %d\n", all);
}

int main(void)
{
    unlocked_by_another(0);
    unlocked_by_another(1);
    return 0;
}
