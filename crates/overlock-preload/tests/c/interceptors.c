/* Functions in front of the loader's, as sanitizers have them: the first call of any looks up what
 * is behind all. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>

typedef int (*look)(struct dl_phdr_info *, size_t, void *);

static int (*iterate)(look, void *);
static int (*dladdr1_behind)(const void *, Dl_info *, void **, int);
static void *(*dlopen_behind)(const char *, int);
static int (*lock_behind)(pthread_mutex_t *);

static void find(void)
{
    static int begun;
    if (begun)
        return;
    begun = 1;
    lock_behind = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    dladdr1_behind = dlsym(RTLD_NEXT, "dladdr1");
    dlopen_behind = dlsym(RTLD_NEXT, "dlopen");
    iterate = dlsym(RTLD_NEXT, "dl_iterate_phdr");
}

int dl_iterate_phdr(look at, void *data)
{
    find();
    return iterate(at, data);
}

int dladdr1(const void *address, Dl_info *info, void **extra, int flags)
{
    find();
    return dladdr1_behind(address, info, extra, flags);
}

void *dlopen(const char *name, int mode)
{
    find();
    return dlopen_behind(name, mode);
}

static int count(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)info, (void)size;
    ++*(int *)data;
    return 0;
}

int main(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int objects = 0;
    find();
    lock_behind(&mutex);
    pthread_mutex_unlock(&mutex);
    if (dl_iterate_phdr(count, &objects) == 0 && objects > 1)
        puts("found");
    return 0;
}
