/* Whether the objects have the C library's contents after use: its condition counts its waiters for
 * ever, and its barrier leaves the end of the object alone. */
#include "check.h"

int main(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    struct timespec at = in_ms(CLOCK_REALTIME, 1);
    OK(pthread_mutex_lock(&mutex));
    printf("owner is known: %d\n", ((int *)&mutex)[2] == gettid());
    CHECK(pthread_cond_timedwait(&cond, &mutex, &at) == ETIMEDOUT);
    OK(pthread_mutex_unlock(&mutex));
    printf("waiters are counted: %d\n", *(long *)&cond != 0);
    pthread_barrier_t barrier;
    memset(&barrier, 0, sizeof barrier);
    OK(pthread_barrier_init(&barrier, NULL, 1));
    CHECK(pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD);
    printf("end of the barrier: %d\n", ((int *)&barrier)[7]);
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    OK(pthread_rwlock_wrlock(&lock));
    printf("writer is known: %d\n", ((int *)&lock)[6] == gettid());
    OK(pthread_rwlock_unlock(&lock));
    return 0;
}
