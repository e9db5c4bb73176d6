/* A plugin that uses the locks of its host, and defines a function that its host defines, too. */
#include "check.h"

#define REPEAT(name, lock, unlock)                                                         \
    void name(void *it, long *count, int times)                                            \
    {                                                                                      \
        for (int i = 0; i < times; i++) {                                                  \
            OK(lock(it));                                                                  \
            ++*count;                                                                      \
            OK(unlock(it));                                                                \
        }                                                                                  \
    }

REPEAT(plugin_mutex, pthread_mutex_lock, pthread_mutex_unlock)
REPEAT(plugin_rwlock, pthread_rwlock_wrlock, pthread_rwlock_unlock)
REPEAT(plugin_spin, pthread_spin_lock, pthread_spin_unlock)
REPEAT(plugin_sem, sem_wait, sem_post)

void plugin_signals(pthread_mutex_t *mutex, pthread_cond_t *cond, int *flag)
{
    OK(pthread_mutex_lock(mutex));
    *flag = 1;
    OK(pthread_cond_broadcast(cond));
    OK(pthread_mutex_unlock(mutex));
}

#ifdef OWN
const char *whose(void)
{
    return "the plugin's";
}

const char *asks(void)
{
    return whose();
}
#else
const char *asks(void)
{
    return "nobody's";
}
#endif
