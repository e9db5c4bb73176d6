/* A library whose constructor and destructor lock. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int loaded;

static void *help(void *with)
{
    (void)with;
    OK(pthread_mutex_lock(&mutex));
    loaded++;
    OK(pthread_cond_signal(&cond));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

__attribute__((constructor)) static void load(void)
{
    OK(pthread_rwlock_wrlock(&lock));
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    pthread_t helper = start(help, NULL);
    OK(pthread_mutex_lock(&mutex));
    while (loaded == 0) {
        OK(pthread_cond_wait(&cond, &mutex));
    }
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_rwlock_unlock(&lock));
    join(helper);
}

__attribute__((destructor)) static void unload(void)
{
    OK(pthread_rwlock_rdlock(&lock));
    OK(pthread_rwlock_unlock(&lock));
    OK(pthread_mutex_lock(&mutex));
    puts("unloaded");
    OK(pthread_mutex_unlock(&mutex));
}

int answer(void)
{
    OK(pthread_rwlock_tryrdlock(&lock));
    OK(pthread_rwlock_unlock(&lock));
    OK(pthread_mutex_trylock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    return loaded;
}
