// Waits for a mutex, each for one reason: `causes REASON [GROUP]`. GROUP is a directory of a cgroup
// with a quota, for `quota`. HOLD_MS in the environment is how long each takes, in milliseconds.
// Prints how many waits there were.
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "asleep.h"

enum { WAITS = 10 };

static int hold_ms = 40;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t meet, held;
static sem_t burst;
static int ends[2];
static int faults;
static char *pages;
static volatile int done;

static long now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void rest(int millis)
{
    struct timespec time = { millis / 1000, millis % 1000 * 1000000L };
    nanosleep(&time, NULL);
}

static void work(clockid_t clock, int millis)
{
    long end = now(clock) + millis * 1000000L;
    while (now(clock) < end)
        ;
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        exit(77);
}

// What the holder does with the lock.
static int compute_ms;

static void computes(int n)
{
    (void)n;
    work(CLOCK_THREAD_CPUTIME_ID, compute_ms);
}

static void sleeps(int n)
{
    (void)n;
    rest(hold_ms);
}

// The pipe is full before and after it.
static void writes(int n)
{
    (void)n;
    static char more[4096];
    sem_post(&burst);
    if (write(ends[1], more, sizeof more) != sizeof more)
        abort();
}

static void touches(int n)
{
    pages[n * 4096L] = 1;
}

static void locks(int n)
{
    (void)n;
    pthread_barrier_wait(&held);
    pthread_mutex_lock(&inner);
    pthread_mutex_unlock(&inner);
    pthread_barrier_wait(&held);
}

// A thread with a higher priority takes the holder's CPU.
static void yields(int n)
{
    (void)n;
    sem_post(&burst);
    work(CLOCK_THREAD_CPUTIME_ID, 1);
}

// The same with the waiter's CPU, at the end.
static void frees(int n)
{
    (void)n;
    rest(5);
    sem_post(&burst);
    rest(1);
}

static void (*holds)(int) = computes;
static int holder_cpu = -1, waiter_cpu = -1;
static volatile pid_t holder_tid, waiter_tid;
static volatile int wants;

// No other program is to keep the calling thread from its CPU.
static void be_first(void)
{
    struct sched_param first = { .sched_priority = 1 };
    if (sched_setscheduler(0, SCHED_FIFO, &first) != 0)
        exit(77);
}

static void *holder(void *unused)
{
    if (holder_cpu >= 0)
        pin(holder_cpu);
    if (holds == frees)
        be_first();
    holder_tid = syscall(SYS_gettid);
    for (int n = 0; n < WAITS; n++) {
        pthread_mutex_lock(&lock);
        pthread_barrier_wait(&meet);
        // However late the waiter gets a CPU, it waits for all that follows.
        while (wants <= n || !is_asleep(waiter_tid))
            rest(1);
        holds(n);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&meet);
    }
    return unused;
}

static void *waiter(void *unused)
{
    if (waiter_cpu >= 0)
        pin(waiter_cpu);
    waiter_tid = syscall(SYS_gettid);
    for (int n = 0; n < WAITS; n++) {
        pthread_barrier_wait(&meet);
        wants = n + 1;
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&meet);
    }
    return unused;
}

// Empties the pipe, slowly, whenever it is told to.
static void *reader(void *unused)
{
    static char some[4096];
    while (!done) {
        sem_wait(&burst);
        rest(hold_ms);
        if (read(ends[0], some, sizeof some) < 0)
            break;
    }
    return unused;
}

// Gives the pages, slowly.
static void *pager(void *unused)
{
    static char page[4096];
    struct uffd_msg message;
    while (read(faults, &message, sizeof message) == sizeof message) {
        rest(hold_ms);
        struct uffdio_copy copy = {
            .dst = message.arg.pagefault.address & ~4095ULL,
            .src = (unsigned long)page,
            .len = 4096,
        };
        ioctl(faults, UFFDIO_COPY, &copy);
    }
    return unused;
}

