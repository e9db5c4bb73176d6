/* A mutex that nobody holds can be tried, whatever waiters have left in it. Fails where the inlined
 * function looks for a mutex that was never waited for: such a mutex keeps flags for a while, and a
 * loop of trylock would never end. */
#define _GNU_SOURCE
#include <overlock.h>
#include <pthread.h>
#include <sched.h>

#include "check.h"

/* Flags stay where waiters come faster than barriers may: on a busy machine, in more rounds. */
enum { ROUNDS = 500, MOST = 100 * ROUNDS, OVER = -1 };

static ovl_mutex_t mutex = OVL_MUTEX_INIT;
static int held, waited;

static void *wait_for_it(void *argument) {
    (void)argument;
    for (int i = 1;; i++) {
        int now;
        while ((now = __atomic_load_n(&held, __ATOMIC_ACQUIRE)) != OVER && now < i) {
            sched_yield();
        }
        if (now == OVER) {
            return NULL;
        }
        ovl_mutex_lock(&mutex);
        ovl_mutex_unlock(&mutex);
        __atomic_store_n(&waited, i, __ATOMIC_RELEASE);
    }
}

int main(void) {
    pthread_t waiter;
    int flags = 0;
    CHECK(pthread_create(&waiter, NULL, wait_for_it, NULL) == 0);
    for (int i = 1; i <= ROUNDS || (flags == 0 && i <= MOST); i++) {
        ovl_mutex_lock(&mutex);
        __atomic_store_n(&held, i, __ATOMIC_RELEASE);
        /* Until it sleeps: its count is in bits 11 and up. Other programs may keep it from that. */
        for (int tries = 0; tries < 1000; tries++) {
            if (__atomic_load_n(&mutex.ovl_state, __ATOMIC_RELAXED) >> 11 != 0) {
                break;
            }
            sched_yield();
        }
        CHECK(ovl_mutex_unlock(&mutex) == 0);
        while (__atomic_load_n(&waited, __ATOMIC_ACQUIRE) < i) {
            sched_yield();
        }
        flags += mutex.ovl_state != 0;
        CHECK(ovl_mutex_trylock(&mutex) == 0);
        CHECK(ovl_mutex_trylock(&mutex) == EBUSY);
        CHECK(ovl_mutex_unlock(&mutex) == 0);
    }
    __atomic_store_n(&held, OVER, __ATOMIC_RELEASE);
    CHECK(pthread_join(waiter, NULL) == 0);
    /* Otherwise the test has tested nothing. */
    CHECK(flags > 0);
    return 0;
}
