/* A program whose own allocator has two nested, contended mutexes, and which has so many
 * thread-specific keys that glibc allocates for more. Another one uses up all keys. No lock call
 * may allocate, and waiters sleep. */
#include "objects.h"

#include <sys/resource.h>

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static char *heap;
static size_t used;
static __thread int forbidden;

static void work(void)
{
    for (volatile int i = 0; i < 300; ++i) {
    }
}

static void *take(size_t size)
{
    if (forbidden) {
        static const char line[] = "a lock call allocates\n";
        if (write(1, line, sizeof line - 1) >= 0)
            _exit(1);
    }
    size = (size + 31) & ~(size_t)15;
    pthread_mutex_lock(&outer);
    pthread_mutex_lock(&inner);
    if (heap == NULL)
        heap = mmap(NULL, 1UL << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *at = heap + used;
    used += size;
    work();
    pthread_mutex_unlock(&inner);
    pthread_mutex_unlock(&outer);
    *(size_t *)at = size;
    return at + 16;
}

void *malloc(size_t size) { return take(size); }

void *calloc(size_t count, size_t size) { return take(count * size); }

void free(void *at)
{
    if (at != NULL) {
        pthread_mutex_lock(&inner);
        work();
        pthread_mutex_unlock(&inner);
    }
}

void *realloc(void *at, size_t size)
{
    void *to = take(size);
    if (at != NULL) {
        size_t had = *(size_t *)((char *)at - 16) - 16;
        memcpy(to, at, had < size ? had : size);
    }
    return to;
}

static atomic_int over;

static void *frees(void *at)
{
    while (!over)
        free(at);
    return NULL;
}

static void *allocates(void *none)
{
    for (int i = 0; i < 500; ++i)
        free(malloc(16));
    return none;
}

static void *waits(void *way)
{
    forbidden = 1;
    wait_by((enum way)(long)way);
    forbidden = 0;
    return NULL;
}

int main(int count, char **arguments)
{
    (void)count;
    int keys = arguments[1] == NULL ? 40 : 1024;
    pthread_key_t key;
    while (keys-- > 0 && pthread_key_create(&key, NULL) == 0) {
    }
    pthread_t freeing[2], allocating[4];
    for (int i = 0; i < 2; ++i)
        freeing[i] = start(frees, malloc(16));
    for (int round = 0; round < 10; ++round) {
        for (int i = 0; i < 4; ++i)
            allocating[i] = start(allocates, NULL);
        for (int i = 0; i < 4; ++i) {
            struct timespec end = in_ms(CLOCK_REALTIME, 600000);
            OK(pthread_timedjoin_np(allocating[i], NULL, &end));
        }
    }
    over = 1;
    for (int i = 0; i < 2; ++i)
        join(freeing[i]);
    pthread_t threads[4 * WAYS];
    close_all(4);
    start_all(threads, WAYS, 4, 0, waits);
    /* On a busy machine they take a while to block. */
    for (int tries = 0;; ++tries) {
        struct rusage before, after;
        getrusage(RUSAGE_SELF, &before);
        sleep_ms(1000);
        getrusage(RUSAGE_SELF, &after);
        if (after.ru_nvcsw - before.ru_nvcsw < 100)
            break;
        CHECK(tries < 100);
    }
    open_all();
    for (int i = 0; i < 4 * WAYS; ++i)
        join(threads[i]);
    CHECK(spurious < 10);
    puts("done");
    return 0;
}
