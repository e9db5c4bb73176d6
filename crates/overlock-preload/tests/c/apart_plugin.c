/* A plugin that uses the locks of its host, and defines a function that its host defines, too. With
 * STARTS, its constructor starts a thread that waits; with NEEDS, a library that it needs defines
 * that function. */
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

/* A key of the C library that this plugin is bound to, in a thread of the host. */
int plugin_key_is_new(void)
{
    static pthread_key_t key;
    OK(pthread_key_create(&key, NULL));
    int is_new = pthread_getspecific(key) == NULL;
    OK(pthread_setspecific(key, &key));
    return is_new;
}

/* The C library defines one, too. */
char *index(const char *text, int byte)
{
    return (char *)(byte == 'x' ? "the plugin's" : text);
}

const char *indexes(void)
{
    char *(*volatile named)(const char *, int) = index;
    return named("", 'x');
}

#ifdef STARTS
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t awaited = PTHREAD_COND_INITIALIZER;
static sem_t begun;
static int is_over, ends;
static pthread_t thread;

static void *waits(void *with)
{
    OK(pthread_mutex_lock(&own));
    OK(sem_post(&begun));
    while (!is_over) {
        OK(pthread_cond_wait(&awaited, &own));
    }
    ends++;
    OK(pthread_mutex_unlock(&own));
    return with;
}

__attribute__((constructor)) static void starts(void)
{
    OK(sem_init(&begun, 0, 0));
    OK(pthread_create(&thread, NULL, waits, NULL));
    sem_wait(&begun);
    OK(pthread_mutex_lock(&own)); /* The thread waits for the condition. */
    OK(pthread_mutex_unlock(&own));
}

int plugin_ends(void)
{
    OK(pthread_mutex_lock(&own));
    is_over = 1;
    OK(pthread_cond_signal(&awaited));
    OK(pthread_mutex_unlock(&own));
    OK(pthread_join(thread, NULL));
    return ends;
}
#endif

#if defined LIBRARY || defined OWN
const char *whose(void)
{
    return "the plugin's";
}

#endif
#ifdef NEEDS
const char *whose(void);
#endif
#if defined NEEDS || defined OWN
const char *asks(void)
{
    return whose();
}
#elif !defined LIBRARY
const char *asks(void)
{
    return "nobody's";
}
#endif
