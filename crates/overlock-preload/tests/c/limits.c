/* Timed waits, which cannot make a deadlock, in the scene that the first argument names. */
#include "check.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void limited(pthread_mutex_t *mutex)
{
    struct timespec at = in_ms(CLOCK_REALTIME, 60000);
    OK(pthread_mutex_timedlock(mutex, &at));
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_rwlock_wrlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_mutex_unlock(&a);
    if (strcmp(what, "ends") == 0) {
        pthread_mutex_lock(&b);
        limited(&a);
        pthread_mutex_unlock(&a);
        pthread_mutex_unlock(&b);
        pthread_rwlock_rdlock(&rwlock);
        limited(&a);
        pthread_mutex_unlock(&a);
        pthread_rwlock_unlock(&rwlock);
    } else if (strcmp(what, "behind") == 0) {
        /* A lock acquired by a timed wait is held like any other. */
        limited(&b);
        pthread_mutex_lock(&a);
        pthread_mutex_unlock(&a);
        pthread_mutex_unlock(&b);
    } else {
        return 2;
    }
    puts("done");
    return 0;
}
