// As a collector does, one thread parks another by a signal, and takes fresh locks meanwhile. The
// other is at new locks all the time.

#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { LOCKS = 3000, ROUNDS = 300 };

static pthread_mutex_t busy[LOCKS], fresh[2 * ROUNDS];
static sem_t parked;
static atomic_int is_over;

static void park(int signal) {
    (void)signal;
    sem_post(&parked);
    sigset_t others;
    sigfillset(&others);
    sigdelset(&others, SIGUSR2);
    sigsuspend(&others);
}

static void go_on(int signal) {
    (void)signal;
}

static void pair(pthread_mutex_t *first, pthread_mutex_t *second) {
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}

static void *is_parked(void *unused) {
    for (int step = 1; !is_over; step = step % 100 + 1)
        for (int i = 0; i + step < LOCKS && !is_over; i++)
            pair(&busy[i], &busy[i + step]);
    return unused;
}

int main(void) {
    sem_init(&parked, 0, 0);
    struct sigaction action = {.sa_handler = park};
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = go_on;
    sigaction(SIGUSR2, &action, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, is_parked, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        usleep(i % 50);
        pthread_kill(thread, SIGUSR1);
        while (sem_wait(&parked))
            ;
        pair(&fresh[2 * i], &fresh[2 * i + 1]);
        usleep(1);
        pthread_kill(thread, SIGUSR2);
    }
    is_over = 1;
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
