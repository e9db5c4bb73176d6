/* A thread waits for a lock of a library, and ends after the library has been closed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include "check.h"

static void *use(void *path) {
    void *library = dlopen(path, RTLD_NOW);
    CHECK(library != NULL);
    int (*work)(void);
    *(void **)&work = dlsym(library, "work");
    CHECK(work != NULL);
    CHECK(work() == ETIMEDOUT);
    CHECK(dlclose(library) == 0);
    return NULL;
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    for (int round = 0; round < 3; round++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, use, arguments[1]) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    return 0;
}
