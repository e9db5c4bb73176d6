/* A bounded queue. */
#include "check.h"

enum { ITEMS = 10000, THREADS = 4, ROOM = 8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static int items, in, out;

static void *produce(void *with)
{
    for (int i = 0; i < ITEMS; i++) {
        OK(pthread_mutex_lock(&mutex));
        while (items == ROOM) {
            OK(pthread_cond_wait(&not_full, &mutex));
        }
        items++;
        in++;
        OK(pthread_cond_signal(&not_empty));
        OK(pthread_mutex_unlock(&mutex));
    }
    return with;
}

static void *consume(void *with)
{
    for (int i = 0; i < ITEMS; i++) {
        OK(pthread_mutex_lock(&mutex));
        while (items == 0) {
            OK(pthread_cond_wait(&not_empty, &mutex));
        }
        items--;
        out++;
        OK(pthread_cond_signal(&not_full));
        OK(pthread_mutex_unlock(&mutex));
    }
    return with;
}

int main(void)
{
    pthread_t threads[2 * THREADS];
    for (int i = 0; i < 2 * THREADS; i++) {
        threads[i] = start(i < THREADS ? produce : consume, NULL);
    }
    for (int i = 0; i < 2 * THREADS; i++) {
        join(threads[i]);
    }
    printf("%d in, %d out\n", in, out);
    return 0;
}
