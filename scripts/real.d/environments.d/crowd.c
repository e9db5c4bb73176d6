/* crowd [THREADS [ROUNDS]]: threads use one of each kind of lock. Prints how often each was used,
 * which must be the same on all locks. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int threads = 16, rounds = 2000;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, of_cond = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static long locked, again, written, passed, turn, read_sum, running;

static void *run(void *number)
{
    long me = (long)number, sum = 0;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        locked++;
        free(malloc(100 + i % 1000));
        pthread_mutex_unlock(&mutex);
        if (i % 4 == 0) {
            pthread_rwlock_wrlock(&rwlock);
            written++;
        } else {
            pthread_rwlock_rdlock(&rwlock);
            sum += written >= 0;
        }
        pthread_rwlock_unlock(&rwlock);
        pthread_mutex_lock(&recursive);
        pthread_mutex_lock(&recursive);
        again++;
        pthread_mutex_unlock(&recursive);
        pthread_mutex_unlock(&recursive);
        sem_wait(&sem);
        __atomic_add_fetch(&passed, 1, __ATOMIC_RELAXED);
        sem_post(&sem);
        if (i % 64 == 0) {
            struct timespec soon;
            clock_gettime(CLOCK_REALTIME, &soon);
            soon.tv_sec += 30;
            pthread_mutex_lock(&of_cond);
            turn++;
            pthread_cond_broadcast(&cond);
            long mine = turn;
            if (me % 2 == 0)
                while (turn == mine && running > 1 && pthread_cond_timedwait(&cond, &of_cond, &soon) == 0)
                    ;
            pthread_mutex_unlock(&of_cond);
        }
    }
    pthread_mutex_lock(&of_cond);
    running--;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&of_cond);
    __atomic_add_fetch(&read_sum, sum, __ATOMIC_RELAXED);
    return NULL;
}

int main(int count, char **words)
{
    if (count > 1)
        threads = atoi(words[1]);
    if (count > 2)
        rounds = atoi(words[2]);
    pthread_t *all = calloc(threads, sizeof *all);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    pthread_barrier_init(&barrier, NULL, threads);
    sem_init(&sem, 0, 3);
    running = threads;
    for (long i = 0; i < threads; i++)
        if (pthread_create(&all[i], &attr, run, (void *)i) != 0)
            return 1;
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    printf("%ld %ld %ld %ld %ld %ld\n", locked, again, written, read_sum, passed, turn);
    free(all);
    return 0;
}
