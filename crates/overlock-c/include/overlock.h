/* overlock: locks that stay fast when there are more threads than CPUs. C11 and C++11, on Linux.
 *
 *     static ovl_mutex_t lock = OVL_MUTEX_INIT;
 *     ovl_mutex_lock(&lock);
 *     ...
 *     ovl_mutex_unlock(&lock);
 *
 * overlock(3) says how to build; overlock.hpp has classes for std::lock_guard and its kind.
 *
 * RETURN VALUES. Functions return 0 or an error number. errno is neither read nor written. Misuse
 * is not detected, and its behaviour is undefined: unlocking a free lock, or another thread's;
 * locking again what the calling thread holds.
 *
 * ORDERING. Everything that a thread does before it releases a lock happens before everything that
 * the next owner does after its acquisition; a reader's release happens before the next writer's
 * acquisition. Failed attempts order nothing.
 *
 * DEADLINES are moments of CLOCK_MONOTONIC. After its deadline a function makes one attempt and
 * does not wait. EINVAL: the deadline is null, or tv_nsec is not in [0, 1000000000). If the lock is
 * free at once, the deadline is not read.
 *
 * LIFETIME. Memory that is all zero is an unlocked lock: OVL_..._INIT, calloc, a static, or
 * ovl_..._init. Nothing is allocated, and the destroy functions of locks release nothing. Locks may
 * not be moved or copied, nor shared with other processes.
 *   - Mutexes, spinlocks and reader-writer locks may be freed as soon as no thread holds them or
 *     waits for them, even if the unlock of an earlier owner has not returned: lock, find that this
 *     was the last reference, unlock, free. POSIX promises the same for its mutexes.
 *   - Condition variables may be freed when every wait has returned, or after ovl_cond_destroy,
 *     which may be called with the mutex held, right after a broadcast.
 *
 * SIGNAL HANDLERS may try any lock, and release what they got. They may wait for one unless the
 * interrupted thread holds it, waits for it, or is releasing it. They may read-lock what their
 * thread reads, if they release it before they return. They must not use condition variables. No
 * function is a cancellation point, allocates, or throws.
 *
 * FORK. A child of a process with several threads has one of them. The child may use a lock at once
 * if no other thread held it or waited for it at the fork. A lock that others waited for needs
 * ovl_..._after_fork first, in the child's handler of pthread_atfork, which makes it forget them.
 * The calling thread still holds its locks. A lock that another thread held stays held; initialise
 * it anew. Signal handlers that interrupt a call of this library must not fork.
 *
 * SANDBOXES. futex(2) is the only necessary system call. membarrier(2) and sched_yield(2) make
 * locks faster, and may be refused at any time: the locks do without from then on, and sleepers
 * recheck once a second. A filter may also kill for a call: then call ovl_use_futex_alone() before
 * it is installed. A program that starts under such a filter needs OVERLOCK_FUTEX_ALONE=1 in its
 * environment.
 */
#ifndef OVERLOCK_H
#define OVERLOCK_H

#include <errno.h>
#include <stdint.h>
#include <time.h>

/* The version of this header; ovl_version() is the library's. */
#define OVL_VERSION "0.1.0"

