/* Timed waits of a program that sees other clocks than the kernel's. The argument says how many
 * milliseconds of the kernel's clock the waits may take, in all of which LIMIT_MS pass by the
 * program's. */
#include "check.h"

#include <sys/syscall.h>

enum { LIMIT_MS = 1200, TOLERANCE_MS = 20, LATE_MS = 850, TRIES = 20 };

static long kernels_ms(void)
{
    struct timespec now;
    CHECK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) == 0);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t read_held = PTHREAD_RWLOCK_INITIALIZER;

static int cond_wait(clockid_t clock, int by_call)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_condattr_t attr;
    pthread_cond_t cond;
    OK(pthread_condattr_init(&attr));
    OK(pthread_condattr_setclock(&attr, by_call ? CLOCK_REALTIME : clock));
    OK(pthread_cond_init(&cond, &attr));
    OK(pthread_mutex_lock(&mutex));
    struct timespec at = in_ms(clock, LIMIT_MS);
    int answer = by_call ? pthread_cond_clockwait(&cond, &mutex, clock, &at)
                         : pthread_cond_timedwait(&cond, &mutex, &at);
    OK(pthread_mutex_unlock(&mutex));
    return answer;
}

static int sem_wait_until(clockid_t clock, int by_call)
{
    sem_t sem;
    OK(sem_init(&sem, 0, 0));
    struct timespec at = in_ms(clock, LIMIT_MS);
    int answer = by_call ? sem_clockwait(&sem, clock, &at) : sem_timedwait(&sem, &at);
    return answer == 0 ? 0 : errno;
}

enum { WAYS = 10 };

static int wait_by(int way)
{
    struct timespec at = in_ms(CLOCK_REALTIME, LIMIT_MS);
    struct timespec monotonic = in_ms(CLOCK_MONOTONIC, LIMIT_MS);
    switch (way) {
    case 0: return pthread_mutex_timedlock(&held, &at);
    case 1: return pthread_rwlock_timedrdlock(&written, &at);
    case 2: return pthread_rwlock_timedwrlock(&read_held, &at);
    case 3: return cond_wait(CLOCK_REALTIME, 0);
    case 4: return cond_wait(CLOCK_REALTIME, 1);
    case 5: return sem_wait_until(CLOCK_REALTIME, 0);
    case 6: return sem_wait_until(CLOCK_REALTIME, 1);
    case 7: return cond_wait(CLOCK_MONOTONIC, 1);
    case 8: return pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &monotonic);
    default: return sem_wait_until(CLOCK_MONOTONIC, 1);
    }
}

static long expected_ms;
static int all;

static void *wait_in_time(void *way)
{
    int is_monotonic = (long)way >= 7, answer;
    long expected = is_monotonic && !all ? LIMIT_MS : expected_ms, took;
    /* A machine that stops makes some waits late, another clock makes all. */
    for (int tries = 0; tries < TRIES; ++tries) {
        long begin = kernels_ms();
        answer = wait_by((long)way);
        took = kernels_ms() - begin;
        if (answer != ETIMEDOUT || took <= expected + LATE_MS)
            break;
    }
    if (answer != ETIMEDOUT || took < expected - TOLERANCE_MS || took > expected + LATE_MS)
        printf("wait %ld: %s after %ld ms, not %ld\n", (long)way, name_of(answer), took, expected);
    return NULL;
}

int main(int count, char **given)
{
    CHECK(count == 3);
    expected_ms = atol(given[1]);
    all = strcmp(given[2], "all") == 0;
    OK(pthread_mutex_lock(&held));
    OK(pthread_rwlock_wrlock(&written));
    OK(pthread_rwlock_rdlock(&read_held));
    pthread_t threads[WAYS];
    for (long way = 0; way < WAYS; ++way)
        threads[way] = start(wait_in_time, (void *)way);
    for (int way = 0; way < WAYS; ++way)
        join(threads[way]);
    sem_t sem;
    OK(sem_init(&sem, 0, 0));
    struct timespec at = in_ms(CLOCK_REALTIME, LIMIT_MS);
    ANSWER(pthread_mutex_clocklock(&held, CLOCK_BOOTTIME, &at));
    ANSWER(pthread_rwlock_clockrdlock(&written, CLOCK_PROCESS_CPUTIME_ID, &at));
    ANSWER_ERRNO(sem_clockwait(&sem, CLOCK_BOOTTIME, &at));
    at = in_ms(CLOCK_REALTIME, -LIMIT_MS);
    ANSWER(pthread_mutex_timedlock(&held, &at));
    ANSWER_ERRNO(sem_timedwait(&sem, &at));
    /* An error number that is not touched. */
    at = in_ms(CLOCK_REALTIME, 20);
    errno = ENOTTY;
    ANSWER(pthread_mutex_timedlock(&held, &at));
    CHECK(errno == ENOTTY);
    return 0;
}
