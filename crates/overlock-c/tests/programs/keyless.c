/* Takes all thread-specific keys, then loads the library: threads wait for a condition, and
 * sleep. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <overlock.h>
#include <pthread.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 8 };

static ovl_mutex_t lock = OVL_MUTEX_INIT;
static ovl_cond_t cond = OVL_COND_INIT;
static int ready, spurious;

static int (*mutex_lock)(ovl_mutex_t *), (*mutex_unlock)(ovl_mutex_t *);
static int (*cond_wait)(ovl_cond_t *, ovl_mutex_t *), (*cond_broadcast)(ovl_cond_t *);

static void *await(void *nothing) {
    mutex_lock(&lock);
    while (!ready) {
        cond_wait(&cond, &lock);
        spurious += !ready;
    }
    mutex_unlock(&lock);
    return nothing;
}

int main(int count, char **arguments) {
    pthread_key_t key;
    CHECK(count == 2);
    while (pthread_key_create(&key, NULL) == 0) {
    }
    void *library = dlopen(arguments[1], RTLD_NOW);
    CHECK(library != NULL);
    *(void **)&mutex_lock = dlsym(library, "ovl_mutex_lock");
    *(void **)&mutex_unlock = dlsym(library, "ovl_mutex_unlock");
    *(void **)&cond_wait = dlsym(library, "ovl_cond_wait");
    *(void **)&cond_broadcast = dlsym(library, "ovl_cond_broadcast");
    CHECK(mutex_lock && mutex_unlock && cond_wait && cond_broadcast);
    for (int round = 0; round < 2; round++) {
        pthread_t threads[THREADS];
        ready = 0;
        for (int i = 0; i < THREADS; i++) {
            CHECK(pthread_create(&threads[i], NULL, await, NULL) == 0);
        }
        usleep(500000);
        mutex_lock(&lock);
        CHECK(spurious < 10);
        ready = 1;
        cond_broadcast(&cond);
        mutex_unlock(&lock);
        for (int i = 0; i < THREADS; i++) {
            CHECK(pthread_join(threads[i], NULL) == 0);
        }
    }
    return 0;
}