#ifdef __cplusplus
#define OVL_PRIVATE_ASSERT(condition) static_assert(condition, "overlock.h does not fit this compiler")
extern "C" {
#else
/* GCC and Clang have it in older dialects too, as an extension. */
#define OVL_PRIVATE_ASSERT(condition) __extension__ _Static_assert(condition, "overlock.h does not fit this compiler")
#endif

/* Where <time.h> leaves it out: in old dialects without POSIX. */
struct timespec;

/* The version of the library, as in "0.1.0". */
const char *ovl_version(void);

/* Restricts the locks of this process to the system call futex. Call it before the process installs
 * a seccomp filter that refuses others or kills for them: see SANDBOXES. 0. */
int ovl_use_futex_alone(void);

/* ---- Types. All members are private. ---- */

/* A lock for one thread at a time, for sections of any length. Waiters spin for some microseconds,
 * then sleep. 4 bytes. */
typedef struct {
    uint32_t ovl_state;
} ovl_mutex_t;
#define OVL_MUTEX_INIT { 0 }

/* The same type, for code that wants a spinlock by name. Its waiters spin, then sleep. So it is
 * faster than locks that only spin, whose waiters burn their CPU while the owner has lost its
 * own. */
typedef ovl_mutex_t ovl_spinlock_t;
#define OVL_SPINLOCK_INIT OVL_MUTEX_INIT

/* A lock for many readers or one writer. */
typedef struct {
    uint32_t ovl_state[2];
} ovl_rwlock_t;
#define OVL_RWLOCK_INIT { { 0 } }

/* A condition variable for ovl_mutex_t and ovl_spinlock_t. */
typedef struct {
    uint32_t ovl_state[2];
} ovl_cond_t;
#define OVL_COND_INIT { { 0 } }

/* ---- Mutexes ---- */

/* Makes memory an unlocked mutex. 0. */
int ovl_mutex_init(ovl_mutex_t *mutex);

/* Destroys a mutex. Its memory may then be used for something else, or initialised anew. 0, or
 * EBUSY: it is held or waited for, and stays a mutex. Need not be called. */
int ovl_mutex_destroy(ovl_mutex_t *mutex);

/* After fork() in the child: forgets waiters, which exist only in the parent. The owner stays the
 * owner. 0. */
int ovl_mutex_after_fork(ovl_mutex_t *mutex);

/* Acquires the mutex, however long that takes. 0. */
int ovl_mutex_lock(ovl_mutex_t *mutex);

/* Acquires the mutex if that needs no waiting. 0, or EBUSY. */
int ovl_mutex_trylock(ovl_mutex_t *mutex);

/* Acquires the mutex, unless the deadline passes first. 0, ETIMEDOUT (never early), or EINVAL. */
int ovl_mutex_timedlock(ovl_mutex_t *mutex, const struct timespec *deadline);

/* Releases the mutex, which the calling thread holds. 0. */
int ovl_mutex_unlock(ovl_mutex_t *mutex);

/* ---- Reader-writer locks ---- */

/* Makes memory an unlocked reader-writer lock. 0. */
int ovl_rwlock_init(ovl_rwlock_t *rwlock);

/* Destroys a reader-writer lock. 0, or EBUSY: it is held or waited for. Need not be called. */
int ovl_rwlock_destroy(ovl_rwlock_t *rwlock);

/* After fork() in the child: forgets waiters, which exist only in the parent. Owners stay owners;
 * written says whether the calling thread holds the lock for writing. 0. */
int ovl_rwlock_after_fork(ovl_rwlock_t *rwlock, int written);

/* Acquires the lock together with other readers. 0. A thread that reads already must not: it might
 * wait for a writer that waits for it. The process aborts if there are more than 2^24 readers. */
int ovl_rwlock_rdlock(ovl_rwlock_t *rwlock);

/* Acquires the lock together with other readers if that needs no waiting. 0, or EBUSY: a writer
 * holds the lock, or has closed it to wait for its readers. */
int ovl_rwlock_tryrdlock(ovl_rwlock_t *rwlock);

/* Acquires the lock together with other readers, unless the deadline passes first. 0, ETIMEDOUT, or
 * EINVAL. */
int ovl_rwlock_timedrdlock(ovl_rwlock_t *rwlock, const struct timespec *deadline);

/* Releases an acquisition by rdlock, tryrdlock or timedrdlock of the calling thread. 0. */
int ovl_rwlock_rdunlock(ovl_rwlock_t *rwlock);

/* Acquires the lock exclusively. Later readers wait, so writers do not starve; nor do readers.
 * 0. */
int ovl_rwlock_wrlock(ovl_rwlock_t *rwlock);

/* Acquires the lock exclusively if that needs no waiting. 0, or EBUSY. */
int ovl_rwlock_trywrlock(ovl_rwlock_t *rwlock);

/* Acquires the lock exclusively, unless the deadline passes first. 0, ETIMEDOUT, or EINVAL. */
int ovl_rwlock_timedwrlock(ovl_rwlock_t *rwlock, const struct timespec *deadline);

/* Releases an acquisition by wrlock, trywrlock or timedwrlock of the calling thread. 0. */
int ovl_rwlock_wrunlock(ovl_rwlock_t *rwlock);

/* ---- Condition variables ---- */

/* Makes memory a condition variable without waiters. 0. */
int ovl_cond_init(ovl_cond_t *cond);

/* Waits until threads whose deadline has passed have left the condition variable, which may then be
 * freed. All other waiters must have been notified; they do not touch it any more, so the caller
 * may hold the mutex. 0. */
int ovl_cond_destroy(ovl_cond_t *cond);

/* After fork() in the child: forgets waiters, which exist only in the parent. 0. */
int ovl_cond_after_fork(ovl_cond_t *cond);

/* Releases the mutex, which the calling thread holds, waits for a notification, and acquires the
 * mutex again. 0. Ends without a notification only in programs with more than 16383 threads; check
 * the condition again in any case. */
int ovl_cond_wait(ovl_cond_t *cond, ovl_mutex_t *mutex);

/* As ovl_cond_wait, unless the deadline passes first. 0, ETIMEDOUT (there was no notification), or
 * EINVAL (the mutex was not released). The mutex is held again in any case, however long that
 * takes. */
int ovl_cond_timedwait(ovl_cond_t *cond, ovl_mutex_t *mutex, const struct timespec *deadline);

/* Notifies the longest waiter, if there is one, which then sees everything that the caller did
 * before. 0. With the mutex or without it. */
int ovl_cond_signal(ovl_cond_t *cond);

/* Notifies all waiters; each wakes as it gets the mutex, not all at once. 0. With the mutex or
 * without it. */
int ovl_cond_broadcast(ovl_cond_t *cond);

/* ---- Statistics ----
 *
 * With OVERLOCK_STAT=1 in the environment, and after ovl_stat_enable(1), locks with a name are
 * counted. With that variable the program overlock sees them too: overlock profile -- PROGRAM,
 * overlock top PID. These functions allocate, and are not for signal handlers; those that give
 * names allocate nothing. A child of fork() begins with the figures of its parent. */

/* Gives a mutex a name, which is copied. Locks of one name are summed. Does nothing while nothing
 * is counted, and then costs nothing later. Ends with ovl_mutex_destroy, ovl_mutex_init or
 * OVL_MUTEX_INIT. A mutex that is freed without ovl_mutex_destroy keeps its place among 8192 until
 * another one lies there. 0, EINVAL: the name is null, or ENOMEM: there are too many locks with
 * names, or ovl_use_futex_alone() came before the first name. */
int ovl_mutex_name(ovl_mutex_t *mutex, const char *name);

/* The same for a reader-writer lock. Its name ends with ovl_rwlock_destroy or ovl_rwlock_init only:
 * one of them must be called before the memory is used for something else. */
int ovl_rwlock_name(ovl_rwlock_t *rwlock, const char *name);

/* Starts or stops counting. Does nothing with OVERLOCK_STAT=1. 0. */
int ovl_stat_enable(int on);

/* What was counted of the locks of one name and kind. Times are in nanoseconds. Percentiles are at
 * most an eighth too long. Holds are measured of a sample, and after waits; not of readers. */
typedef struct {
    const char *name;
    const char *kind; /* "mutex", "read" or "write" */
    uint64_t acquisitions;
    uint64_t waits; /* those that found the lock held, with those that gave up */
    uint64_t gave_up;
    uint64_t waited_ns;
    uint64_t p50_ns;
    uint64_t p90_ns;
    uint64_t p99_ns;
    uint64_t p999_ns;
    uint64_t longest_wait_ns;
    uint64_t holds;
    uint64_t held_ns;
    uint64_t longest_hold_ns;
} ovl_stat_t;

/* Is called with figures, and with data. What it is given is gone when it returns. */
typedef int (*ovl_stat_visit_t)(const ovl_stat_t *figures, void *data);

/* Calls visit for all figures, the longest waits first, until it does not return 0. Returns what it
 * has returned last, or 0. */
int ovl_stat_each(ovl_stat_visit_t visit, void *data);

/* Writes all figures to a file descriptor, as a table. 0, or the error number of the write. */
int ovl_stat_print(int fd);

/* ---- Private from here on: the fast paths of a mutex ---- */

#ifndef __x86_64__
/* The library reads times of this size: not with _TIME_BITS=64 on systems of 32 bits. */
OVL_PRIVATE_ASSERT(sizeof(time_t) == sizeof(long));
#endif
OVL_PRIVATE_ASSERT(sizeof(ovl_mutex_t) == 4);
OVL_PRIVATE_ASSERT(sizeof(ovl_rwlock_t) == 8);
OVL_PRIVATE_ASSERT(sizeof(ovl_cond_t) == 8);

/* Inline functions are never emitted: their addresses, and calls that a compiler does not inline,
 * are the library's. Define OVL_NO_INLINE to call it always. */
#if defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(OVL_NO_INLINE) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OVL_PRIVATE_INLINE extern __inline__ __attribute__((__gnu_inline__, __always_inline__, __artificial__))

/* The library's functions, by names that are not inlined. */
int ovl_private_lock(ovl_mutex_t *mutex) __asm__("ovl_mutex_lock");
int ovl_private_trylock(ovl_mutex_t *mutex) __asm__("ovl_mutex_trylock");
int ovl_private_timedlock(ovl_mutex_t *mutex, const struct timespec *deadline) __asm__("ovl_mutex_timedlock");
int ovl_private_unlock(ovl_mutex_t *mutex) __asm__("ovl_mutex_unlock");

#ifdef __cplusplus
#define OVL_PRIVATE_BYTE(mutex) reinterpret_cast<uint8_t *>(&(mutex)->ovl_state)
#else
#define OVL_PRIVATE_BYTE(mutex) ((uint8_t *)&(mutex)->ovl_state)
#endif

/* Takes a mutex whose first byte is 0, else tells that byte. Bit 0 says that the mutex is held. The
 * other bits tell of waiters: with these the library knows what to do. */
OVL_PRIVATE_INLINE int ovl_private_take(ovl_mutex_t *mutex, uint8_t *ovl_seen) {
    const uint8_t ovl_held = 1;
    *ovl_seen = 0;
    return __builtin_expect(__atomic_compare_exchange_n(OVL_PRIVATE_BYTE(mutex), ovl_seen, ovl_held, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED), 1) != 0;
}

OVL_PRIVATE_INLINE int ovl_mutex_lock(ovl_mutex_t *mutex) {
    uint8_t ovl_seen;
    return ovl_private_take(mutex, &ovl_seen) ? 0 : ovl_private_lock(mutex);
}

OVL_PRIVATE_INLINE int ovl_mutex_trylock(ovl_mutex_t *mutex) {
    uint8_t ovl_seen;
    return ovl_private_take(mutex, &ovl_seen) ? 0 : (ovl_seen & 1) != 0 ? EBUSY : ovl_private_trylock(mutex);
}

OVL_PRIVATE_INLINE int ovl_mutex_timedlock(ovl_mutex_t *mutex, const struct timespec *deadline) {
    uint8_t ovl_seen;
    return ovl_private_take(mutex, &ovl_seen) ? 0 : ovl_private_timedlock(mutex, deadline);
}

OVL_PRIVATE_INLINE int ovl_mutex_unlock(ovl_mutex_t *mutex) {
    const uint8_t ovl_free = 0;
    uint8_t ovl_seen = 1;
    return __builtin_expect(__atomic_compare_exchange_n(OVL_PRIVATE_BYTE(mutex), &ovl_seen, ovl_free, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED), 1) ? 0 : ovl_private_unlock(mutex);
}
#endif

/* ---- Spinlocks: as for mutexes ---- */

static __inline__ int ovl_spinlock_init(ovl_spinlock_t *lock) { return ovl_mutex_init(lock); }
static __inline__ int ovl_spinlock_destroy(ovl_spinlock_t *lock) { return ovl_mutex_destroy(lock); }
static __inline__ int ovl_spinlock_name(ovl_spinlock_t *lock, const char *name) { return ovl_mutex_name(lock, name); }
static __inline__ int ovl_spinlock_after_fork(ovl_spinlock_t *lock) { return ovl_mutex_after_fork(lock); }
static __inline__ int ovl_spinlock_lock(ovl_spinlock_t *lock) { return ovl_mutex_lock(lock); }
static __inline__ int ovl_spinlock_trylock(ovl_spinlock_t *lock) { return ovl_mutex_trylock(lock); }
static __inline__ int ovl_spinlock_timedlock(ovl_spinlock_t *lock, const struct timespec *deadline) {
    return ovl_mutex_timedlock(lock, deadline);
}
static __inline__ int ovl_spinlock_unlock(ovl_spinlock_t *lock) { return ovl_mutex_unlock(lock); }

#ifdef __cplusplus
}
#endif

#endif
