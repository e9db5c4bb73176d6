/* A child of fork uses the locks that its parent's threads waited for. */
#define _GNU_SOURCE
#include <overlock.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static ovl_mutex_t mutex = OVL_MUTEX_INIT, cond_mutex = OVL_MUTEX_INIT;
static ovl_rwlock_t read_lock = OVL_RWLOCK_INIT, written_lock = OVL_RWLOCK_INIT;
static ovl_cond_t cond = OVL_COND_INIT;
static int signalled, waiting;

static void *wait_for_mutex(void *nothing) {
    ovl_mutex_lock(&mutex);
    ovl_mutex_unlock(&mutex);
    return nothing;
}

static void *wait_to_write(void *lock) {
    ovl_rwlock_wrlock((ovl_rwlock_t *)lock);
    ovl_rwlock_wrunlock((ovl_rwlock_t *)lock);
    return NULL;
}

static void *wait_for_signal(void *nothing) {
    ovl_mutex_lock(&cond_mutex);
    waiting++;
    while (!signalled) {
        ovl_cond_wait(&cond, &cond_mutex);
    }
    waiting--;
    ovl_mutex_unlock(&cond_mutex);
    return nothing;
}

/* Starts a waiter for each lock. */
static void start(pthread_t *threads) {
    CHECK(pthread_create(&threads[0], NULL, wait_for_mutex, NULL) == 0);
    CHECK(pthread_create(&threads[1], NULL, wait_to_write, &read_lock) == 0);
    CHECK(pthread_create(&threads[2], NULL, wait_to_write, &written_lock) == 0);
    CHECK(pthread_create(&threads[3], NULL, wait_for_signal, NULL) == 0);
    for (int seen = 0; seen == 0;) {
        ovl_mutex_lock(&cond_mutex);
        seen = waiting;
        ovl_mutex_unlock(&cond_mutex);
    }
    /* The others sleep by then. If not, that is no failure. */
    usleep(30000);
}

/* Releases everything, and joins the threads. */
static void finish(pthread_t *threads) {
    ovl_mutex_unlock(&mutex);
    ovl_rwlock_rdunlock(&read_lock);
    ovl_rwlock_wrunlock(&written_lock);
    ovl_mutex_lock(&cond_mutex);
    signalled = 1;
    ovl_mutex_unlock(&cond_mutex);
    ovl_cond_broadcast(&cond);
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    ovl_cond_destroy(&cond);
    CHECK(ovl_mutex_destroy(&mutex) == 0 && ovl_mutex_destroy(&cond_mutex) == 0);
    CHECK(ovl_rwlock_destroy(&read_lock) == 0 && ovl_rwlock_destroy(&written_lock) == 0);
}

int main(void) {
    pthread_t threads[4];
    int status;
    ovl_mutex_lock(&mutex);
    ovl_rwlock_rdlock(&read_lock);
    ovl_rwlock_wrlock(&written_lock);
    start(threads);
    ovl_mutex_lock(&cond_mutex);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(600);
        ovl_mutex_after_fork(&mutex);
        ovl_mutex_after_fork(&cond_mutex);
        ovl_rwlock_after_fork(&read_lock, 0);
        ovl_rwlock_after_fork(&written_lock, 1);
        ovl_cond_after_fork(&cond);
        CHECK(ovl_mutex_trylock(&mutex) == EBUSY && ovl_rwlock_tryrdlock(&written_lock) == EBUSY);
        waiting = 0;
        ovl_mutex_unlock(&cond_mutex);
        start(threads);
        finish(threads);
        exit(0);
    }
    ovl_mutex_unlock(&cond_mutex);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    finish(threads);
    return 0;
}
