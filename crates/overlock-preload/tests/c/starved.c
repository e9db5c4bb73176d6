/* Waiters that have lost their CPU: while the lock is free nobody waits for them. Two CPUs are
 * needed and a right to real-time priorities. Without them the program says so, and nothing is
 * tested. */
#include "objects.h"

enum { HOG_MS = 200 };

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void work_ms(double ms)
{
    double end = now_ms() + ms;
    while (now_ms() < end) {
    }
}

static atomic_int served;
static int late;

/* Keeps the CPU until the lock has been given to whom it was free for. A trial in which that takes
 * long is late: the lock waited for a thread that has no CPU because of this one. The time in which
 * the machine stops does not count. */
static void work_until_served(void)
{
    double spent = 0, last = now_ms();
    while (!served && spent < HOG_MS) {
        double now = now_ms();
        spent += now - last < 0.1 ? now - last : 0.1;
        last = now;
    }
    late += !served;
}

static int cpus[2];

static int find_cpus(void)
{
    cpu_set_t allowed;
    OK(pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed));
    int found = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; ++cpu)
        if (CPU_ISSET(cpu, &allowed))
            cpus[found++] = cpu;
    return found == 2;
}

/* Binds the calling thread to one of the two CPUs. Returns 0 or an errno. */
static int run_on(int which, int policy, int priority)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus[which], &one);
    OK(pthread_setaffinity_np(pthread_self(), sizeof one, &one));
    struct sched_param param = {priority};
    return pthread_setschedparam(pthread_self(), policy, &param);
}

static atomic_int over;
static sem_t may_wait, may_sleep, may_hog, done;

static void begin(void)
{
    over = 0;
    late = 0;
    OK(sem_init(&may_wait, 0, 0));
    OK(sem_init(&may_sleep, 0, 0));
    OK(sem_init(&may_hog, 0, 0));
    OK(sem_init(&done, 0, 0));
}

static void end(pthread_t *threads, int count)
{
    over = 1;
    sem_post(&may_wait);
    sem_post(&may_sleep);
    sem_post(&may_hog);
    while (count > 0)
        join(threads[--count]);
}

/* A stop of one CPU delays a trial, whosever the lock is. */
enum { DISTURBED = 3 };

static void check(const char *what, int trials)
{
    if (late > DISTURBED) {
        printf("%s %d ms in %d of %d trials\n", what, HOG_MS, late, trials);
        exit(1);
    }
}

/* A lock is held. A thread with the highest priority sleeps for it, then another begins to wait,
 * and some microseconds later loses its CPU. The lock is free then, and the sleeper gets it. */

enum { TRIALS = 80 };

static void *wait_beside_hog(void *none)
{
    OK(run_on(0, SCHED_FIFO, 5));
    for (;;) {
        sem_wait(&may_wait);
        if (over)
            return none;
        sem_post(&may_hog);
        OK(pthread_mutex_lock(&normal));
        OK(pthread_mutex_unlock(&normal));
        sem_post(&done);
    }
}

static void *hog_in_real_time(void *none)
{
    OK(run_on(0, SCHED_FIFO, 10));
    for (long trial = 0;; ++trial) {
        sem_wait(&may_hog);
        if (over)
            return none;
        struct timespec soon = {0, 1000 + trial % 20 * 1000};
        nanosleep(&soon, NULL);
        work_until_served();
        sem_post(&done);
    }
}

static void *sleep_in_real_time(void *none)
{
    OK(run_on(1, SCHED_FIFO, 50));
    for (;;) {
        sem_wait(&may_sleep);
        if (over)
            return none;
        OK(pthread_mutex_lock(&normal));
        served = 1;
        OK(pthread_mutex_unlock(&normal));
        sem_post(&done);
    }
}

static void sleeper_of_high_priority(void)
{
    OK(run_on(1, SCHED_FIFO, 20));
    begin();
    pthread_t threads[] = {
        start(wait_beside_hog, NULL),
        start(hog_in_real_time, NULL),
        start(sleep_in_real_time, NULL),
    };
    for (int trial = 0; trial < TRIALS; ++trial) {
        served = 0;
        OK(pthread_mutex_lock(&normal));
        sem_post(&may_sleep);
        work_ms(0.3);
        sem_post(&may_wait);
        work_ms(0.7);
        OK(pthread_mutex_unlock(&normal));
        for (int count = 0; count < 3; ++count)
            sem_wait(&done);
        sleep_ms(2);
    }
    end(threads, 3);
    check("a sleeper of high priority got a free lock after more than", TRIALS);
}

/* A thread sleeps for a lock that others have taken past it, for so long that the lock is handed
 * off to it; but it has no CPU then. Who comes next does not wait until it has one. */

enum { HANDOFFS = 40, OLD_MS = 6 };

