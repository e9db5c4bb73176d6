/* Looks a function up before the C library is initialised, and sleeps. With LIBRARY, a wrapper of
 * the function by which it sleeps, to be preloaded. */
#include "check.h"

#ifdef LIBRARY
int usleep(useconds_t time)
{
    static int (*next)(useconds_t);
    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "usleep");
    }
    puts("wrapped");
    return next(time);
}
#else
static int (*lock)(pthread_mutex_t *);

static void early(void)
{
    *(void **)&lock = dlsym(RTLD_DEFAULT, "pthread_mutex_lock");
}

__attribute__((section(".preinit_array"), used)) static void (*before)(void) = early;

int main(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    OK(lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    OK(usleep(1));
    puts("slept");
    return 0;
}
#endif
