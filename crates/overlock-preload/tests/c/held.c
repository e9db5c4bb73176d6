/* Sleeps with a lock held, in the scene that the first argument names. */
#include "check.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <threads.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void *nothing(void *unused)
{
    return unused;
}

static void waits(void)
{
    struct timespec at = in_ms(CLOCK_REALTIME, 1);
    pthread_mutex_lock(&mutex);
    CHECK(pthread_cond_timedwait(&cond, &mutex, &at) == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
}

static void meets(void)
{
    pthread_barrier_t barrier;
    OK(pthread_barrier_init(&barrier, NULL, 1));
    CHECK(pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD);
    OK(pthread_barrier_destroy(&barrier));
}

static int nothing_of_c11(void *unused)
{
    return unused != NULL;
}

static void joins_c11(void)
{
    thrd_t thread;
    OK(thrd_create(&thread, nothing_of_c11, NULL));
    OK(thrd_join(thread, NULL));
}

static void joins(void)
{
    pthread_t thread = start(nothing, NULL);
    OK(pthread_join(thread, NULL));
}

/* Sleeps that do not wait for another thread. */
static void sleeps(int which)
{
    struct timespec time = {0, 1000};
    struct timeval micros = {0, 1};
    struct epoll_event event;
    sem_t sem;
    int epoll = epoll_create1(0);
    switch (which) {
    case 0: OK(nanosleep(&time, NULL)); break;
    case 1: OK(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL)); break;
    case 2: OK(usleep(1)); break;
    case 3: CHECK(sleep(0) == 0); break;
    case 4: OK(poll(NULL, 0, 1)); break;
    case 5: OK(ppoll(NULL, 0, &time, NULL)); break;
    case 6: OK(select(0, NULL, NULL, NULL, &micros)); break;
    case 7: OK(pselect(0, NULL, NULL, NULL, &time, NULL)); break;
    case 8: OK(epoll_wait(epoll, &event, 1, 1)); break;
    case 9: OK(epoll_pwait(epoll, &event, 1, 1, NULL)); break;
    case 10: OK(sem_init(&sem, 0, 1)); OK(sem_wait(&sem)); break;
    case 12: OK(thrd_sleep(&time, NULL)); break;
    case 11: OK(sem_init(&sem, 0, 1)); OK(sem_timedwait(&sem, &time)); break;
    }
    close(epoll);
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    int without = strncmp(what, "none", 4) == 0;
    if (!without)
        pthread_mutex_lock(&held);
    if (strcmp(what, "waits") == 0) {
        waits();
        waits();
    } else if (strcmp(what, "meets") == 0) {
        meets();
    } else if (strcmp(what, "joins") == 0) {
        joins();
    } else if (strcmp(what, "joins_c11") == 0) {
        joins_c11();
    } else if (without) {
        waits();
        meets();
        joins();
        joins_c11();
        for (int which = 0; which < 13; which++)
            sleeps(which);
    } else if (strncmp(what, "sleeps", 6) == 0) {
        for (int which = 0; which < 13; which++)
            sleeps(which);
    } else {
        return 2;
    }
    if (!without)
        pthread_mutex_unlock(&held);
    puts("done");
    return 0;
}
