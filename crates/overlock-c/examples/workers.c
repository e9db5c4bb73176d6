/* Workers take jobs from a queue until it is closed. Each wait has a limit, so they notice a queue
 * that stays empty.
 *
 *     cc -O2 workers.c $(pkg-config --cflags --libs overlock) -o workers
 */
#define _GNU_SOURCE
#include <overlock.h>
#include <pthread.h>
#include <stdio.h>

enum { WORKERS = 8, JOBS = 100000, ROOM = 64 };

static ovl_mutex_t lock = OVL_MUTEX_INIT;
static ovl_cond_t filled = OVL_COND_INIT, drained = OVL_COND_INIT;
static int jobs[ROOM], length, closed;

/* Work done, by the jobs' last digits: mostly read. */
static ovl_rwlock_t done_lock = OVL_RWLOCK_INIT;
static long done[10];

static struct timespec in_a_second(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec++;
    return time;
}

/* 0 if the queue is closed and empty. */
static int take_job(void) {
    int job = 0;
    ovl_mutex_lock(&lock);
    while (length == 0 && !closed) {
        const struct timespec deadline = in_a_second();
        if (ovl_cond_timedwait(&filled, &lock, &deadline) == ETIMEDOUT) {
            fputs("no job for a second\n", stderr);
        }
    }
    if (length > 0) {
        job = jobs[--length];
    }
    ovl_mutex_unlock(&lock);
    ovl_cond_signal(&drained);
    return job;
}

static void *work(void *nothing) {
    int job;
    while ((job = take_job()) != 0) {
        ovl_rwlock_wrlock(&done_lock);
        done[job % 10]++;
        ovl_rwlock_wrunlock(&done_lock);
    }
    return nothing;
}

int main(void) {
    pthread_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        if (pthread_create(&workers[i], NULL, work, NULL) != 0) {
            return 1;
        }
    }
    for (int job = 1; job <= JOBS; job++) {
        ovl_mutex_lock(&lock);
        while (length == ROOM) {
            ovl_cond_wait(&drained, &lock);
        }
        jobs[length++] = job;
        ovl_mutex_unlock(&lock);
        ovl_cond_signal(&filled);
    }
    ovl_mutex_lock(&lock);
    closed = 1;
    ovl_mutex_unlock(&lock);
    ovl_cond_broadcast(&filled);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i], NULL);
    }
    long sum = 0;
    ovl_rwlock_rdlock(&done_lock);
    for (int digit = 0; digit < 10; digit++) {
        sum += done[digit];
    }
    ovl_rwlock_rdunlock(&done_lock);
    printf("%ld jobs done\n", sum);
    return 0;
}
