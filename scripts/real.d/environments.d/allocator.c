/* An allocator whose lock is a mutex of pthread's. */
#include <pthread.h>
#include <stddef.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define LOCKED(type, expression)                                                           \
    {                                                                                      \
        pthread_mutex_lock(&lock);                                                         \
        type result = expression;                                                          \
        pthread_mutex_unlock(&lock);                                                       \
        return result;                                                                     \
    }

void *malloc(size_t size) LOCKED(void *, __libc_malloc(size))
void *calloc(size_t count, size_t size) LOCKED(void *, __libc_calloc(count, size))
void *realloc(void *old, size_t size) LOCKED(void *, __libc_realloc(old, size))

void free(void *memory)
{
    pthread_mutex_lock(&lock);
    __libc_free(memory);
    pthread_mutex_unlock(&lock);
}
