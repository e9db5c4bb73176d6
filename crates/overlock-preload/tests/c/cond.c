/* Condition variables: results of the functions, clocks, and pairs with mutexes of each kind. */
#include "check.h"

struct pair {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int ready, woken;
};

static void *wait_for(void *with)
{
    struct pair *pair = with;
    OK(pthread_mutex_lock(&pair->mutex));
    while (!pair->ready) {
        OK(pthread_cond_wait(&pair->cond, &pair->mutex));
    }
    pair->woken++;
    OK(pthread_mutex_unlock(&pair->mutex));
    return NULL;
}

static void deadlines(struct pair *pair, clockid_t clock)
{
    struct timespec bad = {1, 1000000000}, worse = {1, -1}, past = {0, 0}, before = {-1, 0};
    OK(pthread_mutex_lock(&pair->mutex));
    ANSWER(pthread_cond_timedwait(&pair->cond, &pair->mutex, &bad));
    ANSWER(pthread_cond_timedwait(&pair->cond, &pair->mutex, &worse));
    ANSWER(pthread_cond_timedwait(&pair->cond, &pair->mutex, &past));
    ANSWER(pthread_cond_timedwait(&pair->cond, &pair->mutex, &before));
    ANSWER(pthread_cond_clockwait(&pair->cond, &pair->mutex, CLOCK_PROCESS_CPUTIME_ID, &past));
    ANSWER(pthread_cond_clockwait(&pair->cond, &pair->mutex, CLOCK_MONOTONIC, &bad));
    TIMED(clock, 20, at, pthread_cond_timedwait(&pair->cond, &pair->mutex, &at));
    TIMED(CLOCK_MONOTONIC, 20, at, pthread_cond_clockwait(&pair->cond, &pair->mutex, CLOCK_MONOTONIC, &at));
    TIMED(CLOCK_REALTIME, 20, at, pthread_cond_clockwait(&pair->cond, &pair->mutex, CLOCK_REALTIME, &at));
    ANSWER(OTHER(pthread_mutex_trylock, &pair->mutex));
    OK(pthread_mutex_unlock(&pair->mutex));
}

static void notifications(struct pair *pair)
{
    ANSWER(pthread_cond_signal(&pair->cond));
    ANSWER(pthread_cond_broadcast(&pair->cond));
    pthread_t threads[8];
    pair->ready = pair->woken = 0;
    for (int i = 0; i < 8; i++) {
        threads[i] = start(wait_for, pair);
    }
    sleep_ms(20);
    OK(pthread_mutex_lock(&pair->mutex));
    pair->ready = 1;
    OK(pthread_cond_signal(&pair->cond));
    OK(pthread_mutex_unlock(&pair->mutex));
    sleep_ms(20);
    OK(pthread_cond_broadcast(&pair->cond));
    for (int i = 0; i < 8; i++) {
        join(threads[i]);
    }
    printf("woken: %d\n", pair->woken);
}

/* The mutex's owner notifies all waiters, then destroys and frees the condition variable before any
 * of them goes on. A late waiter may time out meanwhile. */
struct doomed {
    pthread_mutex_t mutex;
    pthread_cond_t *cond;
    int waiting, ready;
};

static void *wait_for_doomed(void *with)
{
    struct doomed *doomed = with;
    OK(pthread_mutex_lock(&doomed->mutex));
    doomed->waiting++;
    while (!doomed->ready) {
        OK(pthread_cond_wait(doomed->cond, &doomed->mutex));
    }
    OK(pthread_mutex_unlock(&doomed->mutex));
    return NULL;
}

static void *wait_a_little_for_doomed(void *with)
{
    struct doomed *doomed = with;
    OK(pthread_mutex_lock(&doomed->mutex));
    doomed->waiting++;
    while (!doomed->ready) {
        struct timespec at = in_ms(CLOCK_REALTIME, 1);
        int answer = pthread_cond_timedwait(doomed->cond, &doomed->mutex, &at);
        CHECK(answer == 0 || answer == ETIMEDOUT);
    }
    OK(pthread_mutex_unlock(&doomed->mutex));
    return NULL;
}

