// Takes two locks in both orders, one after the other, so that no thread waits; then a thread exits
// with a lock held.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t kept = PTHREAD_MUTEX_INITIALIZER;

static void *one_way(void *unused) {
    pthread_rwlock_wrlock(&rwlock);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_rwlock_unlock(&rwlock);
    return unused;
}

static void *keeps(void *unused) {
    pthread_mutex_lock(&kept);
    return unused;
}

static void in_a_thread(void *(*what)(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, what, NULL);
    pthread_join(thread, NULL);
}

int main(void) {
    in_a_thread(one_way);
    in_a_thread(one_way);
    // A recursive read lock.
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&mutex);
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        pthread_mutex_unlock(&mutex);
    }
    in_a_thread(keeps);
    puts("done");
    return 0;
}
