/* Threads pass numbers through a bounded queue: a mutex, two conditions. Prints what got through,
 * and how often two threads were inside at once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

/* musl has none. */
#ifndef RTLD_DEEPBIND
#define RTLD_DEEPBIND 0
#endif

#define EACH 500
#define ROOM 8

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static int count, inside;
static long in, out, intruders;

static void enter(void)
{
    if (inside++)
        intruders++;
}

static void *put(void *nothing)
{
    for (int i = 0; i < EACH; i++) {
        pthread_mutex_lock(&mutex);
        enter();
        while (count == ROOM) {
            inside--;
            pthread_cond_wait(&emptied, &mutex);
            enter();
        }
        count++;
        in++;
        inside--;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&mutex);
    }
    return nothing;
}

static void *take(void *nothing)
{
    for (int i = 0; i < EACH; i++) {
        pthread_mutex_lock(&mutex);
        enter();
        while (count == 0) {
            inside--;
            pthread_cond_wait(&filled, &mutex);
            enter();
        }
        count--;
        out++;
        inside--;
        pthread_cond_signal(&emptied);
        pthread_mutex_unlock(&mutex);
    }
    return nothing;
}

int main(int argc, char **argv)
{
    if (argc > 1 && dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND) == NULL) {
        return 1;
    }
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, i < 4 ? put : take, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    printf("%ld in, %ld out, %d left, %ld intruders\n", in, out, count, intruders);
    return 0;
}
