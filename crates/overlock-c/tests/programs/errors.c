/* The results of every function; static, zeroed and initialised locks behave the same. */
#define _GNU_SOURCE
#include <overlock.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

static ovl_mutex_t mutex = OVL_MUTEX_INIT;
static ovl_spinlock_t spinlock = OVL_SPINLOCK_INIT;
static ovl_rwlock_t rwlock = OVL_RWLOCK_INIT;
static ovl_cond_t cond = OVL_COND_INIT;

static const struct timespec past = { 0, 0 };
static const struct timespec before_the_start = { -5, 0 };
static const struct timespec wrong[] = { { 1, -1 }, { 1, 1000000000 } };

/* Runs in another thread while the main one holds everything. */
static void *excluded(void *reading) {
    CHECK(ovl_mutex_trylock(&mutex) == EBUSY);
    CHECK(ovl_spinlock_trylock(&spinlock) == EBUSY);
    CHECK(ovl_rwlock_trywrlock(&rwlock) == EBUSY);
    CHECK(ovl_mutex_destroy(&mutex) == EBUSY);
    CHECK(ovl_spinlock_destroy(&spinlock) == EBUSY);
    CHECK(ovl_rwlock_destroy(&rwlock) == EBUSY);
    for (int i = 0; i < 2; i++) {
        CHECK(ovl_mutex_timedlock(&mutex, &wrong[i]) == EINVAL);
        CHECK(ovl_spinlock_timedlock(&spinlock, &wrong[i]) == EINVAL);
        CHECK(ovl_rwlock_timedwrlock(&rwlock, &wrong[i]) == EINVAL);
        CHECK(ovl_rwlock_timedrdlock(&rwlock, &wrong[i]) == EINVAL);
    }
    CHECK(ovl_mutex_timedlock(&mutex, &past) == ETIMEDOUT);
    CHECK(ovl_mutex_timedlock(&mutex, &before_the_start) == ETIMEDOUT);
    CHECK(ovl_rwlock_timedwrlock(&rwlock, &past) == ETIMEDOUT);
    CHECK(ovl_mutex_timedlock(&mutex, NULL) == EINVAL);

    long long start = now_ns();
    struct timespec soon = later(30);
    CHECK(ovl_mutex_timedlock(&mutex, &soon) == ETIMEDOUT);
    CHECK(now_ns() - start >= 30000000);
    start = now_ns();
    soon = later(30);
    CHECK(ovl_rwlock_timedwrlock(&rwlock, &soon) == ETIMEDOUT);
    CHECK(now_ns() - start >= 30000000);

    if (reading) {
        CHECK(ovl_rwlock_tryrdlock(&rwlock) == 0);
        CHECK(ovl_rwlock_rdunlock(&rwlock) == 0);
        soon = later(5000);
        CHECK(ovl_rwlock_timedrdlock(&rwlock, &soon) == 0);
        CHECK(ovl_rwlock_rdunlock(&rwlock) == 0);
    } else {
        CHECK(ovl_rwlock_tryrdlock(&rwlock) == EBUSY);
        soon = later(30);
        start = now_ns();
        CHECK(ovl_rwlock_timedrdlock(&rwlock, &soon) == ETIMEDOUT);
        CHECK(now_ns() - start >= 30000000);
    }
    return NULL;
}

static void elsewhere(void *(*work)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(void) {
    errno = 77;
    for (int i = 0; i < 2; i++) {
        struct timespec soon = later(5000);
        CHECK(ovl_mutex_lock(&mutex) == 0);
        CHECK(ovl_spinlock_timedlock(&spinlock, &soon) == 0);
        CHECK(ovl_rwlock_wrlock(&rwlock) == 0);
        elsewhere(excluded, NULL);
        CHECK(ovl_mutex_unlock(&mutex) == 0);
        CHECK(ovl_spinlock_unlock(&spinlock) == 0);
        CHECK(ovl_rwlock_wrunlock(&rwlock) == 0);

        CHECK(ovl_mutex_trylock(&mutex) == 0);
        CHECK(ovl_spinlock_trylock(&spinlock) == 0);
        CHECK(ovl_rwlock_rdlock(&rwlock) == 0);
        elsewhere(excluded, &mutex);
        CHECK(ovl_rwlock_rdunlock(&rwlock) == 0);
        CHECK(ovl_rwlock_timedwrlock(&rwlock, &past) == 0);
        CHECK(ovl_rwlock_wrunlock(&rwlock) == 0);
        CHECK(ovl_rwlock_trywrlock(&rwlock) == 0);
        CHECK(ovl_rwlock_wrunlock(&rwlock) == 0);

        /* With the mutex, which a refused deadline leaves locked. */
        CHECK(ovl_cond_timedwait(&cond, &mutex, &wrong[0]) == EINVAL);
        CHECK(ovl_cond_timedwait(&cond, &mutex, NULL) == EINVAL);
        CHECK(ovl_cond_timedwait(&cond, &mutex, &past) == ETIMEDOUT);
        long long start = now_ns();
        soon = later(30);
        CHECK(ovl_cond_timedwait(&cond, &mutex, &soon) == ETIMEDOUT);
        CHECK(now_ns() - start >= 30000000);
        CHECK(ovl_mutex_trylock(&mutex) == EBUSY);
        CHECK(ovl_cond_signal(&cond) == 0 && ovl_cond_broadcast(&cond) == 0);

        CHECK(ovl_mutex_unlock(&mutex) == 0 && ovl_spinlock_unlock(&spinlock) == 0);
        CHECK(ovl_mutex_destroy(&mutex) == 0 && ovl_spinlock_destroy(&spinlock) == 0);
        CHECK(ovl_rwlock_destroy(&rwlock) == 0 && ovl_cond_destroy(&cond) == 0);

        /* The second round begins with garbage that was initialised. */
        memset(&mutex, 0x5a, sizeof mutex);
        memset(&spinlock, 0x5a, sizeof spinlock);
        memset(&rwlock, 0x5a, sizeof rwlock);
        memset(&cond, 0x5a, sizeof cond);
        CHECK(ovl_mutex_init(&mutex) == 0 && ovl_spinlock_init(&spinlock) == 0);
        CHECK(ovl_rwlock_init(&rwlock) == 0 && ovl_cond_init(&cond) == 0);
    }
    CHECK(errno == 77);
    CHECK(strcmp(ovl_version(), OVL_VERSION) == 0);
    return 0;
}
