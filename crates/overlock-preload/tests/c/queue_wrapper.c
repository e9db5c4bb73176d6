/* A profiler's wrapper of the condition functions, which looks them up by version. */
#include "check.h"

#ifdef __x86_64__
#define VERSION "GLIBC_2.3.2"
#else
#define VERSION "GLIBC_2.17"
#endif

#define WRAP(name, arguments, call)                                                        \
    int name arguments                                                                     \
    {                                                                                      \
        static int(*next) arguments;                                                       \
        if (next == NULL) {                                                                \
            next = (int(*) arguments)dlvsym(RTLD_NEXT, #name, VERSION);                     \
        }                                                                                  \
        return next call;                                                                  \
    }

WRAP(pthread_cond_wait, (pthread_cond_t * cond, pthread_mutex_t *mutex), (cond, mutex))
WRAP(pthread_cond_signal, (pthread_cond_t * cond), (cond))
WRAP(pthread_cond_broadcast, (pthread_cond_t * cond), (cond))
