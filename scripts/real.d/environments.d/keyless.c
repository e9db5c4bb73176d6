/* A library that takes all thread-specific keys which are left when it is loaded. */
#include <pthread.h>

__attribute__((constructor)) static void take(void)
{
    pthread_key_t key;
    while (pthread_key_create(&key, NULL) == 0) {
    }
}
