/* A sandbox starts processes by a bare clone(). There the C library believes the thread to have the
 * id of the parent. The child learns that id from a recursive mutex that it locks, looks whether
 * the library keeps it where it did, and corrects it there: as Chromium and Firefox do. */
#include "check.h"

#include <sys/syscall.h>

static pid_t id_of_mutex(void)
{
    pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    OK(pthread_mutex_lock(&mutex));
    pid_t id = mutex.__data.__owner;
    OK(pthread_mutex_unlock(&mutex));
    return id;
}

static void *thread(void *with)
{
    (void)with;
    CHECK(id_of_mutex() == syscall(SYS_gettid));
    return NULL;
}

static void child(void)
{
    pid_t *kept = (pid_t *)((char *)pthread_self() + 0x2d0);
    pid_t id = (pid_t)syscall(SYS_gettid);
    CHECK(*kept != id);
    CHECK(id_of_mutex() == *kept);
    *kept = id;
    CHECK(id_of_mutex() == id);
}

int main(void)
{
    thread(NULL);
    join(start(thread, NULL));
    long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    CHECK(pid >= 0);
    if (pid == 0) {
        child();
        _exit(0);
    }
    int status = 1;
    CHECK(waitpid((pid_t)pid, &status, 0) == pid && status == 0);
    return 0;
}
