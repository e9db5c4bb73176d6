/* A thread that has a lock for ever, and one that waits for it, as long as others look. The
 * argument says which lock. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "asleep.h"

static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static const char *kind;
static volatile pid_t ids[2];

static void acquire(int is_holder)
{
    if (!strcmp(kind, "read") && !is_holder)
        pthread_rwlock_rdlock(&rwlock);
    else if (!strcmp(kind, "read") || !strcmp(kind, "write"))
        pthread_rwlock_wrlock(&rwlock);
    else
        pthread_mutex_lock(&mutex);
}

static void *holder(void *unused)
{
    pthread_setname_np(pthread_self(), "holder");
    acquire(1);
    ids[0] = (pid_t)syscall(SYS_gettid);
    for (;;)
        pause();
    return unused;
}

__attribute__((noinline)) static void wants(void)
{
    acquire(0);
    abort();
}

static void *waiter(void *unused)
{
    pthread_setname_np(pthread_self(), "waiter");
    ids[1] = (pid_t)syscall(SYS_gettid);
    wants();
    return unused;
}

int main(int count, char **arguments)
{
    pthread_mutexattr_t attributes;
    pthread_t thread;
    kind = count > 1 ? arguments[1] : "";
    pthread_mutexattr_init(&attributes);
    if (!strcmp(kind, "inherit"))
        pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    else if (!strcmp(kind, "robust"))
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    else if (!strcmp(kind, "recursive"))
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &attributes);
    pthread_create(&thread, NULL, holder, NULL);
    while (!is_asleep(ids[0]))
        usleep(1000);
    pthread_create(&thread, NULL, waiter, NULL);
    while (!is_asleep(ids[1]))
        usleep(1000);
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
