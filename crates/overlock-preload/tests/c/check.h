/* Shared code of the programs. Each prints results, which must not depend on whose locks it runs
 * on, or fails with a message. */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Fails the program unless `it` holds. */
#define CHECK(it)                                                                          \
    do {                                                                                   \
        if (!(it)) {                                                                       \
            printf("%s:%d: %s does not hold\n", __FILE__, __LINE__, #it);                  \
            fflush(stdout);                                                                \
            _exit(1);                                                                      \
        }                                                                                  \
    } while (0)

/* Fails the program unless the call returns 0. */
#define OK(call)                                                                           \
    do {                                                                                   \
        int answer_ = (call);                                                              \
        if (answer_ != 0) {                                                                \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, name_of(answer_));        \
            fflush(stdout);                                                                \
            _exit(1);                                                                      \
        }                                                                                  \
    } while (0)

/* Prints the result of a call: 0 or an errno. */
#define ANSWER(call) printf("%s: %s\n", #call, name_of(call))

/* Prints the result of a call that returns -1 and sets errno. */
#define ANSWER_ERRNO(call)                                                                 \
    do {                                                                                   \
        errno = 0;                                                                         \
        int answer_ = (call);                                                              \
        printf("%s: %d %s\n", #call, answer_, name_of(errno));                             \
    } while (0)

static inline const char *name_of(int error)
{
    switch (error) {
    case 0: return "0";
    case EAGAIN: return "EAGAIN";
    case EBUSY: return "EBUSY";
    case EDEADLK: return "EDEADLK";
    case EINTR: return "EINTR";
    case EINVAL: return "EINVAL";
    case EOVERFLOW: return "EOVERFLOW";
    case EOWNERDEAD: return "EOWNERDEAD";
    case ENOTRECOVERABLE: return "ENOTRECOVERABLE";
    case EPERM: return "EPERM";
    case ETIMEDOUT: return "ETIMEDOUT";
    default: return "another";
    }
}

/* Returns the time this many milliseconds from now. */
static inline struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec at;
    clock_gettime(clock, &at);
    long long ns = at.tv_nsec + ms * 1000000LL;
    at.tv_sec += ns / 1000000000;
    at.tv_nsec = ns % 1000000000;
    if (at.tv_nsec < 0) {
        at.tv_sec -= 1;
        at.tv_nsec += 1000000000;
    }
    return at;
}

static inline int has_passed(clockid_t clock, const struct timespec *at)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec > at->tv_sec || (now.tv_sec == at->tv_sec && now.tv_nsec >= at->tv_nsec);
}

static inline void sleep_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

/* Prints the result of a call with a deadline, before which it must not return. */
#define TIMED(clock, ms, at, call)                                                         \
    do {                                                                                   \
        struct timespec at = in_ms(clock, ms);                                             \
        int answer_ = (call);                                                              \
        printf("%s in %d ms: %s\n", #call, (int)(ms), name_of(answer_));                   \
        CHECK(answer_ != ETIMEDOUT || has_passed(clock, &at));                             \
    } while (0)

/* The kernel's letter for the state of a thread; 0 where there is none. */
static inline char state_of_thread(int thread)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *stat = thread == 0 ? NULL : fopen(path, "r");
    if (stat != NULL) {
        CHECK(fscanf(stat, "%*d (%*[^)]) %c", &state) == 1 || ferror(stat));
        fclose(stat);
    }
    return state;
}

/* Returns once the thread sleeps. `*thread` is 0 until the thread has stored its id there. */
static inline void await_sleep(atomic_int *thread)
{
    do {
        sleep_ms(1);
    } while (state_of_thread(atomic_load(thread)) != 'S');
}

typedef void *(*thread_main)(void *);

static inline pthread_t start(thread_main run, void *with)
{
    pthread_t thread;
    OK(pthread_create(&thread, NULL, run, with));
    return thread;
}

static inline void *join(pthread_t thread)
{
    void *result;
    OK(pthread_join(thread, &result));
    return result;
}

/* A function of up to three words: the calling convention makes all the functions here such. */
typedef int (*function)(long, long, long);

struct call {
    function call;
    long with[3];
    int answer;
};

static inline void *call_it(void *call)
{
    struct call *it = call;
    it->answer = it->call(it->with[0], it->with[1], it->with[2]);
    return NULL;
}

static inline int other(function call, long first, long second, long third)
{
    struct call it = {call, {first, second, third}, 0};
    join(start(call_it, &it));
    return it.answer;
}

/* Returns the result that another thread gets. */
#define OTHER(call, ...) OTHER_(call, __VA_ARGS__, 0, 0, 0)
#define OTHER_(call, first, second, third, ...)                                            \
    other((function)(void *)(call), (long)(first), (long)(second), (long)(third))

/* Declares as `as` a function's old versioned name, which the linker resolves for old programs
 * only. */
#ifdef __x86_64__
#define OLD_NAME(name, as) __asm__(".symver " #as "," #name "@GLIBC_2.2.5")
#else
#define OLD_NAME(name, as) __asm__(".symver " #as "," #name "@GLIBC_2.17")
#endif

/* Returns memory that children of fork() share. */
static inline void *shared_memory(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

/* Waits for a child, which has to exit with 0. */
static inline void reap(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif
