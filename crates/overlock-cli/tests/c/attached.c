/* A process that others look at: a holder that is blocked, stopped or computes while it has a lock,
 * a waiter for it, and a thread without work. The argument says which. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t pool = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t idle = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static const char *cause;
static int ends[2];

static void rest(int ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void compute(int ms)
{
    struct timespec now, begin;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static void write_to_full_pipe(void)
{
    char bytes[65536 + 1] = "";
    if (write(ends[1], bytes, sizeof(bytes)) != sizeof(bytes))
        abort();
}

__attribute__((noinline)) static void section(void)
{
    pthread_mutex_lock(&pool);
    if (!strcmp(cause, "write"))
        write_to_full_pipe();
    else if (!strcmp(cause, "compute"))
        compute(30);
    else if (!strcmp(cause, "chain"))
        pthread_mutex_lock(&disk), pthread_mutex_unlock(&disk);
    else
        rest(30);
    pthread_mutex_unlock(&pool);
}

static void *holder(void *unused)
{
    pthread_setname_np(pthread_self(), "holder");
    for (;;) {
        section();
        rest(5);
    }
    return unused;
}

static void *waiter(void *unused)
{
    pthread_setname_np(pthread_self(), "waiter");
    for (;;) {
        rest(2);
        pthread_mutex_lock(&pool);
        pthread_mutex_unlock(&pool);
    }
    return unused;
}

/* Takes from the pipe, slowly, or has the other lock. */
static void *other(void *unused)
{
    char bytes[65536 + 1];
    pthread_setname_np(pthread_self(), "other");
    while (!strcmp(cause, "write")) {
        rest(30);
        for (ssize_t left = sizeof(bytes), got; left > 0; left -= got)
            if ((got = read(ends[0], bytes, left)) <= 0)
                abort();
    }
    for (;;) {
        pthread_mutex_lock(&disk);
        rest(30);
        pthread_mutex_unlock(&disk);
        rest(1);
    }
    return unused;
}

static void *worker(void *unused)
{
    pthread_mutex_lock(&idle);
    for (;;)
        pthread_cond_wait(&work, &idle);
    return unused;
}

int main(int count, char **arguments)
{
    void *(*const functions[])(void *) = {holder, waiter, other, worker};
    pthread_t thread;
    cause = count > 1 ? arguments[1] : "";
    if (pipe(ends))
        return 1;
    for (int at = 0; at < 4; at++)
        pthread_create(&thread, NULL, functions[at], NULL);
    puts("ready");
    fflush(stdout);
    for (;;) {
        rest(100);
        pthread_mutex_lock(&idle);
        pthread_cond_broadcast(&work);
        pthread_mutex_unlock(&idle);
    }
}
