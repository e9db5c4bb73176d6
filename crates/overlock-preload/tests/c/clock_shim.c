/* A library that fakes the clocks of a program, as faketime and its like do: CLOCK_REALTIME, and
 * with ALL the monotonic clock too, lies SHIFT seconds ahead and runs RATE times as fast. With
 * WAITS it also converts two of the timed waits, and calls the next ones. */
#include "check.h"

#include <sys/syscall.h>

#ifndef SHIFT
#define SHIFT 0
#endif
#ifndef RATE
#define RATE 1
#endif

/* As a library's internals may: with a lock of its own. */
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

static long long kernels(clockid_t clock)
{
    struct timespec now;
    CHECK(syscall(SYS_clock_gettime, clock, &now) == 0);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static long long begun[2];

__attribute__((constructor)) static void begin(void)
{
    begun[0] = kernels(CLOCK_REALTIME);
    begun[1] = kernels(CLOCK_MONOTONIC);
}

static int is_faked(clockid_t clock)
{
#ifdef ALL
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
#else
    return clock == CLOCK_REALTIME;
#endif
}

int clock_gettime(clockid_t clock, struct timespec *to)
{
    long long now = kernels(clock);
    if (is_faked(clock)) {
        pthread_mutex_lock(&own);
        long long from = begun[clock];
        now = from + (now - from) * RATE + SHIFT * 1000000000LL;
        pthread_mutex_unlock(&own);
    }
    to->tv_nsec = (now % 1000000000 + 1000000000) % 1000000000;
    to->tv_sec = (now - to->tv_nsec) / 1000000000;
    errno = ERANGE;
    return 0;
}

#ifdef WAITS
static struct timespec convert(const struct timespec *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    long long left = (at->tv_sec - now.tv_sec) * 1000000000LL + at->tv_nsec - now.tv_nsec;
    long long end = kernels(CLOCK_REALTIME) + left / RATE;
    return (struct timespec){end / 1000000000, end % 1000000000};
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *at)
{
    int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *) =
        (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec end = convert(at);
    return next(cond, mutex, &end);
}

int sem_timedwait(sem_t *sem, const struct timespec *at)
{
    int (*next)(sem_t *, const struct timespec *) = (int (*)(sem_t *, const struct timespec *))dlsym(RTLD_NEXT, "sem_timedwait");
    struct timespec end = convert(at);
    return next(sem, &end);
}
#endif
