/* Seccomp filters that kill a process at any system call that they do not list. */
#ifndef FILTER_H
#define FILTER_H

#include "check.h"

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

/* The system calls of the programs in this directory. (The filters of sandbox.c check that the
 * locks do not yield.) */
static const int testing[] = {
    SYS_clock_getres, SYS_dup, SYS_dup3, SYS_fcntl, SYS_ftruncate, SYS_getppid, SYS_gettimeofday, SYS_kill, SYS_lseek, SYS_mremap, SYS_msync,
    SYS_pipe2, SYS_ppoll, SYS_pselect6, SYS_rt_sigpending, SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_sched_getparam, SYS_sched_getscheduler, SYS_sched_get_priority_min, SYS_sched_get_priority_max,
    SYS_sched_setscheduler, SYS_sched_yield, SYS_setitimer, SYS_sysinfo, SYS_tgkill, SYS_tkill, SYS_unlinkat, SYS_wait4, SYS_waitid, SYS_epoll_create1, SYS_epoll_ctl,
    SYS_epoll_pwait, SYS_eventfd2, SYS_getuid, SYS_geteuid, SYS_getdents64, SYS_fstatfs, SYS_fallocate,
#ifdef __x86_64__
    SYS_alarm, SYS_dup2, SYS_epoll_wait, SYS_fork, SYS_pause, SYS_pipe, SYS_poll, SYS_select, SYS_time, SYS_unlink, SYS_vfork,
#endif
};

#define LENGTH(list) (sizeof(list) / sizeof *(list))

static struct sock_filter program[2 * (LENGTH(usual) + LENGTH(loading) + LENGTH(testing)) + 4];
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

static void allow_all(const int *numbers, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        allow(numbers[i]);
}

enum whom { RUNNING, LOADING, TESTING };

static inline struct sock_fprog *whitelist(enum whom whom)
{
    struct sock_fprog *filter = begin();
    allow_all(usual, LENGTH(usual));
    if (whom >= LOADING)
        allow_all(loading, LENGTH(loading));
    if (whom >= TESTING)
        allow_all(testing, LENGTH(testing));
    step((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    filter->len = steps;
    return filter;
}

#endif
