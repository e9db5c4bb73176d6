/* Locks with names: what the program reads of them. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <overlock.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 2000 };

static ovl_mutex_t pool = OVL_MUTEX_INIT;
static ovl_mutex_t unnamed = OVL_MUTEX_INIT;
static ovl_rwlock_t rwlock = OVL_RWLOCK_INIT;
static ovl_cond_t cond = OVL_COND_INIT;
static long count, turns, waiting;

static void *work(void *unused) {
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        ovl_mutex_lock(&pool);
        count++;
        ovl_mutex_unlock(&pool);
        ovl_mutex_lock(&unnamed);
        ovl_mutex_unlock(&unnamed);
        if (i % 4 == 0) {
            ovl_rwlock_wrlock(&rwlock);
            ovl_rwlock_wrunlock(&rwlock);
        } else {
            ovl_rwlock_rdlock(&rwlock);
            ovl_rwlock_rdunlock(&rwlock);
        }
    }
    return 0;
}

struct wanted {
    const char *name, *kind;
    ovl_stat_t found;
    int times;
};

static int visit(const ovl_stat_t *figures, void *data) {
    struct wanted *wanted = data;
    if (strcmp(figures->name, wanted->name) == 0 && strcmp(figures->kind, wanted->kind) == 0) {
        wanted->found = *figures;
        wanted->times++;
    }
    return 0;
}

static ovl_stat_t figures(const char *name, const char *kind) {
    struct wanted wanted = {name, kind, {0}, 0};
    CHECK(ovl_stat_each(visit, &wanted) == 0);
    CHECK(wanted.times <= 1);
    return wanted.found;
}

static int stop(const ovl_stat_t *figures, void *data) {
    (void)figures;
    ++*(int *)data;
    return 7;
}

static void *waits(void *unused) {
    (void)unused;
    ovl_mutex_lock(&pool);
    waiting = 1;
    while (turns == 0) {
        ovl_cond_wait(&cond, &pool);
    }
    ovl_mutex_unlock(&pool);
    return 0;
}

static void *tries(void *unused) {
    (void)unused;
    struct timespec at = {0, 0};
    CHECK(ovl_mutex_trylock(&pool) == EBUSY);
    CHECK(ovl_mutex_timedlock(&pool, &at) == ETIMEDOUT);
    return 0;
}

int main(void) {
    int calls = 0;
    if (getenv("OVERLOCK_STAT") == 0) {
        /* Nothing is counted yet. */
        CHECK(ovl_mutex_name(&pool, "pool") == 0);
        ovl_mutex_lock(&pool);
        ovl_mutex_unlock(&pool);
        CHECK(figures("pool", "mutex").acquisitions == 0);
        CHECK(ovl_stat_enable(1) == 0);
    }
    CHECK(ovl_mutex_name(&pool, 0) == EINVAL);
    CHECK(ovl_mutex_name(&pool, "pool") == 0);
    CHECK(ovl_rwlock_name(&rwlock, "index") == 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], 0, work, 0) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], 0) == 0);
    }
    ovl_stat_t of_pool = figures("pool", "mutex");
    CHECK(count == THREADS * ROUNDS);
    CHECK(of_pool.acquisitions == THREADS * ROUNDS);
    CHECK(of_pool.waits <= of_pool.acquisitions && of_pool.gave_up == 0);
    CHECK(of_pool.p50_ns <= of_pool.p90_ns && of_pool.p99_ns <= of_pool.p999_ns);
    CHECK(of_pool.p999_ns <= of_pool.longest_wait_ns);
    CHECK(of_pool.holds > 0 && of_pool.longest_hold_ns <= of_pool.held_ns);
    CHECK(figures("index", "write").acquisitions == THREADS * ROUNDS / 4);
    CHECK(figures("index", "read").acquisitions == THREADS * ROUNDS / 4 * 3);

    /* An attempt that fails is none; a wait that is given up is a wait. */
    ovl_mutex_lock(&pool);
    CHECK(pthread_create(&threads[0], 0, tries, 0) == 0);
    CHECK(pthread_join(threads[0], 0) == 0);
    ovl_mutex_unlock(&pool);
    CHECK(ovl_mutex_trylock(&pool) == 0);
    ovl_mutex_unlock(&pool);
    CHECK(figures("pool", "mutex").acquisitions == THREADS * ROUNDS + 2);
    CHECK(figures("pool", "mutex").waits == of_pool.waits + 1);
    CHECK(figures("pool", "mutex").gave_up == 1);

    /* What a wait for a condition releases, it acquires again. */
    CHECK(pthread_create(&threads[0], 0, waits, 0) == 0);
    long others = 1, is_waiting;
    do {
        ovl_mutex_lock(&pool);
        is_waiting = waiting;
        ovl_mutex_unlock(&pool);
        others++;
    } while (!is_waiting);
    ovl_mutex_lock(&pool);
    turns = 1;
    ovl_cond_broadcast(&cond);
    ovl_mutex_unlock(&pool);
    CHECK(pthread_join(threads[0], 0) == 0);
    uint64_t all = THREADS * ROUNDS + 2 + 1 + (uint64_t)others;
    CHECK(figures("pool", "mutex").acquisitions == all);

    /* A lock that is destroyed has no name. */
    CHECK(ovl_mutex_destroy(&pool) == 0);
    CHECK(ovl_mutex_init(&pool) == 0);
    ovl_mutex_lock(&pool);
    ovl_mutex_unlock(&pool);
    CHECK(figures("pool", "mutex").acquisitions == all);

    /* Nor has one that lies where a lock with a name lay, which nobody destroyed. */
    ovl_mutex_t *memory = malloc(sizeof *memory);
    for (int i = 0; i < ROUNDS; i++) {
        *memory = (ovl_mutex_t)OVL_MUTEX_INIT;
        CHECK(ovl_mutex_name(memory, "gone") == 0);
        ovl_mutex_lock(memory);
        *memory = (ovl_mutex_t)OVL_MUTEX_INIT;
        ovl_mutex_lock(memory);
        CHECK(ovl_mutex_name(memory, "later") == 0);
        ovl_mutex_unlock(memory);
    }
    CHECK(figures("gone", "mutex").acquisitions == ROUNDS);
    CHECK(figures("later", "mutex").acquisitions == 0);
    CHECK(figures("later", "mutex").holds == 0);
    free(memory);

    CHECK(ovl_stat_each(stop, &calls) == 7 && calls == 1);
    CHECK(ovl_stat_each(0, 0) == 0);
    CHECK(ovl_stat_print(-1) == EBADF);
    CHECK(ovl_stat_print(STDOUT_FILENO) == 0);
    return 0;
}
