// A program with locks of the C library and of its own, and both have waits. It says so, and stays
// until its input ends; or it becomes itself anew before that.
#include <overlock.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t theirs = PTHREAD_MUTEX_INITIALIZER;
static ovl_mutex_t ours = OVL_MUTEX_INIT;

static void *take_both(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&theirs);
        usleep(1000);
        pthread_mutex_unlock(&theirs);
        ovl_mutex_lock(&ours);
        usleep(1000);
        ovl_mutex_unlock(&ours);
    }
    return unused;
}

int main(int count, char **arguments)
{
    pthread_t thread;

    ovl_mutex_name(&ours, "pool");
    pthread_create(&thread, NULL, take_both, NULL);
    take_both(NULL);
    pthread_join(thread, NULL);
    if (count > 1) {
        puts("first");
        fflush(stdout);
        getchar();
        execl(arguments[0], arguments[0], (char *)NULL);
    }
    puts("ready");
    fflush(stdout);
    getchar();
    return 0;
}
