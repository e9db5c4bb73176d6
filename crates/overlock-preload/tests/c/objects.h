/* One of each object, and each way to wait for it: for tests of the environments and the cost of
 * waits. */
#ifndef OBJECTS_H
#define OBJECTS_H

#include "check.h"

static pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t read_only = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t of_cond = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int may_go;
static long spurious;
static sem_t sem;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static struct timespec later;

enum way {
    MUTEX,
    MUTEX_RECURSIVE,
    MUTEX_ERRORCHECK,
    MUTEX_UNTIL,
    READ,
    READ_UNTIL,
    WRITE,
    WRITE_UNTIL,
    COND,
    COND_UNTIL,
    SEM,
    SEM_UNTIL,
    BARRIER,
    WAYS,
    SPIN = WAYS, /* not in tests whose waiters sleep for long */
    ALL_WAYS
};

static const char *const way_names[] = {
    "mutex", "recursive mutex", "errorcheck mutex", "timed mutex", "read", "timed read", "write",
    "timed write", "cond", "timed cond", "sem", "timed sem", "barrier", "spin",
};

/* Waits in one way, and releases what it has acquired. */
static inline void wait_by(enum way way)
{
    switch (way) {
    case MUTEX:
        OK(pthread_mutex_lock(&normal));
        OK(pthread_mutex_unlock(&normal));
        break;
    case MUTEX_RECURSIVE:
        OK(pthread_mutex_lock(&recursive));
        OK(pthread_mutex_unlock(&recursive));
        break;
    case MUTEX_ERRORCHECK:
        OK(pthread_mutex_lock(&errorcheck));
        OK(pthread_mutex_unlock(&errorcheck));
        break;
    case MUTEX_UNTIL:
        OK(pthread_mutex_timedlock(&normal, &later));
        OK(pthread_mutex_unlock(&normal));
        break;
    case READ:
        OK(pthread_rwlock_rdlock(&written));
        OK(pthread_rwlock_unlock(&written));
        break;
    case READ_UNTIL:
        OK(pthread_rwlock_timedrdlock(&written, &later));
        OK(pthread_rwlock_unlock(&written));
        break;
    case WRITE:
        OK(pthread_rwlock_wrlock(&read_only));
        OK(pthread_rwlock_unlock(&read_only));
        break;
    case WRITE_UNTIL:
        OK(pthread_rwlock_timedwrlock(&read_only, &later));
        OK(pthread_rwlock_unlock(&read_only));
        break;
    case COND:
    case COND_UNTIL:
        OK(pthread_mutex_lock(&of_cond));
        while (!may_go) {
            OK(way == COND ? pthread_cond_wait(&cond, &of_cond)
                           : pthread_cond_timedwait(&cond, &of_cond, &later));
            spurious += !may_go;
        }
        OK(pthread_mutex_unlock(&of_cond));
        break;
    case SEM:
        OK(sem_wait(&sem));
        OK(sem_post(&sem));
        break;
    case SEM_UNTIL:
        OK(sem_timedwait(&sem, &later));
        OK(sem_post(&sem));
        break;
    case BARRIER: {
        int answer = pthread_barrier_wait(&barrier);
        CHECK(answer == 0 || answer == PTHREAD_BARRIER_SERIAL_THREAD);
        break;
    }
    case SPIN:
        OK(pthread_spin_lock(&spin));
        OK(pthread_spin_unlock(&spin));
        break;
    case ALL_WAYS: break;
    }
}

/* All later waits last until `open_all`; `at_barrier` threads wait by the barrier. */
static inline void close_all(unsigned at_barrier)
{
    may_go = 0;
    later = in_ms(CLOCK_REALTIME, 1000000);
    OK(sem_init(&sem, 0, 0));
    OK(pthread_barrier_init(&barrier, NULL, at_barrier + 1));
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    OK(pthread_mutex_lock(&normal));
    OK(pthread_mutex_lock(&recursive));
    OK(pthread_mutex_lock(&errorcheck));
    OK(pthread_rwlock_rdlock(&read_only));
    OK(pthread_rwlock_wrlock(&written));
    OK(pthread_spin_lock(&spin));
}

static inline void open_all(void)
{
    OK(pthread_mutex_unlock(&normal));
    OK(pthread_mutex_unlock(&recursive));
    OK(pthread_mutex_unlock(&errorcheck));
    OK(pthread_rwlock_unlock(&read_only));
    OK(pthread_rwlock_unlock(&written));
    OK(pthread_spin_unlock(&spin));
    OK(pthread_mutex_lock(&of_cond));
    may_go = 1;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&of_cond));
    OK(sem_post(&sem));
    pthread_barrier_wait(&barrier);
}

/* Starts `of_each` threads for each way below `ways`, with the way's number as their argument, on
 * stacks of `stack` bytes, or of default size for 0. */
static inline void start_all(pthread_t *threads, enum way ways, unsigned of_each, size_t stack, thread_main run)
{
    pthread_attr_t attr;
    OK(pthread_attr_init(&attr));
    if (stack != 0)
        OK(pthread_attr_setstacksize(&attr, stack));
    for (enum way way = 0; way < ways; ++way)
        for (unsigned i = 0; i < of_each; ++i)
            OK(pthread_create(threads++, &attr, run, (void *)(long)way));
}

#endif