static void destroyed_by_the_owner(int waiters, int all, int late)
{
    pthread_t threads[4];
    for (int round = 0; round < 20; round++) {
        struct doomed doomed = {PTHREAD_MUTEX_INITIALIZER, malloc(sizeof(pthread_cond_t)), 0, 0};
        OK(pthread_cond_init(doomed.cond, NULL));
        for (int i = 0; i < waiters; i++) {
            threads[i] = start(late && i == 0 ? wait_a_little_for_doomed : wait_for_doomed, &doomed);
        }
        for (;;) {
            OK(pthread_mutex_lock(&doomed.mutex));
            if (doomed.waiting == waiters) {
                break;
            }
            OK(pthread_mutex_unlock(&doomed.mutex));
            sleep_ms(1);
        }
        doomed.ready = 1;
        OK(all ? pthread_cond_broadcast(doomed.cond) : pthread_cond_signal(doomed.cond));
        OK(pthread_cond_destroy(doomed.cond));
        memset(doomed.cond, 0x5a, sizeof *doomed.cond);
        free(doomed.cond);
        OK(pthread_mutex_unlock(&doomed.mutex));
        for (int i = 0; i < waiters; i++) {
            join(threads[i]);
        }
        OK(pthread_mutex_destroy(&doomed.mutex));
    }
    printf("destroyed by the owner: %d %d %d\n", waiters, all, late);
}

static void with_protocol(const char *name, int kind, int protocol, int shared_mutex, int shared_cond, clockid_t clock)
{
    printf("-- %s\n", name);
    struct pair pair;
    memset(&pair, 0xa5, sizeof pair);
    pthread_mutexattr_t attr;
    pthread_condattr_t cond_attr;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_settype(&attr, kind));
    OK(pthread_mutexattr_setpshared(&attr, shared_mutex));
    OK(pthread_mutexattr_setprotocol(&attr, protocol));
    OK(pthread_condattr_init(&cond_attr));
    OK(pthread_condattr_setpshared(&cond_attr, shared_cond));
    ANSWER(pthread_condattr_setclock(&cond_attr, clock));
    OK(pthread_mutex_init(&pair.mutex, &attr));
    OK(pthread_cond_init(&pair.cond, &cond_attr));
    deadlines(&pair, clock);
    notifications(&pair);
    if (kind == PTHREAD_MUTEX_ERRORCHECK) {
        ANSWER(pthread_cond_wait(&pair.cond, &pair.mutex));
    }
    if (kind == PTHREAD_MUTEX_RECURSIVE) {
        OK(pthread_mutex_lock(&pair.mutex));
        TIMED(clock, 20, at, pthread_cond_timedwait(&pair.cond, &pair.mutex, &at));
        OK(pthread_mutex_unlock(&pair.mutex));
        ANSWER(pthread_mutex_unlock(&pair.mutex));
    }
    OK(pthread_cond_destroy(&pair.cond));
    OK(pthread_mutex_destroy(&pair.mutex));
}

static void with(const char *name, int kind, int shared_mutex, int shared_cond, clockid_t clock)
{
    with_protocol(name, kind, PTHREAD_PRIO_NONE, shared_mutex, shared_cond, clock);
}

int main(void)
{
    with("normal", PTHREAD_MUTEX_NORMAL, 0, 0, CLOCK_REALTIME);
    with("monotonic", PTHREAD_MUTEX_NORMAL, 0, 0, CLOCK_MONOTONIC);
    with("recursive", PTHREAD_MUTEX_RECURSIVE, 0, 0, CLOCK_REALTIME);
    with("error-checking", PTHREAD_MUTEX_ERRORCHECK, 0, 0, CLOCK_MONOTONIC);
    with("shared mutex", PTHREAD_MUTEX_NORMAL, 1, 0, CLOCK_REALTIME);
    with("shared condition", PTHREAD_MUTEX_NORMAL, 0, 1, CLOCK_MONOTONIC);
    with("shared condition, recursive", PTHREAD_MUTEX_RECURSIVE, 0, 1, CLOCK_REALTIME);
    with("both shared", PTHREAD_MUTEX_NORMAL, 1, 1, CLOCK_MONOTONIC);
    with_protocol("priorities, error-checking", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_INHERIT, 0, 0, CLOCK_REALTIME);
    with_protocol("priorities, recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_INHERIT, 0, 0, CLOCK_MONOTONIC);
    static struct pair pair = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    puts("-- static");
    deadlines(&pair, CLOCK_REALTIME);
    notifications(&pair);
    destroyed_by_the_owner(1, 0, 0);
    destroyed_by_the_owner(4, 1, 0);
    destroyed_by_the_owner(4, 1, 1);
    return 0;
}
