/* Cancellation of waiting threads. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static atomic_int cleaned, waiting, over;
static int owner_answer, ready, taken;

static void clean_up(void *with)
{
    (void)with;
    /* This thread owns the mutex again. */
    owner_answer = OTHER(pthread_mutex_trylock, &mutex);
    cleaned++;
    OK(pthread_mutex_unlock(&mutex));
}

static void *wait_for_cond(void *timed)
{
    struct timespec at = in_ms(CLOCK_REALTIME, 600000);
    OK(pthread_mutex_lock(&mutex));
    pthread_cleanup_push(clean_up, NULL);
    waiting++;
    while (!ready) {
        OK(timed != NULL ? pthread_cond_timedwait(&cond, &mutex, &at) : pthread_cond_wait(&cond, &mutex));
    }
    pthread_cleanup_pop(0);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void await(int count)
{
    while (waiting != count) {
        sleep_ms(1);
    }
    sleep_ms(20);
}

static void conditions(void)
{
    for (long timed = 0; timed < 2; timed++) {
        cleaned = waiting = ready = 0;
        pthread_t waiter = start(wait_for_cond, (void *)timed);
        await(1);
        OK(pthread_cancel(waiter));
        printf("condition: %s\n", join(waiter) == PTHREAD_CANCELED ? "cancelled" : "returned");
        printf("cleaned up %d, the mutex was %s\n", cleaned, name_of(owner_answer));
        /* The others keep waiting, and are still notified. */
        pthread_t waiters[4];
        cleaned = waiting = 0;
        for (int i = 0; i < 4; i++) {
            waiters[i] = start(wait_for_cond, (void *)timed);
        }
        await(4);
        OK(pthread_cancel(waiters[1]));
        OK(pthread_cancel(waiters[3]));
        CHECK(join(waiters[1]) == PTHREAD_CANCELED && join(waiters[3]) == PTHREAD_CANCELED);
        OK(pthread_mutex_lock(&mutex));
        ready = 1;
        OK(pthread_cond_broadcast(&cond));
        OK(pthread_mutex_unlock(&mutex));
        CHECK(join(waiters[0]) == NULL && join(waiters[2]) == NULL);
        printf("cleaned up %d\n", cleaned);
    }
}

/* A cancellation before the wait. */
static void *wait_for_cond_late(void *with)
{
    OK(pthread_mutex_lock(&mutex));
    pthread_cleanup_push(clean_up, NULL);
    waiting++;
    while (!over) {
    }
    OK(pthread_cond_wait(&cond, &mutex));
    pthread_cleanup_pop(1);
    return with;
}

static void *wait_for_sem_late(void *with)
{
    waiting++;
    while (!over) {
    }
    OK(sem_wait(&sem));
    return with;
}

static void pending(void)
{
    thread_main late[] = {wait_for_cond_late, wait_for_sem_late};
    OK(sem_init(&sem, 0, 1));
    for (int i = 0; i < 2; i++) {
        waiting = over = cleaned = 0;
        pthread_t waiter = start(late[i], NULL);
        while (!waiting) {
            sleep_ms(1);
        }
        OK(pthread_cancel(waiter));
        over = 1;
        printf("pending: %s, cleaned up %d\n", join(waiter) == PTHREAD_CANCELED ? "cancelled" : "returned", cleaned);
    }
    int value;
    OK(sem_getvalue(&sem, &value));
    printf("value %d\n", value);
    OK(sem_destroy(&sem));
}

static void *wait_for_sem(void *how)
{
    struct timespec at = in_ms(CLOCK_MONOTONIC, 600000), real = in_ms(CLOCK_REALTIME, 600000);
    waiting++;
    switch ((long)how) {
    case 0: OK(sem_wait(&sem)); break;
    case 1: OK(sem_timedwait(&sem, &real)); break;
    default: OK(sem_clockwait(&sem, CLOCK_MONOTONIC, &at)); break;
    }
    return NULL;
}

static void semaphores(void)
{
    OK(sem_init(&sem, 0, 0));
    for (long how = 0; how < 3; how++) {
        waiting = 0;
        pthread_t waiter = start(wait_for_sem, (void *)how);
        await(1);
        OK(pthread_cancel(waiter));
        printf("semaphore: %s\n", join(waiter) == PTHREAD_CANCELED ? "cancelled" : "returned");
        OK(sem_post(&sem));
        OK(sem_wait(&sem));
    }
}

/* Cancelled waiters lose no permit, and no permit stays unused while threads wait. */
static void *take_all_along(void *with)
{
    (void)with;
    for (;;) {
        OK(sem_wait(&sem));
        __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    }
}

enum { ROUNDS = 300, TAKERS = 4 };

static void conservation(void)
{
    taken = 0;
    int posted = 0;
    pthread_t stays = start(take_all_along, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t takers[TAKERS];
        for (int i = 0; i < TAKERS; i++) {
            takers[i] = start(take_all_along, NULL);
        }
        for (int i = 0; i < TAKERS; i++) {
            OK(sem_post(&sem));
            posted++;
            OK(pthread_cancel(takers[i]));
            OK(sem_post(&sem));
            posted++;
        }
        for (int i = 0; i < TAKERS; i++) {
            CHECK(join(takers[i]) == PTHREAD_CANCELED);
        }
        /* The remaining waiter takes their permits. */
        for (int waited = 0; __atomic_load_n(&taken, __ATOMIC_RELAXED) != posted; waited++) {
            CHECK(waited < 120000);
            sleep_ms(waited == 0 ? 0 : 1);
        }
    }
    OK(pthread_cancel(stays));
    CHECK(join(stays) == PTHREAD_CANCELED);
    CHECK(sem_trywait(&sem) != 0 && errno == EAGAIN);
}

/* A signal is not lost if a waiter is cancelled at the same time: another waiter gets it, or this
 * one, which then returns. */
static pthread_mutex_t turn_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_cond = PTHREAD_COND_INITIALIZER;
static int tokens;
static atomic_int consumed;

static void unlock_turn(void *with)
{
    (void)with;
    pthread_mutex_unlock(&turn_mutex);
}

static void *consume(void *with)
{
    OK(pthread_mutex_lock(&turn_mutex));
    pthread_cleanup_push(unlock_turn, NULL);
    while (tokens == 0) {
        OK(pthread_cond_wait(&turn_cond, &turn_mutex));
    }
    tokens--;
    consumed++;
    pthread_cleanup_pop(1);
    return with;
}

static void signals(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t one = start(consume, NULL), two = start(consume, NULL);
        if (round % 2) {
            sleep_ms(1);
        }
        OK(pthread_mutex_lock(&turn_mutex));
        tokens++;
        OK(pthread_cond_signal(&turn_cond));
        OK(pthread_mutex_unlock(&turn_mutex));
        OK(pthread_cancel(one));
        void *answer = join(one);
        if (answer != PTHREAD_CANCELED) {
            OK(pthread_mutex_lock(&turn_mutex));
            tokens++;
            OK(pthread_cond_signal(&turn_cond));
            OK(pthread_mutex_unlock(&turn_mutex));
        }
        join(two);
        CHECK(tokens == 0);
    }
    puts("no signal is lost");
}

