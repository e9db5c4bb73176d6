/* Programs under seccomp filters. The first argument:
 *
 *   prctl, syscall, syscall_prctl   installs by this function, while threads contend, a filter that
 *                                   kills the process at any system call that glibc's locks do not
 *                                   make
 *   launch                          the same for a program that begins under such a filter, which
 *                                   also allows what its loading takes
 *   refuse NUMBER ERRNO             installs, without the library's notice, a filter that refuses
 *                                   one system call, while threads contend
 */
#include "filter.h"
#include "objects.h"

static long raw(long number, long a, long b, long c, long d, long e)
{
#ifdef __x86_64__
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e;
    __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
    return number;
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d, x4 __asm__("x4") = e;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#endif
}

static atomic_int over;
static atomic_long counters[2];

/* Contends for one object of each kind. */
static void *contends(void *none)
{
    for (unsigned i = 0; !over; ++i) {
        OK(pthread_mutex_lock(&normal));
        counters[0] += 1;
        for (volatile int k = 0; k < 100; ++k) {
        }
        if (i % 512 == 0)
            sleep_ms(1);
        OK(pthread_mutex_unlock(&normal));
        if (i % 8 == 0) {
            OK(pthread_rwlock_wrlock(&written));
            counters[1] += 1;
        } else {
            OK(pthread_rwlock_rdlock(&written));
        }
        OK(pthread_rwlock_unlock(&written));
        OK(sem_wait(&sem));
        OK(sem_post(&sem));
        OK(pthread_mutex_lock(&of_cond));
        struct timespec soon = in_ms(CLOCK_REALTIME, 1);
        may_go = !may_go;
        if (may_go)
            pthread_cond_timedwait(&cond, &of_cond, &soon);
        else
            pthread_cond_broadcast(&cond);
        OK(pthread_mutex_unlock(&of_cond));
    }
    return none;
}

int main(int count, char **arguments)
{
    const char *scene = count > 1 ? arguments[1] : "prctl";
    if (strcmp(scene, "launched") != 0)
        OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (strcmp(scene, "launch") == 0) {
        OK(setenv("OVERLOCK_FUTEX_ALONE", "1", 1));
        char *const next[] = {arguments[0], "launched", NULL};
        char *preload = getenv("PRELOAD_LATER");
        if (preload != NULL)
            OK(setenv("LD_PRELOAD", preload, 1));
        OK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, whitelist(LOADING), 0, 0));
        execv(arguments[0], next);
        return 1;
    }
    puts("begun");
    fflush(stdout);
    OK(sem_init(&sem, 0, 2));
    enum { THREADS = 8 };
    pthread_t threads[2 * THREADS];
    int started = 0;
    /* Filters of prctl apply to the calling thread and those that it creates later; TSYNC applies
     * them to all. */
    int for_all = strcmp(scene, "syscall") == 0 || strcmp(scene, "refuse") == 0;
    for (; for_all && started < THREADS; ++started)
        threads[started] = start(contends, NULL);
    sleep_ms(100);
    if (strcmp(scene, "prctl") == 0) {
        OK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, whitelist(RUNNING), 0, 0));
    } else if (strcmp(scene, "syscall") == 0) {
        OK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, whitelist(RUNNING)));
    } else if (strcmp(scene, "syscall_prctl") == 0) {
        OK(syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, whitelist(RUNNING), 0, 0));
    } else if (strcmp(scene, "refuse") == 0) {
        struct sock_fprog *filter = begin();
        step((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, atoi(arguments[2]), 0, 1));
        step((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | atoi(arguments[3])));
        step((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
        filter->len = steps;
        CHECK(raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, (long)filter, 0, 0) == 0);
    }
    for (int i = 0; i < THREADS; ++i)
        threads[started++] = start(contends, NULL);
    sleep_ms(1000);
    while (counters[0] <= 100 || counters[1] <= 10)
        sleep_ms(1);
    over = 1;
    for (int i = 0; i < started; ++i)
        join(threads[i]);
    puts("over");
    return 0;
}