/* How often the hog has begun: it may be done before others see that. */
static atomic_int begun;
static atomic_int heir;

static void *wait_for_handoff(void *none)
{
    OK(run_on(0, SCHED_OTHER, 0));
    heir = gettid();
    for (;;) {
        sem_wait(&may_wait);
        if (over)
            return none;
        OK(pthread_mutex_lock(&normal));
        OK(pthread_mutex_unlock(&normal));
        sem_post(&done);
    }
}

static void *hog_when_told(void *none)
{
    OK(run_on(0, SCHED_FIFO, 10));
    for (;;) {
        sem_wait(&may_hog);
        if (over)
            return none;
        ++begun;
        work_until_served();
        sem_post(&done);
    }
}

static void heir_without_cpu(int policy)
{
    OK(run_on(1, policy, policy == SCHED_OTHER ? 0 : 20));
    begin();
    heir = begun = 0;
    pthread_t threads[] = {start(wait_for_handoff, NULL), start(hog_when_told, NULL)};
    for (int trial = 0; trial < HANDOFFS; ++trial) {
        served = 0;
        OK(pthread_mutex_lock(&normal));
        sem_post(&may_wait);
        sleep_ms(OLD_MS);
        await_sleep(&heir);
        OK(pthread_mutex_unlock(&normal));
        OK(pthread_mutex_lock(&normal));
        sleep_ms(1);
        await_sleep(&heir);
        sem_post(&may_hog);
        while (begun == trial)
            sched_yield();
        OK(pthread_mutex_unlock(&normal));
        OK(pthread_mutex_lock(&normal));
        served = 1;
        OK(pthread_mutex_unlock(&normal));
        sem_wait(&done);
        sem_wait(&done);
    }
    end(threads, 2);
    check("a lock that was handed off was closed for over", HANDOFFS);
}

/* A writer sleeps for a lock, and another thread behind it, which has the highest priority. Then
 * the CPU of the first is taken, and the lock is released. */

enum { TURNS = 20 };

static pthread_rwlock_t rwlock;
static atomic_int first, second;
static int reads;

static void *write_first(void *none)
{
    OK(run_on(0, SCHED_OTHER, 0));
    first = gettid();
    for (;;) {
        sem_wait(&may_wait);
        if (over)
            return none;
        OK(pthread_rwlock_wrlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
        sem_post(&done);
    }
}

static void *wait_behind(void *none)
{
    OK(run_on(1, SCHED_FIFO, 50));
    second = gettid();
    for (;;) {
        sem_wait(&may_sleep);
        if (over)
            return none;
        OK(reads ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock));
        served = 1;
        OK(pthread_rwlock_unlock(&rwlock));
        sem_post(&done);
    }
}

static void behind_writer(int kind, int is_read, int reads_behind)
{
    pthread_rwlockattr_t attr;
    OK(pthread_rwlockattr_init(&attr));
    OK(pthread_rwlockattr_setkind_np(&attr, kind));
    OK(pthread_rwlock_init(&rwlock, &attr));
    OK(run_on(1, SCHED_FIFO, 20));
    begin();
    first = second = begun = 0;
    reads = reads_behind;
    pthread_t threads[] = {start(write_first, NULL), start(wait_behind, NULL), start(hog_when_told, NULL)};
    for (int turn = 0; turn < TURNS; ++turn) {
        served = 0; /* some wait for nobody */
        OK(is_read ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock));
        sem_post(&may_wait);
        sleep_ms(3);
        await_sleep(&first);
        sem_post(&may_sleep);
        sleep_ms(3);
        if (!is_read || !reads_behind || kind == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP)
            await_sleep(&second);
        sem_post(&may_hog);
        while (begun == turn)
            sched_yield();
        OK(pthread_rwlock_unlock(&rwlock));
        for (int count = 0; count < 3; ++count)
            sem_wait(&done);
    }
    end(threads, 3);
    check("a waiter behind a writer got a free lock after more than", TURNS);
}

int main(int count, char **scenes)
{
    const char *scene = count > 1 ? scenes[1] : "";
    if (!find_cpus()) {
        fputs("skipped: two CPUs are needed\n", stderr);
    } else if (run_on(1, SCHED_FIFO, 20) != 0) {
        fputs("skipped: a right to real-time priorities is needed\n", stderr);
    } else if (strcmp(scene, "behind") == 0) {
        for (int ways = 0; ways < 4; ++ways) {
            behind_writer(PTHREAD_RWLOCK_PREFER_READER_NP, ways & 1, ways >> 1);
            behind_writer(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, ways & 1, ways >> 1);
        }
    } else if (strcmp(scene, "heir") == 0) {
        heir_without_cpu(SCHED_OTHER);
        heir_without_cpu(SCHED_FIFO);
    } else {
        sleeper_of_high_priority();
    }
    puts("done");
    return 0;
}
