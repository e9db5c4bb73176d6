// One mutex in memory from malloc, that no call has initialised, for which threads wait at two
// places.
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "asleep.h"

static pthread_mutex_t *lock;
static pthread_barrier_t meet;
static volatile pid_t ids[2];

__attribute__((noinline)) static void keeps(void) {
    pthread_mutex_lock(lock);
    pthread_barrier_wait(&meet);
    while (!is_asleep(ids[0]) || !is_asleep(ids[1]))
        usleep(1000);
    usleep(50000);
    pthread_mutex_unlock(lock);
}

__attribute__((noinline)) static void one(void) {
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
}

__attribute__((noinline)) static void other(void) {
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
}

static void *waits(void *is_other) {
    pthread_barrier_wait(&meet);
    ids[is_other != NULL] = (pid_t)syscall(SYS_gettid);
    if (is_other)
        other();
    else
        one();
    return 0;
}

int main(void) {
    pthread_t threads[2];
    lock = calloc(1, sizeof *lock);
    pthread_barrier_init(&meet, 0, 3);
    pthread_create(&threads[0], 0, waits, 0);
    pthread_create(&threads[1], 0, waits, &meet);
    keeps();
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
