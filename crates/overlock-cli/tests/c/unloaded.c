/* A program that loads a library, uses its lock, and unloads it: all at its beginning. */
#include <dlfcn.h>
#include <pthread.h>

#ifdef LIBRARY
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void use(void)
{
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
}
#else
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

int main(int count, char **words)
{
    if (count != 2) {
        return 1;
    }
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
    void *library = dlopen(words[1], RTLD_NOW);
    if (library == NULL) {
        return 2;
    }
    void (*use)(void) = (void (*)(void))dlsym(library, "use");
    use();
    return dlclose(library);
}
#endif
