/* A program that exports functions of its own by names of the library's, and these call others of
 * the library's: as Erlang's BEAM does with sigaction. */
#include "check.h"

#include <threads.h>

static int calls;
static int (*next_sigaction)(int, const struct sigaction *, struct sigaction *);

int sigaction(int signal, const struct sigaction *new, struct sigaction *old)
{
    CHECK(++calls < 100);
    if (next_sigaction == NULL)
        *(void **)&next_sigaction = dlsym(RTLD_NEXT, "__sigaction");
    return next_sigaction(signal, new, old);
}

int pthread_cond_signal(pthread_cond_t *cond)
{
    CHECK(++calls < 100);
    return cnd_signal((cnd_t *)cond);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    CHECK(++calls < 100);
    return mtx_unlock((mtx_t *)mutex);
}

static int handled;

static void handle(int signal) { handled += signal; }

int main(void)
{
    struct sigaction action = {.sa_handler = handle};
    OK(sigaction(SIGUSR1, &action, NULL));
    raise(SIGUSR1);
    CHECK(handled == SIGUSR1);
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    OK(pthread_cond_signal(&cond));
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    printf("%d\n", calls);
    return 0;
}
