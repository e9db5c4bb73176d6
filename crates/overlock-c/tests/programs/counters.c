/* Threads count under every lock. Some of them call the library, the others inline: both are the
 * same lock. */
#define _GNU_SOURCE
#include <overlock.h>
#include <pthread.h>

#include "check.h"

enum { THREADS = 6, ROUNDS = 4000 };

static ovl_mutex_t mutex = OVL_MUTEX_INIT;
static ovl_spinlock_t spinlock = OVL_SPINLOCK_INIT;
static ovl_rwlock_t rwlock = OVL_RWLOCK_INIT;
static pthread_mutex_t glibc = PTHREAD_MUTEX_INITIALIZER;

/* Plain, to show torn and lost writes. */
static struct { long left, middle, right; } by_mutex, by_spinlock, by_rwlock;
static long by_glibc, timeouts;

static int (*volatile called_lock)(ovl_mutex_t *) = ovl_mutex_lock;
static int (*volatile called_unlock)(ovl_mutex_t *) = ovl_mutex_unlock;

#define COUNT(what) \
    do { \
        CHECK(what.left == what.middle && what.middle == what.right); \
        what.left++; \
        __asm__ volatile("" ::: "memory"); \
        what.middle++; \
        __asm__ volatile("" ::: "memory"); \
        what.right++; \
    } while (0)

static void *count(void *argument) {
    long me = (long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        if (me % 2) {
            ovl_mutex_lock(&mutex);
            COUNT(by_mutex);
            ovl_mutex_unlock(&mutex);
        } else {
            called_lock(&mutex);
            COUNT(by_mutex);
            called_unlock(&mutex);
        }

        struct timespec soon = later(i % 64 == 0 ? 0 : 10000);
        switch (i % 3) {
        case 0:
            ovl_spinlock_lock(&spinlock);
            break;
        case 1:
            while (ovl_spinlock_trylock(&spinlock) != 0) {
                sched_yield();
            }
            break;
        default:
            while (ovl_spinlock_timedlock(&spinlock, &soon) != 0) {
                __atomic_fetch_add(&timeouts, 1, __ATOMIC_RELAXED);
            }
        }
        COUNT(by_spinlock);
        ovl_spinlock_unlock(&spinlock);

        /* Mostly read at first, so that readers enter without counting, then written. */
        if (i > ROUNDS / 2 && i % 8 == 0) {
            ovl_rwlock_wrlock(&rwlock);
            COUNT(by_rwlock);
            ovl_rwlock_wrunlock(&rwlock);
        } else {
            ovl_rwlock_rdlock(&rwlock);
            CHECK(by_rwlock.left == by_rwlock.middle && by_rwlock.middle == by_rwlock.right);
            ovl_rwlock_rdunlock(&rwlock);
        }

        pthread_mutex_lock(&glibc);
        by_glibc++;
        pthread_mutex_unlock(&glibc);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, count, (void *)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    const long all = (long)THREADS * ROUNDS;
    CHECK(by_mutex.left == all && by_mutex.right == all);
    CHECK(by_spinlock.left == all && by_spinlock.right == all);
    CHECK(by_rwlock.left == THREADS * ((ROUNDS / 2 - 1) / 8) && by_rwlock.right == by_rwlock.left);
    CHECK(by_glibc == all);
    CHECK(ovl_mutex_destroy(&mutex) == 0 && ovl_spinlock_destroy(&spinlock) == 0 && ovl_rwlock_destroy(&rwlock) == 0);
    return 0;
}
