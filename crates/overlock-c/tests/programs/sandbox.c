/* Threads contend while a filter is installed that kills for opening a file, and for all system
 * calls of the locks but futex. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <overlock.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 6 };

static ovl_mutex_t lock = OVL_MUTEX_INIT;
static ovl_rwlock_t rwlock = OVL_RWLOCK_INIT;
static ovl_cond_t turned = OVL_COND_INIT;
static long sections;
static atomic_int over;

static void *contend(void *nothing) {
    while (!over) {
        ovl_mutex_lock(&lock);
        if (++sections % 64 == 0) {
            ovl_cond_broadcast(&turned);
        } else if (sections % 64 == 1) {
            struct timespec soon;
            clock_gettime(CLOCK_MONOTONIC, &soon);
            soon.tv_sec += 1;
            ovl_cond_timedwait(&turned, &lock, &soon);
        }
        ovl_mutex_unlock(&lock);
        ovl_rwlock_wrlock(&rwlock);
        ovl_rwlock_wrunlock(&rwlock);
        ovl_rwlock_rdlock(&rwlock);
        ovl_rwlock_rdunlock(&rwlock);
    }
    return nothing;
}

int main(void) {
    const int refused[] = {SYS_membarrier, SYS_sched_yield, SYS_openat, SYS_sched_getaffinity, 449 /* futex_waitv */};
    struct sock_filter steps[16];
    unsigned short count = 0;
    steps[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < 5; i++) {
        steps[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)refused[i], 0, 1);
        steps[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    steps[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {count, steps};

    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, contend, NULL) == 0);
    }
    usleep(50000);
    CHECK(ovl_use_futex_alone() == 0);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0);
    usleep(500000);
    over = 1;
    ovl_cond_broadcast(&turned);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    return 0;
}
