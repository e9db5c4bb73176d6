// A thread waits for a mutex that another holds while it sleeps. A third takes it in between,
// before the waiter is awake, and computes with it. Prints in how many rounds it did.
#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 30, SLEEP_MS = 20, WORK_MS = 60 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t meet;
static volatile int has, wants, passed;

static long now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void rest(int millis)
{
    struct timespec time = { 0, millis * 1000000L };
    nanosleep(&time, NULL);
}

static void *sleeper(void *unused)
{
    for (int n = 0; n < ROUNDS && passed < 10; n++) {
        pthread_mutex_lock(&lock);
        has = 0;
        pthread_barrier_wait(&meet);
        while (!wants)
            rest(1);
        rest(SLEEP_MS);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&meet);
        pthread_barrier_wait(&meet);
    }
    return unused;
}

static void *waiter(void *unused)
{
    for (int n = 0; n < ROUNDS && passed < 10; n++) {
        pthread_barrier_wait(&meet);
        wants = 1;
        pthread_mutex_lock(&lock);
        has = 1;
        pthread_mutex_unlock(&lock);
        wants = 0;
        pthread_barrier_wait(&meet);
        pthread_barrier_wait(&meet);
    }
    return unused;
}

static void *passer(void *unused)
{
    for (int n = 0; n < ROUNDS && passed < 10; n++) {
        int owns = 0;
        pthread_barrier_wait(&meet);
        while (!wants && !has)
            rest(1);
        rest(1);
        while (!has && !owns)
            owns = pthread_mutex_trylock(&lock) == 0;
        // Or the waiter has had it.
        int took = owns && !has;
        if (took) {
            long end = now(CLOCK_MONOTONIC) + WORK_MS * 1000000L;
            while (now(CLOCK_MONOTONIC) < end)
                ;
        }
        if (owns)
            pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&meet);
        passed += took;
        pthread_barrier_wait(&meet);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    void *(*const works[])(void *) = { sleeper, waiter, passer };
    pthread_barrier_init(&meet, NULL, 3);
    for (int n = 0; n < 3; n++)
        pthread_create(&threads[n], NULL, works[n], NULL);
    for (int n = 0; n < 3; n++)
        pthread_join(threads[n], NULL);
    printf("%d\n", passed);
    return 0;
}
