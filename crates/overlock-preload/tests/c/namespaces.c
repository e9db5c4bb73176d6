/* Loads a plugin into new namespaces, and closes it, more often than the loader has namespaces;
 * some do not exist. Then several threads load it at a time, once: glibc has room for the
 * thread-local variables of few namespaces, and loses some of it if they overlap. The standard
 * error is a file of the program's own, into which nobody else writes. */
#include "check.h"

enum { ROUNDS = 20, THREADS = 3 };

static const char *path;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long count;

typedef void (*repeats)(void *it, long *count, int times);

static void *load(void *with)
{
    void *loaded = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    CHECK(loaded != NULL);
    ((repeats)dlsym(loaded, "plugin_mutex"))(&mutex, &count, 1000);
    CHECK(dlclose(loaded) == 0);
    return with;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    path = argv[1];
    int file = memfd_create("stderr", MFD_CLOEXEC);
    CHECK(file >= 0 && dup2(file, 2) == 2);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(dlmopen(LM_ID_NEWLM, "/nowhere.so", RTLD_NOW) == NULL && dlerror() != NULL);
    }
    for (int i = 0; i < ROUNDS; i++) {
        void *loaded = dlmopen(LM_ID_NEWLM, path, RTLD_LAZY);
        CHECK(loaded != NULL && dlerror() == NULL);
        Lmid_t space;
        CHECK(dlinfo(loaded, RTLD_DI_LMID, &space) == 0 && space != LM_ID_BASE);
        CHECK(dlmopen(space, path, RTLD_NOW) == loaded && dlclose(loaded) == 0);
        CHECK(dlclose(loaded) == 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        void *loaded = dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
        CHECK(loaded != NULL);
        ((repeats)dlsym(loaded, "plugin_mutex"))(&mutex, &count, 10);
        CHECK(dlclose(loaded) == 0);
    }
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        threads[i] = start(load, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        join(threads[i]);
    }
    printf("%ld, %ld\n", count, (long)lseek(file, 0, SEEK_END));
    return 0;
}
