/* Repeatedly loads a library whose constructor locks, while threads lock. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int over;
static long count;

static void *lock_all_along(void *with)
{
    (void)with;
    long mine = 0;
    while (!over) {
        OK(pthread_mutex_lock(&mutex));
        count++;
        OK(pthread_mutex_unlock(&mutex));
        mine++;
    }
    return (void *)mine;
}

/* Before main, and before most libraries are initialised. */
__attribute__((constructor(101))) static void early(void)
{
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        threads[i] = start(lock_all_along, NULL);
    }
    for (int round = 0; round < 50; round++) {
        void *plugin = dlopen(argv[1], RTLD_NOW);
        CHECK(plugin != NULL);
        int (*answer)(void) = (int (*)(void))dlsym(plugin, "answer");
        CHECK(answer != NULL && answer() == 1);
        CHECK(dlclose(plugin) == 0);
    }
    over = 1;
    long sum = 0;
    for (int i = 0; i < 2; i++) {
        sum += (long)join(threads[i]);
    }
    CHECK(sum == count);
    return 0;
}
