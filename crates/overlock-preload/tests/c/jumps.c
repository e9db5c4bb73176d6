/* A thread waits for a lock that another one holds, and its signal handler jumps out of the wait.
 * Others use the lock as before. A jump within a handler leaves the wait alone. With an argument:
 * waits after which the C library's locks are of no use. */
#include "check.h"
#include <setjmp.h>

enum { JUMPS = 40, OTHERS = 3, ROUNDS = 200 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem, go;
static sigjmp_buf out;
static atomic_int waits, jumps, over, stays;

/* Small letters have no limit; the jumper of 'r' and 'R' reads, and others write. */
static void acquire(int kind, int jumps_out)
{
    struct timespec at = in_ms(CLOCK_REALTIME, 600000);
    int reads = jumps_out && (kind == 'r' || kind == 'R');
    if (kind == 'm')
        OK(pthread_mutex_lock(&mutex));
    else if (kind == 'M')
        OK(pthread_mutex_timedlock(&mutex, &at));
    else if (reads && kind == 'r')
        OK(pthread_rwlock_rdlock(&lock));
    else if (reads)
        OK(pthread_rwlock_timedrdlock(&lock, &at));
    else if (kind == 'w' || kind == 'r')
        OK(pthread_rwlock_wrlock(&lock));
    else if (kind == 'W' || kind == 'R')
        OK(pthread_rwlock_timedwrlock(&lock, &at));
    else
        while ((kind == 's' ? sem_wait(&sem) : sem_timedwait(&sem, &at)) != 0)
            CHECK(errno == EINTR);
}

static void release(int kind)
{
    if (kind == 'm' || kind == 'M')
        OK(pthread_mutex_unlock(&mutex));
    else if (kind == 's' || kind == 'S')
        OK(sem_post(&sem));
    else
        OK(pthread_rwlock_unlock(&lock));
}

static void handle(int signal)
{
    (void)signal;
    sigjmp_buf here;
    if (!stays)
        siglongjmp(out, 1);
    if (sigsetjmp(here, 0) == 0)
        siglongjmp(here, 1);
    jumps++;
}

static void *jump(void *kind)
{
    for (;;) {
        while (sem_wait(&go) != 0) {
        }
        if (over)
            return NULL;
        if (sigsetjmp(out, 1) == 0) {
            waits = 1;
            acquire((int)(intptr_t)kind, 1);
            CHECK(stays);
            release((int)(intptr_t)kind);
            waits = 0;
        } else {
            jumps++;
        }
    }
}

static void *use(void *kind)
{
    while (!over) {
        acquire((int)(intptr_t)kind, 0);
        release((int)(intptr_t)kind);
        usleep(100);
    }
    return NULL;
}

static void round_of(int kind)
{
    void *with = (void *)(intptr_t)kind;
    over = 0;
    pthread_t jumper = start(jump, with), others[OTHERS];
    for (int i = 0; i < OTHERS; i++)
        others[i] = start(use, with);
    for (int i = 0; i < JUMPS; i++) {
        acquire(kind, 0);
        stays = i % 4 == 3;
        waits = 0;
        int before = jumps;
        OK(sem_post(&go));
        while (!waits)
            usleep(50);
        usleep(3000);
        OK(pthread_kill(jumper, SIGUSR1));
        while (jumps == before)
            usleep(50);
        release(kind);
        while (stays && waits)
            usleep(50);
    }
    for (int i = 0; i < ROUNDS; i++) {
        acquire(kind, 0);
        release(kind);
    }
    over = 1;
    OK(sem_post(&go));
    join(jumper);
    for (int i = 0; i < OTHERS; i++)
        join(others[i]);
    printf("%c: the others went on\n", kind);
}

enum { CONDITIONS = 20 };

static int is_told;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;

static void *be_told(void *with)
{
    OK(pthread_mutex_lock(&mutex));
    while (!is_told)
        OK(pthread_cond_wait(&told, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    return with;
}

/* A thread that has jumped out of many waits for conditions waits for others as before. */
static void leave_conditions(void)
{
    static pthread_mutex_t mutexes[CONDITIONS];
    static pthread_cond_t conds[CONDITIONS];
    stays = 0;
    for (volatile int i = 0; i < CONDITIONS; i++) {
        OK(pthread_mutex_init(&mutexes[i], NULL));
        OK(pthread_cond_init(&conds[i], NULL));
        if (sigsetjmp(out, 1) == 0) {
            OK(pthread_mutex_lock(&mutexes[i]));
            ualarm(3000, 0);
            pthread_cond_wait(&conds[i], &mutexes[i]);
            CHECK(!"nobody has signalled");
        }
    }
    pthread_t thread = start(be_told, NULL);
    struct timespec at = in_ms(CLOCK_REALTIME, 200);
    OK(pthread_mutex_lock(&mutex));
    CHECK(pthread_cond_timedwait(&conds[0], &mutex, &at) == ETIMEDOUT);
    is_told = 1;
    OK(pthread_cond_signal(&told));
    OK(pthread_mutex_unlock(&mutex));
    join(thread);
    puts("c: the thread waits again");
}

enum { WAITERS = 6, TURNS = 30 };

static atomic_int place, told_now, waiters_now;
static pthread_barrier_t barrier;

/* One of the waiters is the jumper, whose place in the order of arrival changes. */
static void *wait_for_one(void *with)
{
    (void)with;
    OK(pthread_mutex_lock(&mutex));
    waiters_now++;
    if (place++ % 2 == 0) {
        OK(pthread_cond_wait(&told, &mutex));
    } else {
        struct timespec at = in_ms(CLOCK_REALTIME, 600000);
        OK(pthread_cond_timedwait(&told, &mutex, &at));
    }
    told_now++;
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void *jump_out_of_one(void *with)
{
    if (sigsetjmp(out, 1) == 0)
        return wait_for_one(with);
    jumps++;
    return NULL;
}

/* The jump comes before the notifications, between them and the wake-up, or after both. */
static void notify_after_jumps(int broadcasts, int before)
{
    static const char *const names[] = {"signals", "a broadcast"};
    stays = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        pthread_t threads[WAITERS];
        told_now = waiters_now = place = 0;
        int jumper = turn % WAITERS, jumped = jumps;
        for (int i = 0; i < WAITERS; i++) {
            threads[i] = start(i == jumper ? jump_out_of_one : wait_for_one, NULL);
            while (waiters_now <= i)
                usleep(50);
        }
        usleep(500);
        /* No wait ends while the mutex is held. */
        OK(pthread_mutex_lock(&mutex));
        if (before) {
            OK(pthread_kill(threads[jumper], SIGUSR1));
            while (jumps == jumped)
                usleep(50);
        }
        if (broadcasts)
            OK(pthread_cond_broadcast(&told));
        for (int i = 0; !broadcasts && i < WAITERS - before; i++)
            OK(pthread_cond_signal(&told));
        if (!before) {
            OK(pthread_kill(threads[jumper], SIGUSR1));
            while (jumps == jumped)
                usleep(50);
        }
        OK(pthread_mutex_unlock(&mutex));
        for (int i = 0; i < WAITERS; i++)
            join(threads[i]);
        CHECK(told_now == WAITERS - 1);
    }
    OK(pthread_cond_destroy(&told));
    OK(pthread_cond_init(&told, NULL));
    printf("%s %s a jump: the others are told\n", names[broadcasts], before ? "after" : "before");
}

static void *arrive(void *with)
{
    pthread_barrier_wait(&barrier);
    return with;
}

static void *arrive_and_jump(void *with)
{
    if (sigsetjmp(out, 1) == 0) {
        waits = gettid();
        pthread_barrier_wait(&barrier);
        CHECK(!"the others have not arrived");
    }
    jumps++;
    return with;
}

/* A thread that has jumped out of the wait for a barrier has arrived. */
static void leave_a_barrier(void)
{
    stays = 0;
    OK(pthread_barrier_init(&barrier, NULL, OTHERS + 1));
    for (int turn = 0; turn < TURNS; turn++) {
        int before = jumps;
        waits = 0;
        pthread_t jumper = start(arrive_and_jump, NULL), others[OTHERS];
        await_sleep(&waits);
        OK(pthread_kill(jumper, SIGUSR1));
        while (jumps == before)
            usleep(50);
        join(jumper);
        for (int i = 0; i < OTHERS; i++)
            others[i] = start(arrive, NULL);
        for (int i = 0; i < OTHERS; i++)
            join(others[i]);
    }
    puts("b: the others are through");
}

int main(int count, char **arguments)
{
    (void)arguments;
    OK(sem_init(&sem, 0, 1));
    OK(sem_init(&go, 0, 0));
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    for (const char *kind = count > 1 ? "rR" : "mwsMWS"; *kind; kind++)
        round_of(*kind);
    if (count > 1) {
        for (int i = 0; i < 4; i++)
            notify_after_jumps(i / 2, i % 2);
        leave_conditions();
    } else {
        leave_conditions();
        leave_a_barrier();
    }
    return 0;
}
