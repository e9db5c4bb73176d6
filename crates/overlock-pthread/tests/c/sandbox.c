/* Programs under seccomp filters. The first argument:
 *
 *   prctl, syscall, syscall_prctl   a filter by this way, while threads contend, that ends who makes a system call that glibc's locks do not make
 *   launch                          the same for a program that begins under such a filter, which allows also what its loading takes
 *   refuse NUMBER ERRNO             a filter that nobody announces refuses one system call, while threads contend
 */
#include "objects.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const int usual[] = {
    SYS_futex, SYS_read, SYS_write, SYS_close, SYS_exit, SYS_exit_group, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise,
    SYS_brk, SYS_clone, SYS_clone3, SYS_set_robust_list, SYS_rseq, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_nanosleep,
    SYS_clock_nanosleep, SYS_clock_gettime, SYS_restart_syscall, SYS_newfstatat, SYS_gettid, SYS_getpid,
};

static const int loading[] = {
    SYS_execve, SYS_openat, SYS_pread64, SYS_set_tid_address, SYS_prlimit64, SYS_getrandom, SYS_getcwd, SYS_fstat, SYS_faccessat,
    SYS_readlinkat, SYS_sigaltstack, SYS_uname, SYS_statx,
#ifdef __x86_64__
    SYS_access, SYS_arch_prctl, SYS_readlink, SYS_stat, SYS_open,
#endif
};

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

static struct sock_filter program[2 * sizeof usual / sizeof *usual + 2 * sizeof loading / sizeof *loading + 4];
static unsigned short steps;

static void step(struct sock_filter what) { program[steps++] = what; }

static void allow(int number)
{
    step((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    step((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

static struct sock_fprog *begin(void)
{
    static struct sock_fprog filter;
    step((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    filter.filter = program;
    return &filter;
}

static struct sock_fprog *whitelist(int with_loading)
{
    struct sock_fprog *filter = begin();
    for (size_t i = 0; i < sizeof usual / sizeof *usual; ++i)
        allow(usual[i]);
    for (size_t i = 0; with_loading && i < sizeof loading / sizeof *loading; ++i)
        allow(loading[i]);
    step((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    filter->len = steps;
    return filter;
}

static atomic_int over;
static long counters[2];

/* Contends for all that there is. */
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
        OK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, whitelist(1), 0, 0));
        execv(arguments[0], next);
        return 1;
    }
    puts("begun");
    fflush(stdout);
    OK(sem_init(&sem, 0, 2));
    enum { THREADS = 8 };
    pthread_t threads[2 * THREADS];
    int started = 0;
    /* Filters of prctl are for the calling thread and those that it creates from then on; TSYNC is for all. */
    int for_all = strcmp(scene, "syscall") == 0 || strcmp(scene, "refuse") == 0;
    for (; for_all && started < THREADS; ++started)
        threads[started] = start(contends, NULL);
    sleep_ms(100);
    if (strcmp(scene, "prctl") == 0) {
        OK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, whitelist(0), 0, 0));
    } else if (strcmp(scene, "syscall") == 0) {
        OK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, whitelist(0)));
    } else if (strcmp(scene, "syscall_prctl") == 0) {
        OK(syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, whitelist(0), 0, 0));
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
    over = 1;
    for (int i = 0; i < started; ++i)
        join(threads[i]);
    CHECK(counters[0] > 100 && counters[1] > 10);
    puts("over");
    return 0;
}
