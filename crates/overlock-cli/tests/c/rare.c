// A lock that is held for a moment, but for once, in an acquisition that is no sample: then for
// 40 ms, while another thread waits.
#include <pthread.h>
#include <time.h>

enum { ALL = 2000, LONG = 100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t meet;

static void *waiter(void *unused)
{
    pthread_barrier_wait(&meet);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    pthread_barrier_wait(&meet);
    return unused;
}

int main(void)
{
    struct timespec time = { 0, 40000000L };
    pthread_t thread;
    pthread_barrier_init(&meet, NULL, 2);
    pthread_create(&thread, NULL, waiter, NULL);
    for (int n = 0; n < ALL; n++) {
        pthread_mutex_lock(&lock);
        if (n == LONG) {
            pthread_barrier_wait(&meet);
            nanosleep(&time, NULL);
        }
        pthread_mutex_unlock(&lock);
        if (n == LONG)
            pthread_barrier_wait(&meet);
    }
    pthread_join(thread, NULL);
    return 0;
}
