/* Correct and incorrect releases, in the scene that the first argument names. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int ready;
static atomic_int refused;

static void *unlocks(void *unused)
{
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *unlocks_rwlock(void *unused)
{
    pthread_rwlock_unlock(&rwlock);
    return unused;
}

static void *unlocks_recursive(void *unused)
{
    /* The mutex may be free. */
    CHECK(pthread_mutex_unlock(&recursive) == EPERM);
    refused = 1;
    return unused;
}

static void *waits(void *unused)
{
    pthread_mutex_lock(&mutex);
    while (!ready)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void fine(void)
{
    pthread_t waiter = start(waits, NULL);
    sleep_ms(10);
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    join(waiter);
    pthread_mutex_trylock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_t stranger = start(unlocks_recursive, NULL);
    for (int i = 0; i < 2; i++)
        pthread_mutex_lock(&recursive);
    while (!refused)
        sleep_ms(1);
    for (int i = 0; i < 2; i++)
        pthread_mutex_unlock(&recursive);
    join(stranger);
    for (int i = 0; i < 2; i++)
        pthread_rwlock_rdlock(&rwlock);
    for (int i = 0; i < 2; i++)
        pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_mutex_lock(&mutex);
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_unlock(&mutex);
        _exit(0);
    }
    reap(child);
    pthread_mutex_unlock(&mutex);
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "stranger") == 0) {
        pthread_mutex_lock(&mutex);
        join(start(unlocks, NULL));
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    } else if (strcmp(what, "free") == 0) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        pthread_mutex_unlock(&mutex);
    } else if (strcmp(what, "writer") == 0) {
        pthread_rwlock_wrlock(&rwlock);
        join(start(unlocks_rwlock, NULL));
    } else if (strcmp(what, "free_rwlock") == 0) {
        pthread_rwlock_unlock(&rwlock);
    } else if (strcmp(what, "fine") == 0) {
        fine();
    } else {
        return 2;
    }
    puts("done");
    return 0;
}
