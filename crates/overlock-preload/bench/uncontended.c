/* The cost of uncontended locks: nanoseconds for each pair of calls, in the fastest of many tries,
 * one line for each kind. With the name of a library as its argument, it runs itself alternately
 * with that preloaded and without, and prints the ratios of glibc's time to ours: above 1 where
 * ours is faster.
 *
 *   cc -O2 -pthread uncontended.c -o uncontended
 *   ./uncontended target/release/liboverlock_preload.so [ROUNDS]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KINDS = 9, TRIES = 40, PAIRS = 100000, MOST = 1000 };

static const char *const names[KINDS] = {
    "mutex", "recursive", "errorcheck", "trylock", "recursive trylock", "recursive again", "read", "write", "semaphore",
};

static pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem;

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1e9 + at.tv_nsec;
}

#define TIME(first, second)                          \
    do {                                             \
        for (int i = 0; i < PAIRS; ++i) {            \
            first;                                   \
            second;                                  \
        }                                            \
    } while (0)

static double measure(int kind)
{
    double start = now();
    switch (kind) {
    case 0: TIME(pthread_mutex_lock(&normal), pthread_mutex_unlock(&normal)); break;
    case 1: TIME(pthread_mutex_lock(&recursive), pthread_mutex_unlock(&recursive)); break;
    case 2: TIME(pthread_mutex_lock(&errorcheck), pthread_mutex_unlock(&errorcheck)); break;
    case 3: TIME(pthread_mutex_trylock(&normal), pthread_mutex_unlock(&normal)); break;
    case 4: TIME(pthread_mutex_trylock(&recursive), pthread_mutex_unlock(&recursive)); break;
    case 5:
        pthread_mutex_lock(&recursive);
        TIME(pthread_mutex_lock(&recursive), pthread_mutex_unlock(&recursive));
        pthread_mutex_unlock(&recursive);
        break;
    case 6: TIME(pthread_rwlock_rdlock(&rwlock), pthread_rwlock_unlock(&rwlock)); break;
    case 7: TIME(pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock)); break;
    case 8: TIME(sem_wait(&sem), sem_post(&sem)); break;
    }
    return (now() - start) / PAIRS;
}

static void *waits(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* In a process with two threads, since glibc has shortcuts for a single one. */
static int child(void)
{
    static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t other;
    pthread_mutex_lock(&gate);
    if (pthread_create(&other, NULL, waits, &gate) != 0 || sem_init(&sem, 0, 1) != 0)
        return 1;
    for (int kind = 0; kind < KINDS; ++kind) {
        double best = 1e9;
        for (int i = 0; i < TRIES; ++i) {
            double time = measure(kind);
            best = time < best ? time : best;
        }
        printf("%f\n", best);
    }
    pthread_mutex_unlock(&gate);
    pthread_join(other, NULL);
    return 0;
}

static int by_size(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static int round_of(const char *self, const char *preload, double *times)
{
    char command[8192];
    snprintf(command, sizeof command, "LD_PRELOAD='%s' '%s'", preload, self);
    FILE *from = popen(command, "r");
    if (from == NULL)
        return 0;
    int read = 0;
    while (read < KINDS && fscanf(from, "%lf", &times[read]) == 1)
        ++read;
    return pclose(from) == 0 && read == KINDS;
}

int main(int count, char **arguments)
{
    if (count < 2)
        return child();
    int rounds = count > 2 ? atoi(arguments[2]) : 15;
    if (rounds < 1 || rounds > MOST)
        return 2;
    static double ours[MOST][KINDS], ratios[KINDS][MOST], times[KINDS][MOST];
    for (int i = 0; i < rounds; ++i) {
        double theirs[KINDS];
        if (!round_of(arguments[0], arguments[1], ours[i]) || !round_of(arguments[0], "", theirs)) {
            fputs("a round failed\n", stderr);
            return 1;
        }
        for (int kind = 0; kind < KINDS; ++kind) {
            ratios[kind][i] = theirs[kind] / ours[i][kind];
            times[kind][i] = ours[i][kind];
        }
    }
    for (int kind = 0; kind < KINDS; ++kind) {
        qsort(ratios[kind], rounds, sizeof(double), by_size);
        qsort(times[kind], rounds, sizeof(double), by_size);
        printf("%-18s %5.2f  (%5.2f to %5.2f; ours %.2f ns)\n", names[kind], ratios[kind][rounds / 2], ratios[kind][0], ratios[kind][rounds - 1], times[kind][rounds / 2]);
    }
    return 0;
}
