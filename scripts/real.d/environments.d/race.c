/* Two threads count without a lock: for tools that find such races. */
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int with, without;

static void *run(void *nothing)
{
    for (int i = 0; i < 100; i++) {
        without++;
        pthread_mutex_lock(&mutex);
        with++;
        pthread_mutex_unlock(&mutex);
    }
    return nothing;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, run, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