static void *wait_disabled(void *how)
{
    int state;
    OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state));
    wait_for_sem(how);
    OK(pthread_mutex_lock(&mutex));
    waiting++;
    while (!ready) {
        OK(pthread_cond_wait(&cond, &mutex));
    }
    OK(pthread_mutex_unlock(&mutex));
    cleaned++;
    OK(pthread_setcancelstate(state, NULL));
    pthread_testcancel();
    return NULL;
}

static void disabled(void)
{
    OK(sem_init(&sem, 0, 0));
    for (long how = 0; how < 3; how++) {
        waiting = cleaned = ready = 0;
        pthread_t waiter = start(wait_disabled, (void *)how);
        await(1);
        OK(pthread_cancel(waiter));
        sleep_ms(20);
        CHECK(waiting == 1);
        OK(sem_post(&sem));
        await(2);
        OK(pthread_cancel(waiter));
        sleep_ms(20);
        CHECK(cleaned == 0);
        OK(pthread_mutex_lock(&mutex));
        ready = 1;
        OK(pthread_cond_signal(&cond));
        OK(pthread_mutex_unlock(&mutex));
        printf("disabled: %s, ", join(waiter) == PTHREAD_CANCELED ? "cancelled" : "returned");
        printf("it went on %d times\n", cleaned);
    }
}

static void cancel_own(int signal)
{
    (void)signal;
    pthread_cancel(pthread_self());
}

/* No other cancellation point follows. */
static void *wait_once(void *with)
{
    struct timespec at = in_ms(CLOCK_REALTIME, 600000);
    waiting++;
    sem_timedwait(&sem, &at);
    return with;
}

/* A cancellation that comes with a signal, as each does from glibc 2.41 on. */
static void interrupted(void)
{
    struct sigaction action = {.sa_handler = cancel_own};
    OK(sigaction(SIGUSR1, &action, NULL));
    OK(sem_init(&sem, 0, 0));
    waiting = 0;
    pthread_t waiter = start(wait_once, NULL);
    await(1);
    sleep_ms(20);
    OK(pthread_kill(waiter, SIGUSR1));
    printf("interrupted: %s\n", join(waiter) == PTHREAD_CANCELED ? "cancelled" : "returned");
}

int main(void)
{
    conditions();
    pending();
    semaphores();
    interrupted();
    /* glibc's condition variables may lose a wake-up of a cancelled waiter. */
    const char *whose = getenv("OVERLOCK_MUTEX");
    if (getenv("LD_PRELOAD") != NULL && (whose == NULL || strcmp(whose, "glibc") != 0)) {
        conservation();
    }
    signals();
    disabled();
    return 0;
}
