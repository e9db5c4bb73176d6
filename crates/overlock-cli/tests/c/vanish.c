// A child whose threads wait for each other and which ends by _exit, and a parent that ends by a
// signal, a second later.
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "asleep.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static volatile pid_t thread;

static void *hold(void *unused)
{
    thread = (pid_t)syscall(SYS_gettid);
    for (int n = 0; n < 10; n++) {
        pthread_mutex_lock(&lock);
        usleep(5000);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void both(void)
{
    pthread_t one;
    pthread_mutex_lock(&lock);
    pthread_create(&one, NULL, hold, NULL);
    while (!is_asleep(thread))
        usleep(1000);
    pthread_mutex_unlock(&lock);
    hold(NULL);
    pthread_join(one, NULL);
}

int main(void)
{
    pid_t child = fork();
    if (child == 0) {
        both();
        _exit(0);
    }
    both();
    waitpid(child, NULL, 0);
    sleep(1);
    raise(SIGKILL);
    return 0;
}
