/* Sets the system's clock while threads wait with deadlines of it, and then sets it right again. */
#include "check.h"

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t of_cond = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t read_held = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t write_held = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t empty;

static int mutex_wait(struct timespec *at) { return pthread_mutex_timedlock(&held, at); }
static int mutex_wait_clock(struct timespec *at) { return pthread_mutex_clocklock(&held, CLOCK_REALTIME, at); }
static int read_wait(struct timespec *at) { return pthread_rwlock_timedrdlock(&write_held, at); }
static int write_wait(struct timespec *at) { return pthread_rwlock_timedwrlock(&read_held, at); }
static int sem_wait_until(struct timespec *at) { return sem_timedwait(&empty, at) == 0 ? 0 : errno; }

static int cond_wait_until(struct timespec *at)
{
    OK(pthread_mutex_lock(&of_cond));
    int answer = pthread_cond_timedwait(&cond, &of_cond, at);
    OK(pthread_mutex_unlock(&of_cond));
    return answer;
}

static int (*const waits[])(struct timespec *) = {
    mutex_wait, mutex_wait_clock, read_wait, write_wait, sem_wait_until, cond_wait_until,
};
#define WAITS ((int)(sizeof waits / sizeof *waits))

static long limit_ms;
static atomic_int answers[WAITS];
static atomic_int begun, ended;

static void *wait_until(void *which)
{
    struct timespec at = in_ms(CLOCK_REALTIME, limit_ms);
    atomic_fetch_add(&begun, 1);
    atomic_store(&answers[(long)which], waits[(long)which](&at));
    atomic_fetch_add(&ended, 1);
    return NULL;
}

/* Returns how many waits with this limit have ended a while after the clock was set. */
static int ended_after(long limit, long set_ms, long while_ms)
{
    limit_ms = limit;
    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
    pthread_t threads[WAITS];
    for (long i = 0; i < WAITS; i++)
        threads[i] = start(wait_until, (void *)i);
    while (atomic_load(&begun) < WAITS)
        sleep_ms(1);
    sleep_ms(50);
    struct timespec then = in_ms(CLOCK_REALTIME, set_ms);
    CHECK(clock_settime(CLOCK_REALTIME, &then) == 0);
    sleep_ms(while_ms);
    int count = atomic_load(&ended);
    struct timespec again = in_ms(CLOCK_REALTIME, -set_ms);
    CHECK(clock_settime(CLOCK_REALTIME, &again) == 0);
    for (int i = 0; i < WAITS; i++) {
        join(threads[i]);
        printf("%d: %s\n", i, name_of(atomic_load(&answers[i])));
    }
    return count;
}

int main(void)
{
    OK(pthread_mutex_lock(&held));
    OK(pthread_rwlock_rdlock(&read_held));
    OK(pthread_rwlock_wrlock(&write_held));
    OK(sem_init(&empty, 0, 0));
    printf("set forward: %d have ended\n", ended_after(2000, 60000, 300));
    printf("set back: %d have ended\n", ended_after(400, -60000, 1000));
    return 0;
}
