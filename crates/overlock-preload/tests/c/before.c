/* Locks before main: in .preinit_array, before the C library's own constructor; or, as a library,
 * in a constructor. */
#include "check.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

static void both(pthread_mutex_t *outer, pthread_mutex_t *inner)
{
    OK(pthread_mutex_lock(outer));
    OK(pthread_mutex_lock(inner));
    OK(pthread_mutex_unlock(inner));
    OK(pthread_mutex_unlock(outer));
}

#ifdef LIBRARY
__attribute__((constructor)) static void early(void)
{
    for (int i = 0; i < 600; i++) {
        both(&first, &second);
    }
}
#else
static void early(void)
{
    for (int i = 0; i < 600; i++) {
        both(&first, &second);
    }
}

__attribute__((section(".preinit_array"), used)) static void (*before)(void) = early;

int main(void)
{
    both(&second, &first);
    pthread_mutex_lock(&first);
    printf("the owner's id is in the mutex: %d\n", ((int *)&first)[2] == gettid());
    pthread_mutex_unlock(&first);
    return 0;
}
#endif
