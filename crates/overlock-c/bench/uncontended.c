/* Measures an uncontended lock and unlock, next to glibc's. Each round runs all locks in one
 * thread. Prints the medians of the rounds, and the medians of their ratios to pthread_mutex in the
 * same round.
 *
 *     cc -O2 uncontended.c $(pkg-config --cflags --libs overlock) -o uncontended
 *
 * A second thread exists and sleeps: glibc leaves atomic instructions out in a process that has
 * never had one. With an argument there is no second thread.
 */
#define _GNU_SOURCE
#include <overlock.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 201, PAIRS = 100000 };

/* Each lock on cache lines of its own. */
#define ALONE __attribute__((aligned(128)))
static struct { pthread_mutex_t lock; } ALONE glibc = { PTHREAD_MUTEX_INITIALIZER };
static struct { pthread_spinlock_t lock; } ALONE glibc_spin;
static struct { ovl_mutex_t lock; } ALONE ours = { OVL_MUTEX_INIT };
static struct { ovl_rwlock_t lock; } ALONE ours_rw = { OVL_RWLOCK_INIT };
static struct { pthread_rwlock_t lock; } ALONE glibc_rw = { PTHREAD_RWLOCK_INITIALIZER };
static unsigned long ALONE counter;

/* Addresses that the compiler does not know, as in most programs. */
static pthread_mutex_t *volatile glibc_somewhere = &glibc.lock;
static ovl_mutex_t *volatile ours_somewhere = &ours.lock;

/* The library's functions, for programs that do not inline. */
static int (*volatile called_lock)(ovl_mutex_t *) = ovl_mutex_lock;
static int (*volatile called_unlock)(ovl_mutex_t *) = ovl_mutex_unlock;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

#define LOOP(name, lock, unlock) \
    static __attribute__((noinline)) double name(void) { \
        double start = now(); \
        for (int i = 0; i < PAIRS; i++) { \
            lock; \
            counter++; \
            __asm__ volatile("" ::: "memory"); \
            unlock; \
        } \
        return (now() - start) / PAIRS; \
    }

LOOP(run_glibc, pthread_mutex_lock(&glibc.lock), pthread_mutex_unlock(&glibc.lock))
LOOP(run_glibc_somewhere, pthread_mutex_lock(glibc_somewhere), pthread_mutex_unlock(glibc_somewhere))
LOOP(run_glibc_spin, pthread_spin_lock(&glibc_spin.lock), pthread_spin_unlock(&glibc_spin.lock))
LOOP(run_ours, ovl_mutex_lock(&ours.lock), ovl_mutex_unlock(&ours.lock))
LOOP(run_ours_somewhere, ovl_mutex_lock(ours_somewhere), ovl_mutex_unlock(ours_somewhere))
LOOP(run_ours_called, called_lock(&ours.lock), called_unlock(&ours.lock))
LOOP(run_glibc_read, pthread_rwlock_rdlock(&glibc_rw.lock), pthread_rwlock_unlock(&glibc_rw.lock))
LOOP(run_ours_read, ovl_rwlock_rdlock(&ours_rw.lock), ovl_rwlock_rdunlock(&ours_rw.lock))

static const struct { const char *name; double (*run)(void); int against; } locks[] = {
    { "pthread_mutex", run_glibc, 0 },
    { "ovl_mutex", run_ours, 0 },
    { "pthread_mutex, address loaded", run_glibc_somewhere, 2 },
    { "ovl_mutex, address loaded", run_ours_somewhere, 2 },
    { "ovl_mutex, not inlined", run_ours_called, 0 },
    { "pthread_spin", run_glibc_spin, 0 },
    { "pthread_rwlock, reading", run_glibc_read, 6 },
    { "ovl_rwlock, reading", run_ours_read, 6 },
};
enum { LOCKS = sizeof locks / sizeof *locks };

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

static void *sleep_on(void *nothing) {
    pause();
    return nothing;
}

int main(int argc, char **argv) {
    static double times[LOCKS][ROUNDS], ratios[LOCKS][ROUNDS];
    pthread_t sleeper;
    (void)argv;
    if (argc == 1 && pthread_create(&sleeper, NULL, sleep_on, NULL) != 0) {
        return 1;
    }
    pthread_spin_init(&glibc_spin.lock, PTHREAD_PROCESS_PRIVATE);
    /* The first round warms up. */
    for (int round = -1; round < ROUNDS; round++) {
        double time[LOCKS];
        for (int lock = 0; lock < LOCKS; lock++) {
            time[lock] = locks[lock].run();
        }
        for (int lock = 0; lock < LOCKS && round >= 0; lock++) {
            times[lock][round] = time[lock];
            ratios[lock][round] = time[locks[lock].against] / time[lock];
        }
    }
    printf("%-30s %7s %8s\n", "lock", "ns/pair", "faster");
    for (int lock = 0; lock < LOCKS; lock++) {
        printf("%-30s %7.2f %7.2fx\n", locks[lock].name, median(times[lock]), median(ratios[lock]));
    }
    return 0;
}
