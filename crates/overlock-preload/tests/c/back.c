/* A thread comes back from a condition to a mutex whose owner waits for another one of its. The
 * program ends while they wait. The argument is the number of threads that wait before it. */
#include "check.h"

static pthread_mutex_t kept = PTHREAD_MUTEX_INITIALIZER, released = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_int back, owner;

static void *waits(void *sleeper)
{
    if (sleeper == &back) {
        OK(pthread_mutex_lock(&kept));
    }
    OK(pthread_mutex_lock(&released));
    atomic_store((atomic_int *)sleeper, gettid());
    OK(pthread_cond_wait(&changed, &released));
    OK(pthread_mutex_unlock(&released));
    return sleeper;
}

static void *owns(void *none)
{
    OK(pthread_mutex_lock(&released));
    OK(pthread_cond_broadcast(&changed));
    atomic_store(&owner, gettid());
    OK(pthread_mutex_lock(&kept));
    return none;
}

/* How often the thread has gone to sleep. */
static long sleeps_of(int thread)
{
    char path[64], line[128];
    long sleeps = -1;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
    FILE *status = fopen(path, "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL) {
        sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
    }
    fclose(status);
    CHECK(sleeps >= 0);
    return sleeps;
}

int main(int count, char **words)
{
    static atomic_int others[8];
    CHECK(count == 2);
    /* A thread that is not woken should not hang the test. */
    alarm(60);
    for (int other = 0; other < atoi(words[1]); other++) {
        start(waits, &others[other]);
        await_sleep(&others[other]);
    }
    start(waits, &back);
    await_sleep(&back);
    long before = sleeps_of(back);
    start(owns, NULL);
    await_sleep(&owner);
    /* Both the C library and a validator wake it, to wait again. */
    while (sleeps_of(back) == before) {
        sleep_ms(1);
    }
    await_sleep(&back);
    /* For a report, which the last of them writes. */
    sleep_ms(200);
    puts("done");
    return 0;
}
