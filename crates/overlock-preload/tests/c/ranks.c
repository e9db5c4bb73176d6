/* Waiters with real-time priorities, on one CPU: who is served first. A right to such priorities is
 * needed; without it the program says so, and nothing is tested. */
#include "objects.h"

enum { WAITERS = 5 };

/* In order of arrival. */
static const int priorities[WAITERS] = {0, 10, 30, 20, 20};

static pthread_mutex_t shut = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t may_begin, empty;
static const char *scene;
static atomic_int waiting, served;
static int order[WAITERS];

static int is(const char *name) { return strcmp(scene, name) == 0; }

static void serve(int number) { order[served++] = number; }

static void *await(void *arg)
{
    int number = (int)(long)arg;
    while (sem_wait(&may_begin) != 0) {
    }
    waiting = gettid();
    struct timespec at = in_ms(CLOCK_REALTIME, 600000);
    if (is("signal") || is("broadcast") || is("broadcast after")) {
        OK(pthread_mutex_lock(&of_cond));
        OK(pthread_cond_wait(&cond, &of_cond));
        serve(number);
        OK(pthread_mutex_unlock(&of_cond));
    } else if (is("timed signal")) {
        OK(pthread_mutex_lock(&of_cond));
        OK(pthread_cond_timedwait(&cond, &of_cond, &at));
        serve(number);
        OK(pthread_mutex_unlock(&of_cond));
    } else if (is("semaphore")) {
        OK(sem_wait(&empty));
        serve(number);
    } else if (is("timed semaphore")) {
        OK(sem_timedwait(&empty, &at));
        serve(number);
    } else if (is("mutex")) {
        OK(pthread_mutex_lock(&shut));
        serve(number);
        OK(pthread_mutex_unlock(&shut));
    } else if (is("timed mutex")) {
        OK(pthread_mutex_timedlock(&shut, &at));
        serve(number);
        OK(pthread_mutex_unlock(&shut));
    } else if (is("barrier")) {
        pthread_barrier_wait(&barrier);
        serve(number);
    } else if (is("read")) {
        OK(pthread_rwlock_rdlock(&rwlock));
        serve(number);
        OK(pthread_rwlock_unlock(&rwlock));
    } else if (is("timed write")) {
        OK(pthread_rwlock_timedwrlock(&rwlock, &at));
        serve(number);
        OK(pthread_rwlock_unlock(&rwlock));
    } else {
        OK(pthread_rwlock_wrlock(&rwlock));
        serve(number);
        OK(pthread_rwlock_unlock(&rwlock));
    }
    return NULL;
}

static int set_priority(pthread_t thread, int priority)
{
    struct sched_param param = {priority};
    return pthread_setschedparam(thread, priority > 0 ? SCHED_FIFO : SCHED_OTHER, &param);
}

/* Each thread begins as an ordinary one, and waits; its priority is changed from outside. */
static void play(const char *name)
{
    scene = name;
    served = 0;
    int is_held = is("mutex") || is("timed mutex");
    int is_written = is("read") || is("write") || is("timed write");
    if (is_held)
        OK(pthread_mutex_lock(&shut));
    if (is_written)
        OK(pthread_rwlock_wrlock(&rwlock));
    if (is("write after read"))
        OK(pthread_rwlock_rdlock(&rwlock));
    OK(pthread_barrier_init(&barrier, NULL, WAITERS + 1));
    pthread_t threads[WAITERS];
    for (long number = 0; number < WAITERS; ++number) {
        waiting = 0;
        threads[number] = start(await, (void *)number);
        sleep_ms(2);
        OK(set_priority(threads[number], priorities[number]));
        sem_post(&may_begin);
        while (waiting == 0)
            sleep_ms(1);
        await_sleep(&waiting);
    }
    if (is("signal") || is("timed signal")) {
        for (int number = 0; number < WAITERS; ++number) {
            OK(pthread_mutex_lock(&of_cond));
            OK(pthread_cond_signal(&cond));
            OK(pthread_mutex_unlock(&of_cond));
            while (served == number)
                sleep_ms(1);
        }
    } else if (is("broadcast")) {
        OK(pthread_mutex_lock(&of_cond));
        OK(pthread_cond_broadcast(&cond));
        OK(pthread_mutex_unlock(&of_cond));
    } else if (is("broadcast after")) {
        OK(pthread_cond_broadcast(&cond));
    } else if (is("semaphore") || is("timed semaphore")) {
        for (int number = 0; number < WAITERS; ++number)
            sem_post(&empty);
    } else if (is_held) {
        OK(pthread_mutex_unlock(&shut));
    } else if (is("barrier")) {
        pthread_barrier_wait(&barrier);
    } else {
        OK(pthread_rwlock_unlock(&rwlock));
    }
    printf("%s:", name);
    for (int number = 0; number < WAITERS; ++number)
        join(threads[number]);
    for (int number = 0; number < WAITERS; ++number)
        printf(" %d", priorities[order[number]]);
    puts("");
}

int main(void)
{
    cpu_set_t allowed, one;
    OK(pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed));
    int cpu = 0;
    while (!CPU_ISSET(cpu, &allowed))
        ++cpu;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    OK(pthread_setaffinity_np(pthread_self(), sizeof one, &one));
    OK(sem_init(&may_begin, 0, 0));
    OK(sem_init(&empty, 0, 0));
    if (set_priority(pthread_self(), 60) != 0) {
        fputs("skipped: a right to real-time priorities is needed\n", stderr);
    } else {
        static const char *const scenes[] = {
            "signal", "timed signal", "broadcast", "broadcast after", "semaphore",
            "timed semaphore", "mutex", "timed mutex", "barrier", "read", "write", "timed write",
            "write after read",
        };
        for (size_t i = 0; i < sizeof scenes / sizeof *scenes; ++i)
            play(scenes[i]);
    }
    puts("done");
    return 0;
}
