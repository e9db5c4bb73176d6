/* A process whose threads contend for its locks forks: the child uses all of these locks, and
 * creates threads of its own. */
#include "check.h"

enum { THREADS = 4, FORKS = 40, ROUNDS = 300 };

static struct {
    pthread_mutex_t normal, recursive, errorcheck;
    pthread_cond_t cond;
    pthread_rwlock_t lock, writers;
    pthread_spinlock_t spin;
    sem_t sem;
    long counts[6];
    int turn;
} all = {
    .normal = PTHREAD_MUTEX_INITIALIZER,
    .recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
    .errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
    .cond = PTHREAD_COND_INITIALIZER,
    .lock = PTHREAD_RWLOCK_INITIALIZER,
    .writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP,
};

static atomic_int over;

static void use_all(void)
{
    OK(pthread_mutex_lock(&all.normal));
    all.counts[0]++;
    all.turn++;
    OK(pthread_cond_signal(&all.cond));
    OK(pthread_mutex_unlock(&all.normal));
    OK(pthread_mutex_lock(&all.recursive));
    OK(pthread_mutex_lock(&all.recursive));
    all.counts[1]++;
    OK(pthread_mutex_unlock(&all.recursive));
    OK(pthread_mutex_unlock(&all.recursive));
    OK(pthread_rwlock_wrlock(&all.lock));
    all.counts[2]++;
    OK(pthread_rwlock_unlock(&all.lock));
    OK(pthread_rwlock_rdlock(&all.lock));
    OK(pthread_rwlock_unlock(&all.lock));
    OK(pthread_rwlock_rdlock(&all.writers));
    OK(pthread_rwlock_unlock(&all.writers));
    OK(pthread_rwlock_wrlock(&all.writers));
    all.counts[3]++;
    OK(pthread_rwlock_unlock(&all.writers));
    OK(pthread_spin_lock(&all.spin));
    all.counts[4]++;
    OK(pthread_spin_unlock(&all.spin));
    while (sem_wait(&all.sem) != 0) {
        CHECK(errno == EINTR);
    }
    all.counts[5]++;
    OK(sem_post(&all.sem));
}

static void *contend(void *with)
{
    (void)with;
    while (!over) {
        use_all();
        struct timespec at = in_ms(CLOCK_REALTIME, 1);
        OK(pthread_mutex_lock(&all.normal));
        int answer = pthread_cond_timedwait(&all.cond, &all.normal, &at);
        CHECK(answer == 0 || answer == ETIMEDOUT);
        OK(pthread_mutex_unlock(&all.normal));
    }
    return NULL;
}

static void *use_often(void *with)
{
    for (int round = 0; round < ROUNDS; round++) {
        use_all();
    }
    return with;
}

/* As a library does that needs its locks usable in the child. */
static void before(void)
{
    OK(pthread_mutex_lock(&all.normal));
    OK(pthread_mutex_lock(&all.recursive));
    OK(pthread_rwlock_wrlock(&all.lock));
    OK(pthread_rwlock_wrlock(&all.writers));
    OK(pthread_spin_lock(&all.spin));
    while (sem_wait(&all.sem) != 0) {
    }
}

static void after(void)
{
    OK(sem_post(&all.sem));
    OK(pthread_spin_unlock(&all.spin));
    OK(pthread_rwlock_unlock(&all.writers));
    OK(pthread_rwlock_unlock(&all.lock));
    OK(pthread_mutex_unlock(&all.recursive));
    OK(pthread_mutex_unlock(&all.normal));
}

/* In a child glibc's recursive mutexes belong to the parent's thread, and its other objects may
 * refer to threads that do not exist. */
static void after_in_child(void)
{
    const char *mutex = getenv("OVERLOCK_MUTEX");
    if (getenv("LD_PRELOAD") != NULL && (mutex == NULL || strcmp(mutex, "glibc") != 0)) {
        after();
        return;
    }
    OK(sem_post(&all.sem));
    OK(pthread_spin_unlock(&all.spin));
    OK(pthread_rwlock_init(&all.writers, NULL));
    OK(pthread_rwlock_init(&all.lock, NULL));
    OK(pthread_cond_init(&all.cond, NULL));
    OK(pthread_mutex_init(&all.normal, NULL));
    pthread_mutexattr_t attr;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
    OK(pthread_mutex_init(&all.recursive, &attr));
}

/* Runs in a child, and in its child. */
static void in_child(int generations)
{
    for (int i = 0; i < 6; i++) {
        all.counts[i] = 0;
    }
    use_all();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        threads[i] = start(use_often, NULL);
    }
    use_often(NULL);
    pid_t child = generations > 1 ? fork() : -1;
    if (child == 0) {
        in_child(generations - 1);
        _exit(0);
    }
    if (child > 0) {
        reap(child);
    }
    for (int i = 0; i < THREADS; i++) {
        join(threads[i]);
    }
    for (int i = 0; i < 6; i++) {
        CHECK(all.counts[i] == ROUNDS * (THREADS + 1) + 1);
    }
    OK(pthread_mutex_lock(&all.errorcheck));
    OK(pthread_mutex_unlock(&all.errorcheck));
}

int main(void)
{
    OK(pthread_spin_init(&all.spin, 0));
    OK(sem_init(&all.sem, 0, 1));
    OK(pthread_atfork(before, after, after_in_child));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        threads[i] = start(contend, NULL);
    }
    for (int round = 0; round < FORKS; round++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(600);
            in_child(round % 4 == 0 ? 2 : 1);
            _exit(0);
        }
        reap(child);
    }
    over = 1;
    for (int i = 0; i < THREADS; i++) {
        join(threads[i]);
    }
    return 0;
}
