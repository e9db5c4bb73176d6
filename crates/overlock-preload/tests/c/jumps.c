/* A thread waits for a lock that another one holds, and its signal handler jumps out of the wait.
 * Others use the lock as before. A jump within a handler leaves the wait alone. */
#include "check.h"
#include <setjmp.h>

enum { JUMPS = 60, OTHERS = 3, ROUNDS = 200 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem, go;
static sigjmp_buf out;
static atomic_int waits, jumps, over, stays;

static void acquire(int kind)
{
    if (kind == 'm')
        OK(pthread_mutex_lock(&mutex));
    else if (kind == 'w')
        OK(pthread_rwlock_wrlock(&lock));
    else
        while (sem_wait(&sem) != 0)
            CHECK(errno == EINTR);
}

static void release(int kind)
{
    if (kind == 'm')
        OK(pthread_mutex_unlock(&mutex));
    else if (kind == 'w')
        OK(pthread_rwlock_unlock(&lock));
    else
        OK(sem_post(&sem));
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
            acquire((int)(intptr_t)kind);
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
        acquire((int)(intptr_t)kind);
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
        acquire(kind);
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
        acquire(kind);
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

int main(void)
{
    OK(sem_init(&sem, 0, 1));
    OK(sem_init(&go, 0, 0));
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    round_of('m');
    round_of('w');
    round_of('s');
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    leave_conditions();
    return 0;
}
