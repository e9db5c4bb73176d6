/* The cost of the locks to a process: its .bss and memory, which it may lock, and its CPU while
 * more threads wait than a queue could name. The argument says which; it may be the name of the
 * library. */
#include "check.h"
#include <sys/resource.h>

enum { MANY = 17000, STACK = 65536, MS = 1000 };

static sem_t go;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static atomic_int waiting;
static int over;

/* Returns the KiB that /proc/self/smaps has under this key for the library, or only for the memory
 * without a file behind it: its .bss. */
static long kib_of(const char *library, int bss, const char *key)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned long end = 0;
    long sum = 0;
    int is_file = 0, is_bss = 0;
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to;
        long kib;
        char found[64];
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            int is_unnamed = strchr(line, '/') == NULL && strchr(line, '[') == NULL;
            is_bss = (is_file || is_bss) && is_unnamed && from == end;
            is_file = strstr(line, library) != NULL;
            end = to;
        } else if ((is_bss || (is_file && !bss)) && sscanf(line, "%63[^:]: %ld kB", found, &kib) == 2 &&
                   strcmp(found, key) == 0) {
            sum += kib;
        }
    }
    fclose(maps);
    return sum;
}

static void unlock(void *with)
{
    OK(pthread_mutex_unlock(with));
}

static void *await(void *with)
{
    intptr_t number = (intptr_t)with;
    atomic_fetch_add(&waiting, 1);
    if (number % 3 == 0) {
        OK(pthread_mutex_lock(&mutex));
        pthread_cleanup_push(unlock, &mutex);
        while (!over)
            OK(pthread_cond_wait(&cond, &mutex));
        pthread_cleanup_pop(1);
    } else if (number % 3 == 1) {
        OK(sem_wait(&go));
    } else {
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static long cpu_ms(void)
{
    struct rusage used;
    CHECK(getrusage(RUSAGE_SELF, &used) == 0);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000L +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
}

static void many_wait(void)
{
    static pthread_t threads[MANY];
    pthread_attr_t attr;
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setstacksize(&attr, STACK));
    int count = 0;
    OK(sem_init(&go, 0, 0));
    OK(pthread_barrier_init(&barrier, NULL, (MANY + 2) / 3));
    while (count < MANY && pthread_create(&threads[count], &attr, await, (void *)(intptr_t)count) == 0)
        count++;
    if (count < MANY) {
        /* The machine has no room for so many. */
        fflush(stdout);
        _exit(0);
    }
    while (waiting < count)
        sleep_ms(10);
    /* On a busy machine they take a while to block. */
    for (int tries = 0;; ++tries) {
        long before = cpu_ms();
        sleep_ms(MS);
        if (cpu_ms() - before < MS / 10)
            break;
        CHECK(tries < 100);
    }
    /* The last ones can be cancelled, too. */
    for (int number = count - 6; number < count; number++)
        if (number % 3 != 2)
            OK(pthread_cancel(threads[number]));
    OK(pthread_mutex_lock(&mutex));
    over = 1;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
    for (int number = 0; number < count; number++)
        if (number % 3 == 1)
            OK(sem_post(&go));
    pthread_barrier_wait(&barrier);
    for (int number = 0; number < count; number++)
        join(threads[number]);
}

/* As an ordinary user, with the kernel's default limit. */
static void lock_memory(void)
{
    struct rlimit limit = {8 << 20, 8 << 20};
    CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    CHECK(getuid() != 0 || setresuid(65534, 65534, 65534) == 0);
    CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
    pthread_attr_t attr;
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setstacksize(&attr, STACK));
    pthread_t thread;
    int answer = pthread_create(&thread, &attr, await, (void *)1);
    printf("a thread of a process that locks its memory: %s\n", name_of(answer));
    OK(sem_post(&go));
    join(thread);
}

int main(int count, char **arguments)
{
    CHECK(count == 2);
    if (strcmp(arguments[1], "many") == 0) {
        many_wait();
    } else if (strcmp(arguments[1], "lock") == 0) {
        lock_memory();
    } else {
        long size = kib_of(arguments[1], 1, "Size"), resident = kib_of(arguments[1], 0, "Rss");
        printf("%ld KiB of .bss, %ld KiB resident\n", size, resident);
        CHECK(0 < size && size <= 2048 && 0 < resident && resident <= 1024);
    }
    return 0;
}
