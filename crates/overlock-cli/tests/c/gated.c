// Takes two locks in both orders, but only while it holds a third.

#include <pthread.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void *both(void *first) {
    pthread_mutex_t *second = first == &locks[0] ? &locks[1] : &locks[0];
    pthread_mutex_lock(&gate);
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
    pthread_mutex_unlock(&gate);
    return NULL;
}

int main(void) {
    pthread_t thread;
    both(&locks[0]);
    pthread_create(&thread, NULL, both, &locks[1]);
    pthread_join(thread, NULL);
    return 0;
}