// Holds what the holder wants.
static void *owner(void *unused)
{
    for (int n = 0; n < WAITS; n++) {
        pthread_mutex_lock(&inner);
        pthread_barrier_wait(&held);
        rest(hold_ms);
        pthread_mutex_unlock(&inner);
        pthread_barrier_wait(&held);
    }
    return unused;
}

// Takes a CPU for a while, whenever it is told to.
static void *hog(void *unused)
{
    pin(0);
    be_first();
    while (!done) {
        sem_wait(&burst);
        work(CLOCK_MONOTONIC, hold_ms);
    }
    return unused;
}

// Stops the holder, and lets it go, again and again.
static pid_t stop(void)
{
    pid_t tracer = fork();
    if (tracer != 0)
        return tracer;
    signal(SIGTERM, SIG_DFL);
    for (;;) {
        rest(3);
        if (ptrace(PTRACE_ATTACH, holder_tid, 0, 0) != 0)
            _exit(0);
        waitpid(holder_tid, NULL, __WALL);
        rest(50);
        ptrace(PTRACE_DETACH, holder_tid, 0, 0);
    }
}

static void begin(void *(*run)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) != 0)
        abort();
}

int main(int argc, char **argv)
{
    const char *reason = argc > 1 ? argv[1] : "";
    pid_t tracer = 0;
    if (getenv("HOLD_MS"))
        hold_ms = atoi(getenv("HOLD_MS"));
    compute_ms = hold_ms;
    pthread_barrier_init(&meet, NULL, 2);
    pthread_barrier_init(&held, NULL, 2);
    sem_init(&burst, 0, 0);
    if (strcmp(reason, "sleep") == 0) {
        holds = sleeps;
    } else if (strcmp(reason, "write") == 0) {
        holds = writes;
        if (pipe(ends) != 0)
            return 77;
        fcntl(ends[1], F_SETPIPE_SZ, 4096);
        char full[4096] = { 0 };
        if (write(ends[1], full, sizeof full) != sizeof full)
            return 77;
        begin(reader);
    } else if (strcmp(reason, "fault") == 0) {
        holds = touches;
        pages = mmap(NULL, WAITS * 4096L, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
        struct uffdio_api api = { .api = UFFD_API };
        struct uffdio_register range = {
            .range = { (unsigned long)pages, WAITS * 4096UL },
            .mode = UFFDIO_REGISTER_MODE_MISSING,
        };
        if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0
            || ioctl(faults, UFFDIO_REGISTER, &range) != 0)
            return 77;
        begin(pager);
    } else if (strcmp(reason, "lock") == 0) {
        holds = locks;
        begin(owner);
    } else if (strcmp(reason, "preempt") == 0) {
        holder_cpu = 0;
        holds = yields;
        begin(hog);
    } else if (strcmp(reason, "wake") == 0) {
        waiter_cpu = 0;
        holder_cpu = 1;
        holds = frees;
        begin(hog);
    } else if (strcmp(reason, "quota") == 0) {
        if (argc < 3)
            return 2;
        // More than the quotas of two periods: where the first ends as the section begins, the
        // next still throttles it.
        compute_ms = 12 * hold_ms / 40;
        char path[512];
        snprintf(path, sizeof path, "%s/cgroup.procs", argv[2]);
        FILE *file = fopen(path, "w");
        if (!file || fprintf(file, "%d\n", getpid()) < 0 || fclose(file) != 0)
            return 77;
    } else if (strcmp(reason, "stop") == 0) {
        // It has the CPU for a small part of the time.
        compute_ms = hold_ms / 4;
    } else if (strcmp(reason, "compute") != 0) {
        return 2;
    }
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, holder, NULL);
    if (strcmp(reason, "stop") == 0) {
        while (holder_tid == 0)
            rest(1);
        tracer = stop();
    }
    pthread_create(&threads[1], NULL, waiter, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    if (tracer > 0) {
        kill(tracer, SIGTERM);
        waitpid(tracer, NULL, 0);
    }
    done = 1;
    printf("%d\n", WAITS);
    return 0;
}
