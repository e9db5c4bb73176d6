// Two functions lock by one wrapper. In turns the one has the lock while the other wants it.
#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 10 };

static pthread_mutex_t pool = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t meet;

static void rest(int millis)
{
    struct timespec time = { 0, millis * 1000000L };
    nanosleep(&time, NULL);
}

__attribute__((noinline)) static void lock_take(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
    __asm__ volatile("");
}

__attribute__((noinline)) static void refill(int is_first)
{
    lock_take(&pool);
    if (is_first)
        pthread_barrier_wait(&meet);
    rest(is_first ? 30 : 0);
    pthread_mutex_unlock(&pool);
}

__attribute__((noinline)) static void drain(int is_first)
{
    lock_take(&pool);
    if (is_first)
        pthread_barrier_wait(&meet);
    rest(is_first ? 20 : 0);
    pthread_mutex_unlock(&pool);
}

static void *work(void *number)
{
    for (int round = 0; round < ROUNDS; round++) {
        int is_first = (round % 2 != 0) == (number != NULL);
        if (!is_first)
            pthread_barrier_wait(&meet);
        (number != NULL ? drain : refill)(is_first);
        pthread_barrier_wait(&meet);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&meet, NULL, 2);
    pthread_create(&thread, NULL, work, &pool);
    work(NULL);
    pthread_join(thread, NULL);
    printf("%d\n", ROUNDS);
    return 0;
}
