/* The thread that drops the last reference frees the mutex, though the unlock of the previous owner
 * may not have returned. It fills the memory, and nobody may change it after that.
 *
 * The time between a release and the end of its unlock is some nanoseconds. So signals interrupt
 * the threads all the time, for long: owners lose their CPU, others sleep, and unlocks have waiters
 * to wake. */
#define _GNU_SOURCE
#include <overlock.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "check.h"

enum { THREADS = 3, OBJECTS = 80000 };

struct object {
    ovl_mutex_t lock;
    int references;
};

static struct object objects[OBJECTS];
static int ended;

static void stay(int signal) {
    (void)signal;
    sched_yield();
}

static void *drop(void *nothing) {
    for (int i = 0; i < OBJECTS; i++) {
        struct object *object = &objects[i];
        ovl_mutex_lock(&object->lock);
        int last = --object->references == 0;
        ovl_mutex_unlock(&object->lock);
        if (last) {
            memset(&object->lock, 0x5a, sizeof object->lock);
        }
    }
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
    return nothing;
}

int main(void) {
    pthread_t threads[THREADS];
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = stay;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < OBJECTS; i++) {
        objects[i].references = THREADS;
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, drop, NULL) == 0);
    }
    while (__atomic_load_n(&ended, __ATOMIC_RELAXED) < THREADS) {
        for (int i = 0; i < THREADS; i++) {
            pthread_kill(threads[i], SIGUSR1);
        }
        sched_yield();
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    for (int i = 0; i < OBJECTS; i++) {
        for (unsigned j = 0; j < sizeof objects[i].lock; j++) {
            CHECK(((unsigned char *)&objects[i].lock)[j] == 0x5a);
        }
    }
    return 0;
}
