/* A thread that holds all locks makes children that run no handlers of pthread_atfork, while others
 * wait for these locks. The children use them, with threads of their own. With an argument they use
 * conditions and reader-writer locks, too: in glibc's, threads that do not exist are in the way. */
#include "check.h"
#include <sched.h>
#include <sys/syscall.h>

enum { THREADS = 6, CHILDREN = 40, ROUNDS = 100 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, of_cond = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static atomic_int over;
static long count;
static int turn;

static void use(int conditions)
{
    OK(pthread_mutex_lock(&mutex));
    count++;
    OK(pthread_mutex_unlock(&mutex));
    while (sem_wait(&sem) != 0)
        CHECK(errno == EINTR);
    OK(sem_post(&sem));
    if (conditions) {
        OK(pthread_rwlock_wrlock(&lock));
        OK(pthread_rwlock_unlock(&lock));
        OK(pthread_rwlock_rdlock(&lock));
        OK(pthread_rwlock_unlock(&lock));
        struct timespec at = in_ms(CLOCK_REALTIME, 1);
        OK(pthread_mutex_lock(&of_cond));
        turn++;
        OK(pthread_cond_signal(&cond));
        if (turn % 4 == 0)
            OK(pthread_cond_broadcast(&cond));
        int answer = pthread_cond_timedwait(&cond, &of_cond, &at);
        CHECK(answer == 0 || answer == ETIMEDOUT);
        OK(pthread_mutex_unlock(&of_cond));
    }
}

static void *contend(void *with)
{
    while (!over) {
        use(with != NULL);
        usleep(50);
    }
    return NULL;
}

static void *use_often(void *with)
{
    for (int round = 0; round < ROUNDS; round++)
        use(with != NULL && round % 50 == 0);
    return NULL;
}

static int waits, is_told;

static void *be_told(void *with)
{
    OK(pthread_mutex_lock(&of_cond));
    waits = 1;
    while (!is_told)
        OK(pthread_cond_wait(&cond, &of_cond));
    OK(pthread_mutex_unlock(&of_cond));
    return with;
}

/* One signal wakes the thread that waits, whoever has waited in the parent. */
static void tell(void)
{
    pthread_t thread = start(be_told, NULL);
    OK(pthread_mutex_lock(&of_cond));
    while (!waits) {
        OK(pthread_mutex_unlock(&of_cond));
        sched_yield();
        OK(pthread_mutex_lock(&of_cond));
    }
    is_told = 1;
    OK(pthread_cond_signal(&cond));
    OK(pthread_mutex_unlock(&of_cond));
    join(thread);
}

static void hold(void)
{
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_lock(&of_cond));
    OK(pthread_rwlock_wrlock(&lock));
    while (sem_wait(&sem) != 0) {
    }
}

static void let_go(void)
{
    OK(sem_post(&sem));
    OK(pthread_rwlock_unlock(&lock));
    OK(pthread_mutex_unlock(&of_cond));
    OK(pthread_mutex_unlock(&mutex));
}

/* Past every function of a library. */
static pid_t clone_barely(void)
{
#ifdef __x86_64__
    long result;
    register long none __asm__("r10") = 0, neither __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_clone), "D"(SIGCHLD), "S"(0), "d"(0), "r"(none), "r"(neither)
                     : "rcx", "r11", "memory");
    return (pid_t)result;
#else
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
}

static pid_t make_and_replace(void)
{
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    return child;
}

static void in_child(void *conditions)
{
    let_go();
    if (conditions != NULL)
        tell();
    count = 0;
    pthread_t threads[2] = {start(use_often, conditions), start(use_often, conditions)};
    use_often(conditions);
    join(threads[0]);
    join(threads[1]);
    CHECK(count == 3 * ROUNDS);
    _exit(0);
}

int main(int argc, char **argv)
{
    void *conditions = argc > 1 ? argv : NULL;
    OK(sem_init(&sem, 0, 1));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(contend, conditions);
    for (int i = 0; i < CHILDREN; i++) {
        hold();
        sched_yield();
        pid_t child;
        switch (i % 4) {
        case 0: child = _Fork(); break;
        case 1: child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); break;
        case 2: child = clone_barely(); break;
        default: child = make_and_replace();
        }
        if (child == 0)
            in_child(conditions);
        CHECK(child > 0);
        let_go();
        reap(child);
    }
    over = 1;
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    puts("all children have ended");
    return 0;
}
