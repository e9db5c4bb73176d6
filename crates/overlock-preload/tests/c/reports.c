/* Programs of public reports about glibc's conditions and reader-writer locks, which hang there. */
#include "check.h"

enum { WAITERS = 4, NOTIFICATIONS = 2000 };

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_rwlock_t lock;
    int over, begun, woken;
} all = {
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
    .lock = PTHREAD_RWLOCK_INITIALIZER,
};

static atomic_int sleeper, reader;

static void *sleeps(void *with)
{
    OK(pthread_mutex_lock(&all.mutex));
    atomic_store(&sleeper, gettid());
    while (!all.over) {
        OK(pthread_cond_wait(&all.changed, &all.mutex));
    }
    OK(pthread_mutex_unlock(&all.mutex));
    return with;
}

static void *reads(void *with)
{
    atomic_store(&reader, gettid());
    OK(pthread_rwlock_rdlock(&all.lock));
    OK(pthread_rwlock_unlock(&all.lock));
    return with;
}

/* A child has the waiters in its objects, but not their threads. */
static void child_destroys_objects_with_waiters(void)
{
    OK(pthread_rwlock_wrlock(&all.lock));
    pthread_t threads[] = {start(sleeps, NULL), start(reads, NULL)};
    await_sleep(&sleeper);
    await_sleep(&reader);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(600);
        OK(pthread_cond_destroy(&all.changed));
        OK(pthread_cond_init(&all.changed, NULL));
        OK(pthread_rwlock_unlock(&all.lock));
        OK(pthread_rwlock_rdlock(&all.lock));
        OK(pthread_rwlock_unlock(&all.lock));
        OK(pthread_rwlock_destroy(&all.lock));
        _exit(0);
    }
    reap(child);
    OK(pthread_rwlock_unlock(&all.lock));
    OK(pthread_mutex_lock(&all.mutex));
    all.over = 1;
    OK(pthread_cond_broadcast(&all.changed));
    OK(pthread_mutex_unlock(&all.mutex));
    join(threads[0]);
    join(threads[1]);
}

/* Each wake-up uses up one notification, and the thread waits again at once. */
static void *waits_again(void *with)
{
    OK(pthread_mutex_lock(&all.mutex));
    do {
        all.begun++;
        OK(pthread_cond_wait(&all.changed, &all.mutex));
        all.woken++;
    } while (all.woken <= NOTIFICATIONS);
    OK(pthread_mutex_unlock(&all.mutex));
    return with;
}

static void notifications_are_for_those_that_waited_before(void)
{
    pthread_t threads[WAITERS];
    for (int i = 0; i < WAITERS; i++) {
        threads[i] = start(waits_again, NULL);
    }
    for (int sent = 0; sent < NOTIFICATIONS + WAITERS;) {
        OK(pthread_mutex_lock(&all.mutex));
        int waiting = all.begun - sent;
        OK(pthread_mutex_unlock(&all.mutex));
        for (; waiting > 0; waiting--, sent++) {
            OK(pthread_cond_signal(&all.changed));
        }
        sched_yield();
    }
    for (int i = 0; i < WAITERS; i++) {
        join(threads[i]);
    }
    CHECK(all.begun == NOTIFICATIONS + WAITERS && all.woken == all.begun);
}

int main(void)
{
    child_destroys_objects_with_waiters();
    notifications_are_for_those_that_waited_before();
    return 0;
}
