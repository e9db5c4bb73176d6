/* Spinlocks, barriers and semaphores: every function, with its results. */
#include "check.h"

static void spin(int shared)
{
    printf("-- spinlock, %d\n", shared);
    pthread_spinlock_t *lock = shared_memory(sizeof *lock);
    long *count = shared_memory(sizeof *count);
    ANSWER(pthread_spin_init(lock, shared));
    ANSWER(pthread_spin_trylock(lock));
    ANSWER(pthread_spin_trylock(lock));
    ANSWER(OTHER(pthread_spin_trylock, (int *)lock));
    printf("taken: %d\n", *lock);
    ANSWER(pthread_spin_unlock(lock));
    printf("free: %d\n", *lock);
    ANSWER(pthread_spin_lock(lock));
    ANSWER(pthread_spin_unlock(lock));
    if (shared) {
        pid_t child = fork();
        for (int round = 0; round < 20000; round++) {
            OK(pthread_spin_lock(lock));
            *count += 1;
            OK(pthread_spin_unlock(lock));
        }
        if (child == 0) {
            _exit(0);
        }
        reap(child);
        printf("counted %ld\n", *count);
    }
    ANSWER(pthread_spin_destroy(lock));
}

static void *meet(void *barrier)
{
    long led = 0;
    for (int round = 0; round < 100; round++) {
        int answer = pthread_barrier_wait(barrier);
        CHECK(answer == 0 || answer == PTHREAD_BARRIER_SERIAL_THREAD);
        led += answer == PTHREAD_BARRIER_SERIAL_THREAD;
    }
    return (void *)led;
}

static void barrier(int shared)
{
    printf("-- barrier, %d\n", shared);
    pthread_barrier_t *barrier = shared_memory(sizeof *barrier);
    memset(barrier, 0xa5, sizeof *barrier);
    pthread_barrierattr_t attr;
    OK(pthread_barrierattr_init(&attr));
    OK(pthread_barrierattr_setpshared(&attr, shared));
    ANSWER(pthread_barrier_init(barrier, &attr, 0));
    ANSWER(pthread_barrier_init(barrier, &attr, UINT_MAX));
    ANSWER(pthread_barrier_init(barrier, &attr, INT_MAX));
    ANSWER(pthread_barrier_destroy(barrier));
    ANSWER(pthread_barrier_init(barrier, &attr, 1));
    printf("alone: %d\n", pthread_barrier_wait(barrier));
    printf("again: %d\n", pthread_barrier_wait(barrier));
    ANSWER(pthread_barrier_destroy(barrier));
    for (int count = 2; count < 6; count++) {
        OK(pthread_barrier_init(barrier, &attr, count));
        pthread_t threads[6];
        pid_t child = -1;
        if (shared) {
            child = fork();
            if (child == 0) {
                for (int round = 0; round < 100; round++) {
                    pthread_barrier_wait(barrier);
                }
                _exit(0);
            }
        }
        for (int i = 0; i < count - shared; i++) {
            threads[i] = start(meet, barrier);
        }
        long led = 0;
        for (int i = 0; i < count - shared; i++) {
            led += (long)join(threads[i]);
        }
        if (shared) {
            reap(child);
            CHECK(led <= 100);
        } else {
            CHECK(led == 100);
        }
        ANSWER(pthread_barrier_destroy(barrier));
    }
}

/* The serial thread destroys the barrier, and makes its memory inaccessible. */
static void *destroy_first(void *barrier)
{
    if (pthread_barrier_wait(barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
        OK(pthread_barrier_destroy(barrier));
        OK(munmap(barrier, 4096));
    }
    return NULL;
}

static void barrier_that_goes(void)
{
    for (int round = 0; round < 300; round++) {
        pthread_barrier_t *barrier = shared_memory(4096);
        OK(pthread_barrier_init(barrier, NULL, 4));
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) {
            threads[i] = start(destroy_first, barrier);
        }
        for (int i = 0; i < 4; i++) {
            join(threads[i]);
        }
    }
    puts("barriers went");
}

static void *post_later(void *sem)
{
    sleep_ms(30);
    OK(sem_post(sem));
    return NULL;
}

static void semaphore(sem_t *sem)
{
    struct timespec bad = {1, 1000000000}, worse = {1, -1}, past = {0, 0}, before = {-1, 0};
    int value;
    ANSWER_ERRNO(sem_getvalue(sem, &value));
    printf("value: %d\n", value);
    ANSWER_ERRNO(sem_wait(sem));
    ANSWER_ERRNO(sem_trywait(sem));
    ANSWER_ERRNO(sem_trywait(sem));
    ANSWER_ERRNO(sem_timedwait(sem, &bad));
    ANSWER_ERRNO(sem_timedwait(sem, &worse));
    ANSWER_ERRNO(sem_timedwait(sem, &past));
    ANSWER_ERRNO(sem_timedwait(sem, &before));
    ANSWER_ERRNO(sem_clockwait(sem, CLOCK_PROCESS_CPUTIME_ID, &past));
    ANSWER_ERRNO(sem_clockwait(sem, CLOCK_MONOTONIC, &bad));
    TIMED(CLOCK_REALTIME, 20, at, sem_timedwait(sem, &at) ? errno : 0);
    TIMED(CLOCK_MONOTONIC, 20, at, sem_clockwait(sem, CLOCK_MONOTONIC, &at) ? errno : 0);
    TIMED(CLOCK_REALTIME, 20, at, sem_clockwait(sem, CLOCK_REALTIME, &at) ? errno : 0);
    pthread_t other = start(post_later, sem);
    ANSWER_ERRNO(sem_wait(sem));
    join(other);
    other = start(post_later, sem);
    TIMED(CLOCK_REALTIME, 600000, at, sem_timedwait(sem, &at) ? errno : 0);
    join(other);
    other = start(post_later, sem);
    TIMED(CLOCK_MONOTONIC, 600000, at, sem_clockwait(sem, CLOCK_MONOTONIC, &at) ? errno : 0);
    join(other);
    ANSWER_ERRNO(sem_post(sem));
    ANSWER_ERRNO(sem_timedwait(sem, &bad));
    ANSWER_ERRNO(sem_clockwait(sem, CLOCK_PROCESS_CPUTIME_ID, &past));
    ANSWER_ERRNO(sem_timedwait(sem, &past));
    ANSWER_ERRNO(sem_getvalue(sem, &value));
    printf("value: %d\n", value);
}

