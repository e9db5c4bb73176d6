/* A bounded queue on two condition variables, then a broadcast, then condition variables that are
 * freed right after their notification. */
#define _GNU_SOURCE
#include <overlock.h>
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, ITEMS = 5000, ROOM = 3 };

static ovl_mutex_t lock = OVL_MUTEX_INIT;
static ovl_cond_t filled = OVL_COND_INIT, drained = OVL_COND_INIT;
static int queue[ROOM], length;
static long long produced, consumed;

static void *produce(void *nothing) {
    for (int item = 1; item <= ITEMS; item++) {
        ovl_mutex_lock(&lock);
        while (length == ROOM) {
            ovl_cond_wait(&drained, &lock);
        }
        queue[length++] = item;
        produced += item;
        ovl_mutex_unlock(&lock);
        ovl_cond_signal(&filled);
    }
    return nothing;
}

static void *consume(void *nothing) {
    for (int i = 0; i < ITEMS; i++) {
        ovl_mutex_lock(&lock);
        while (length == 0) {
            struct timespec end = later(20000);
            CHECK(ovl_cond_timedwait(&filled, &lock, &end) == 0);
        }
        consumed += queue[--length];
        ovl_cond_signal(&drained);
        ovl_mutex_unlock(&lock);
    }
    return nothing;
}

static int gone, waiting;

static void *wait_for_all(void *cond) {
    ovl_mutex_lock(&lock);
    waiting++;
    while (!gone) {
        ovl_cond_wait((ovl_cond_t *)cond, &lock);
    }
    waiting--;
    ovl_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[2 * THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[2 * i], NULL, produce, NULL) == 0);
        CHECK(pthread_create(&threads[2 * i + 1], NULL, consume, NULL) == 0);
    }
    for (int i = 0; i < 2 * THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(length == 0 && produced == consumed && produced == (long long)THREADS * ITEMS * (ITEMS + 1) / 2);

    for (int round = 0; round < 20; round++) {
        ovl_cond_t *cond = calloc(1, sizeof *cond);
        CHECK(cond != NULL);
        for (int i = 0; i < THREADS; i++) {
            CHECK(pthread_create(&threads[i], NULL, wait_for_all, cond) == 0);
        }
        for (;;) {
            ovl_mutex_lock(&lock);
            gone = waiting == THREADS;
            if (gone) {
                break;
            }
            ovl_mutex_unlock(&lock);
        }
        /* With the mutex and without it. */
        if (round % 2 == 0) {
            ovl_mutex_unlock(&lock);
        }
        ovl_cond_broadcast(cond);
        CHECK(ovl_cond_destroy(cond) == 0);
        for (unsigned i = 0; i < sizeof *cond; i++) {
            ((volatile char *)cond)[i] = 0x5a;
        }
        if (round % 2 != 0) {
            ovl_mutex_unlock(&lock);
        }
        for (int i = 0; i < THREADS; i++) {
            CHECK(pthread_join(threads[i], NULL) == 0);
        }
        for (unsigned i = 0; i < sizeof *cond; i++) {
            CHECK(((volatile char *)cond)[i] == 0x5a);
        }
        free(cond);
        gone = 0;
        CHECK(waiting == 0);
    }
    return 0;
}
