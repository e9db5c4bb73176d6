/* Waiters with a real-time priority on the holder's CPU: they must not keep the holder from running
 * for longer than they spin. Real-time priorities need a permission; without it, nothing is
 * tested. */
#include "objects.h"

#include <sys/resource.h>

enum { WAITERS = 4, SECTIONS = 300, TRIES = 5 };

/* CPU time for each wait: spins take microseconds, and a loop that keeps the holder from running
 * would take seconds. */
static const double MOST_S = 0.0005;

static double cpu_s(clockid_t clock)
{
    struct timespec used;
    clock_gettime(clock, &used);
    return used.tv_sec + used.tv_nsec / 1e9;
}

static void work(double seconds)
{
    double end = cpu_s(CLOCK_THREAD_CPUTIME_ID) + seconds;
    while (cpu_s(CLOCK_THREAD_CPUTIME_ID) < end) {
    }
}

static void acquire(int way)
{
    OK(way == MUTEX ? pthread_mutex_lock(&normal) : pthread_rwlock_wrlock(&written));
}

static void release(int way)
{
    OK(way == MUTEX ? pthread_mutex_unlock(&normal) : pthread_rwlock_unlock(&written));
}

static atomic_int over, way;
static atomic_long waits;
static pthread_barrier_t begun;

static void *wait_in_real_time(void *used)
{
    pthread_barrier_wait(&begun);
    while (!over) {
        acquire(way);
        release(way);
        atomic_fetch_add(&waits, 1);
        sleep_ms(1);
    }
    *(double *)used = cpu_s(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

static void *hold(void *none)
{
    pthread_barrier_wait(&begun);
    for (int i = 0; i < SECTIONS; ++i) {
        acquire(way);
        work(i % 100 == 0 ? 0.1 : 0.0002);
        release(way);
        work(0.0001);
    }
    over = 1;
    return none;
}

/* Returns the CPU time for each wait, in seconds; below 0 where real-time priorities are not
 * permitted. */
static double cost(int by)
{
    way = by;
    over = 0;
    waits = 0;
    cpu_set_t allowed, one;
    OK(pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed));
    int cpu = 0;
    while (!CPU_ISSET(cpu, &allowed))
        ++cpu;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_attr_t attr;
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setaffinity_np(&attr, sizeof one, &one));
    OK(pthread_barrier_init(&begun, NULL, WAITERS + 1));
    pthread_t holder, waiters[WAITERS];
    double used[WAITERS], sum = 0;
    struct sched_param priority = {10};
    OK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED));
    OK(pthread_attr_setschedpolicy(&attr, SCHED_FIFO));
    OK(pthread_attr_setschedparam(&attr, &priority));
    for (int i = 0; i < WAITERS; ++i) {
        int refused = pthread_create(&waiters[i], &attr, wait_in_real_time, &used[i]);
        if (refused != 0) {
            CHECK(refused == EPERM && i == 0);
            return -1;
        }
    }
    priority.sched_priority = 0;
    OK(pthread_attr_setschedpolicy(&attr, SCHED_OTHER));
    OK(pthread_attr_setschedparam(&attr, &priority));
    OK(pthread_create(&holder, &attr, hold, NULL));
    join(holder);
    for (int i = 0; i < WAITERS; ++i) {
        join(waiters[i]);
        sum += used[i];
    }
    return sum / (double)waits;
}

/* Returns whether real-time priorities are permitted. */
static int scene(int by)
{
    double found = 0;
    /* To a guest the time of a stop is CPU time of the thread that ran. */
    for (int tries = 0; tries < TRIES; ++tries) {
        found = cost(by);
        if (found <= MOST_S)
            return found >= 0;
    }
    printf("%f s of the CPU for each wait\n", found);
    exit(1);
}

int main(void)
{
    if (scene(MUTEX))
        scene(WRITE);
    puts("done");
    return 0;
}
