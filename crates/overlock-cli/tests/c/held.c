// Threads that wait for a semaphore, a spin lock or a condition that is a lock. The holder sleeps.
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

static sem_t gate;
static pthread_spinlock_t spin;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int is_taken;
static const char *kind;

static void lock(void) {
    if (!strcmp(kind, "sem")) {
        sem_wait(&gate);
    } else if (!strcmp(kind, "spin")) {
        pthread_spin_lock(&spin);
    } else {
        pthread_mutex_lock(&mutex);
        while (is_taken)
            pthread_cond_wait(&turn, &mutex);
        is_taken = 1;
        pthread_mutex_unlock(&mutex);
    }
}

static void unlock(void) {
    if (!strcmp(kind, "sem")) {
        sem_post(&gate);
    } else if (!strcmp(kind, "spin")) {
        pthread_spin_unlock(&spin);
    } else {
        pthread_mutex_lock(&mutex);
        is_taken = 0;
        pthread_cond_signal(&turn);
        pthread_mutex_unlock(&mutex);
    }
}

__attribute__((noinline)) static void *section(void *none) {
    for (int i = 0; i < 12; i++) {
        lock();
        usleep(10000);
        unlock();
        // The others have their turns.
        usleep(100);
    }
    return none;
}

int main(int count, char **arguments) {
    pthread_t threads[3];
    kind = count > 1 ? arguments[1] : "sem";
    sem_init(&gate, 0, 1);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, section, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    return 0;
}
