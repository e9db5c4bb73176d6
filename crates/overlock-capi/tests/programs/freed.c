/* The last one to drop a reference frees the mutex, though the unlock of the one before may not have returned. A write after that shows: whoever
 * frees the memory fills it, and nobody else may change it. */
#define _GNU_SOURCE
#include <overlock.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

enum { THREADS = 4, OBJECTS = 3000 };

struct object {
    ovl_mutex_t lock;
    int references;
};

static struct object objects[OBJECTS];
static pthread_barrier_t start;

static void *drop(void *nothing) {
    for (int i = 0; i < OBJECTS; i++) {
        struct object *object = &objects[i];
        if (i % 100 == 0) {
            pthread_barrier_wait(&start);
        }
        ovl_mutex_lock(&object->lock);
        int last = --object->references == 0;
        ovl_mutex_unlock(&object->lock);
        if (last) {
            memset(&object->lock, 0x5a, sizeof object->lock);
        }
    }
    return nothing;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < OBJECTS; i++) {
        objects[i].references = THREADS;
    }
    CHECK(pthread_barrier_init(&start, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, drop, NULL) == 0);
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
