/* Loads many libraries with thread-local variables while a thread is alive. Then that thread waits
 * for objects of each kind, and handles a signal that locks: none of this may allocate. With
 * LIBRARY, such a library. */
#include "check.h"

#ifdef LIBRARY
static __thread int variable;

int *place(void)
{
    return &variable;
}
#else
static __thread int forbidden;
static char heap[1 << 22];
static atomic_size_t used;

void *malloc(size_t size)
{
    if (forbidden) {
        static const char line[] = "a lock call allocates\n";
        if (write(1, line, sizeof line - 1) >= 0) {
            _exit(1);
        }
    }
    size_t room = (size + 31) & ~(size_t)15;
    size_t at = atomic_fetch_add(&used, room);
    CHECK(at + room <= sizeof heap);
    *(size_t *)(heap + at) = size;
    return heap + at + 16;
}

void free(void *it)
{
    (void)it;
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size); /* The memory is used once. */
}

void *realloc(void *it, size_t size)
{
    void *larger = malloc(size);
    if (it != NULL) {
        size_t before = *(size_t *)((char *)it - 16);
        memcpy(larger, it, before < size ? before : size);
    }
    return larger;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, handlers = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t loaded, handled;
static int flag;

static void handle(int signal)
{
    (void)signal;
    OK(pthread_mutex_lock(&handlers));
    OK(pthread_mutex_unlock(&handlers));
    OK(sem_post(&handled));
}

static void *waits(void *with)
{
    while (sem_wait(&loaded) != 0) {
    }
    forbidden = 1;
    OK(pthread_mutex_lock(&mutex));
    while (!flag) {
        OK(pthread_cond_wait(&cond, &mutex));
    }
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_rwlock_rdlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(raise(SIGUSR1));
    forbidden = 0;
    return with;
}

int main(int argc, char **argv)
{
    OK(sem_init(&loaded, 0, 0));
    OK(sem_init(&handled, 0, 0));
    signal(SIGUSR1, handle);
    pthread_t thread = start(waits, NULL);
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW);
        CHECK(library != NULL);
        ++*((int *(*)(void))dlsym(library, "place"))();
    }
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_rwlock_wrlock(&rwlock));
    OK(sem_post(&loaded));
    sleep_ms(20);
    flag = 1;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
    sleep_ms(20);
    OK(pthread_rwlock_unlock(&rwlock));
    while (sem_wait(&handled) != 0) {
    }
    join(thread);
    printf("%d libraries\n", argc - 1);
    return 0;
}
#endif
