// A clerk waits for the till, whose manager waits for the safe, which a guard keeps.
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "asleep.h"

static pthread_mutex_t till = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t safe = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t kept, asked;
static volatile pid_t manager_id, clerk_id;

static void *guard(void *none) {
    pthread_mutex_lock(&safe);
    pthread_barrier_wait(&kept);
    while (!is_asleep(manager_id) || !is_asleep(clerk_id))
        usleep(1000);
    usleep(200000);
    pthread_mutex_unlock(&safe);
    return none;
}

static void *manager(void *none) {
    pthread_mutex_lock(&till);
    pthread_barrier_wait(&asked);
    manager_id = (pid_t)syscall(SYS_gettid);
    pthread_mutex_lock(&safe);
    pthread_mutex_unlock(&safe);
    pthread_mutex_unlock(&till);
    return none;
}

static void *clerk(void *none) {
    clerk_id = (pid_t)syscall(SYS_gettid);
    pthread_mutex_lock(&till);
    pthread_mutex_unlock(&till);
    return none;
}

int main(void) {
    pthread_t threads[3];
    pthread_barrier_init(&kept, 0, 2);
    pthread_barrier_init(&asked, 0, 2);
    pthread_create(&threads[0], 0, guard, 0);
    pthread_barrier_wait(&kept);
    pthread_create(&threads[1], 0, manager, 0);
    pthread_barrier_wait(&asked);
    pthread_create(&threads[2], 0, clerk, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    return 0;
}