static void semaphores(void)
{
    for (int shared = 0; shared < 2; shared++) {
        printf("-- semaphore, %d\n", shared);
        sem_t *sem = shared_memory(sizeof *sem);
        memset(sem, 0xa5, sizeof *sem);
        ANSWER_ERRNO(sem_init(sem, shared, INT_MAX + 1u));
        ANSWER_ERRNO(sem_init(sem, shared, INT_MAX));
        ANSWER_ERRNO(sem_post(sem));
        ANSWER_ERRNO(sem_wait(sem));
        ANSWER_ERRNO(sem_post(sem));
        ANSWER_ERRNO(sem_destroy(sem));
        ANSWER_ERRNO(sem_init(sem, shared, 2));
        semaphore(sem);
        if (shared) {
            pid_t child = fork();
            if (child == 0) {
                for (int round = 0; round < 10000; round++) {
                    OK(sem_post(sem));
                }
                _exit(0);
            }
            for (int round = 0; round < 10000; round++) {
                OK(sem_wait(sem));
            }
            reap(child);
            ANSWER_ERRNO(sem_trywait(sem));
        }
        ANSWER_ERRNO(sem_destroy(sem));
    }
    puts("-- semaphore, named");
    char name[64];
    snprintf(name, sizeof name, "/overlock-%d", (int)getpid());
    sem_t *named = sem_open(name, O_CREAT | O_EXCL, 0600, 2);
    CHECK(named != SEM_FAILED);
    semaphore(named);
    ANSWER_ERRNO(sem_close(named));
    ANSWER_ERRNO(sem_unlink(name));
    puts("-- semaphore, zero bytes");
    static sem_t zero;
    ANSWER_ERRNO(sem_trywait(&zero));
    ANSWER_ERRNO(sem_post(&zero));
    ANSWER_ERRNO(sem_wait(&zero));
}

static sem_t interrupted;
static atomic_int handled, waiting, ended;

static void handle(int signal)
{
    (void)signal;
    handled++;
}

static void handle_and_post(int signal)
{
    (void)signal;
    handled++;
    sem_post(&interrupted);
}

static void *wait_plainly(void *with)
{
    (void)with;
    errno = 0;
    waiting = gettid();
    long answer = sem_wait(&interrupted) ? errno : 0;
    ended = 1;
    return (void *)answer;
}

static void *wait_timed(void *with)
{
    (void)with;
    struct timespec at = in_ms(CLOCK_MONOTONIC, 600000);
    errno = 0;
    waiting = gettid();
    long answer = sem_clockwait(&interrupted, CLOCK_MONOTONIC, &at) ? errno : 0;
    ended = 1;
    return (void *)answer;
}

static void interruptions(void)
{
    puts("-- interruptions");
    OK(sem_init(&interrupted, 0, 0));
    for (int restart = 0; restart < 2; restart++) {
        for (int timed = 0; timed < 2; timed++) {
            struct sigaction action = {.sa_handler = handle, .sa_flags = restart ? SA_RESTART : 0};
            OK(sigaction(SIGUSR1, &action, NULL));
            handled = waiting = ended = 0;
            pthread_t waiter = start(timed ? wait_timed : wait_plainly, NULL);
            await_sleep(&waiting);
            OK(pthread_kill(waiter, SIGUSR1));
            while (handled == 0 || (!ended && state_of_thread(waiting) != 'S'))
                sleep_ms(1);
            OK(sem_post(&interrupted));
            long answer = (long)join(waiter);
            printf("%s, %s: %s, %d\n", restart ? "restarts" : "does not restart", timed ? "timed" : "plain",
                   name_of(answer), handled);
            if (answer != 0) {
                OK(sem_wait(&interrupted));
            }
        }
    }
    /* Interrupted waiters leave the value as it was, and a signal handler may post. */
    struct sigaction action = {.sa_handler = handle_and_post, .sa_flags = SA_RESTART};
    OK(sigaction(SIGUSR1, &action, NULL));
    waiting = 0;
    pthread_t waiter = start(wait_plainly, NULL);
    await_sleep(&waiting);
    OK(pthread_kill(waiter, SIGUSR1));
    printf("posted by a handler: %s\n", name_of((long)join(waiter)));
    ANSWER_ERRNO(sem_trywait(&interrupted));
}

int main(void)
{
    spin(PTHREAD_PROCESS_PRIVATE);
    spin(PTHREAD_PROCESS_SHARED);
    barrier(PTHREAD_PROCESS_PRIVATE);
    barrier(PTHREAD_PROCESS_SHARED);
    barrier_that_goes();
    semaphores();
    interruptions();
    return 0;
}
