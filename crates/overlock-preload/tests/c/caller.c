/* A library that opens another one, which is found on its own search path; and its program. Both
 * depend on whom the loader takes for the caller. */
#include "check.h"

#ifdef LIBRARY
const char *opens(int flags)
{
    return dlopen("libnames-found.so", flags) != NULL ? "found" : dlerror();
}

/* Whether the next function behind this library is the one that the program calls. */
int is_one(void)
{
    return dlsym(RTLD_NEXT, "pthread_mutex_lock") == dlsym(RTLD_DEFAULT, "pthread_mutex_lock");
}
#else
int main(int argc, char **argv)
{
    CHECK(argc == 2);
    void *library = dlopen(argv[1], RTLD_NOW);
    CHECK(library != NULL);
    const char *(*opens)(int) = (const char *(*)(int))dlsym(library, "opens");
    int (*is_one)(void) = (int (*)(void))dlsym(library, "is_one");
    printf("%d, %s, %s\n", is_one(), opens(RTLD_NOW), opens(RTLD_NOW | RTLD_DEEPBIND));
    printf("%d\n", dlopen("libnames-found.so", RTLD_NOW | RTLD_NOLOAD) != NULL);
    printf("%d\n", dlopen("libnames-nowhere.so", RTLD_NOW) == NULL && dlerror() != NULL);
    printf("%d\n", dlsym(library, "nowhere") == NULL && dlerror() != NULL && dlerror() == NULL);
    return 0;
}
#endif
