/* overlock: locks that stay fast where there are more threads than CPUs. For C11 and C++11, on Linux.
 *
 *     static ovl_mutex_t lock = OVL_MUTEX_INIT;
 *     ovl_mutex_lock(&lock);
 *     ...
 *     ovl_mutex_unlock(&lock);
 *
 * overlock(3) says how to build; overlock.hpp has classes for std::lock_guard and its kind.
 *
 * RETURN VALUES. Functions return 0 or an error number. errno is neither read nor written. Misuse (unlocking what is free, or what another
 * thread has locked; locking again what the calling thread holds) is not detected: the behaviour is undefined.
 *
 * ORDERING. Whatever a thread did before it released a lock happens before whatever another does after it has acquired
 * it next; a reader's release happens before the next writer's acquisition. Attempts that fail order nothing.
 *
 * DEADLINES are moments of CLOCK_MONOTONIC. A deadline that has passed makes one attempt and no wait. EINVAL: it is null, or tv_nsec is
 * not in [0, 1000000000). Where the lock is free at once, the deadline is not looked at.
 *
 * LIFETIME. Memory that is all zero is an unlocked lock: OVL_..._INIT, calloc, a static, or ovl_..._init. Nothing is allocated, and the
 * destroy functions of locks release nothing. They may not be moved or copied, nor shared with other processes.
 *   - Mutexes and spinlocks may be freed as soon as no thread holds them or waits for them, even if the unlock of an earlier owner has
 *     not returned: lock, see that this was the last reference, unlock, free. (What POSIX promises for its mutexes.)
 *   - Reader-writer locks may be freed when every call that has to do with them has returned, unlocks too. That is less than POSIX promises:
 *     a thread that reads or writes, finds the last reference and frees the lock is not enough.
 *   - Condition variables may be freed when every wait has returned, or after ovl_cond_destroy.
 *
 * SIGNAL HANDLERS may try any lock, and release what they got. They may wait for one unless the thread that they have interrupted holds it, waits
 * for it, or is releasing it. They may read-lock what their thread reads, if they release it before they return. They must not
 * use condition variables. No function is a cancellation point, allocates, or throws.
 *
 * FORK. A child of a process with several threads has one of them. What no other thread held or waited for at that moment, the child may use
 * as ever. What others waited for it may use after ovl_..._after_fork, which makes it forget them, and which belongs into the child's handler of
 * pthread_atfork; the calling thread goes on to hold what it held. What others held stays held; initialise it anew. Signal handlers
 * that interrupt a call of this library must not fork.
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
#define OVL_PRIVATE_ASSERT(condition) _Static_assert(condition, "overlock.h does not fit this compiler")
#endif

/* Where <time.h> leaves it out: in old dialects without POSIX. */
struct timespec;

/* The version of the library, as in "0.1.0". */
const char *ovl_version(void);

/* ---- Types. All members are private. ---- */

/* A lock for one thread at a time, for sections of any length. Waiters spin while that pays, then sleep. */
typedef struct {
    uint8_t ovl_locked;
    uint8_t ovl_state[11];
    uint32_t ovl_done;
} ovl_mutex_t;
#define OVL_MUTEX_INIT { 0, { 0 }, 0 }

/* The same type: this lock is faster than those that only spin, and a spinning waiter whose owner has lost its CPU is what it avoids.
 * The name is for code that is to say so. */
typedef ovl_mutex_t ovl_spinlock_t;
#define OVL_SPINLOCK_INIT OVL_MUTEX_INIT

/* A lock for many readers or one writer. Where it is mostly read, readers of any number do not touch a common cache line. */
typedef struct {
    uint64_t ovl_state[5];
} ovl_rwlock_t;
#define OVL_RWLOCK_INIT { { 0 } }

/* A condition variable for ovl_mutex_t and ovl_spinlock_t. */
typedef struct {
    uint32_t ovl_state[4];
} ovl_cond_t;
#define OVL_COND_INIT { { 0 } }

/* ---- Mutexes ---- */

/* Makes memory an unlocked mutex. 0. */
int ovl_mutex_init(ovl_mutex_t *mutex);

/* The end of a mutex, which may then be used for something else, or initialised anew. 0, or EBUSY: it is held or waited for, and goes on
 * to be a mutex. Need not be called. */
int ovl_mutex_destroy(ovl_mutex_t *mutex);

/* In a child of fork: forgets those that waited and are not there. Who held the mutex holds it. 0. */
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

/* The end of a reader-writer lock. 0, or EBUSY: it is held or waited for. Need not be called. */
int ovl_rwlock_destroy(ovl_rwlock_t *rwlock);

/* In a child of fork: forgets those that waited and are not there. Who held the lock holds it; written says whether the calling thread
 * holds it for writing. 0. */
int ovl_rwlock_after_fork(ovl_rwlock_t *rwlock, int written);

/* Acquires the lock together with other readers. 0. A thread that reads already must not: it might wait for a writer that waits for it. The
 * process ends where 2^31 readers would be exceeded. */
int ovl_rwlock_rdlock(ovl_rwlock_t *rwlock);

/* Acquires the lock together with other readers if that needs no waiting. 0, or EBUSY: somebody writes, is about to, or is just being given the
 * lock. */
int ovl_rwlock_tryrdlock(ovl_rwlock_t *rwlock);

/* Acquires the lock together with other readers, unless the deadline passes first. 0, ETIMEDOUT, or EINVAL. */
int ovl_rwlock_timedrdlock(ovl_rwlock_t *rwlock, const struct timespec *deadline);

/* Releases an acquisition by rdlock, tryrdlock or timedrdlock of the calling thread. 0. */
int ovl_rwlock_rdunlock(ovl_rwlock_t *rwlock);

/* Acquires the lock alone. Readers that come later wait, so writers do not starve; nor do readers. 0. */
int ovl_rwlock_wrlock(ovl_rwlock_t *rwlock);

/* Acquires the lock alone if that needs no waiting. 0, or EBUSY. */
int ovl_rwlock_trywrlock(ovl_rwlock_t *rwlock);

/* Acquires the lock alone, unless the deadline passes first. 0, ETIMEDOUT, or EINVAL. */
int ovl_rwlock_timedwrlock(ovl_rwlock_t *rwlock, const struct timespec *deadline);

/* Releases an acquisition by wrlock, trywrlock or timedwrlock of the calling thread. 0. */
int ovl_rwlock_wrunlock(ovl_rwlock_t *rwlock);

/* ---- Condition variables ---- */

/* Makes memory a condition variable that nobody waits for. 0. */
int ovl_cond_init(ovl_cond_t *cond);

/* Waits until those that were notified have done with the condition variable, which may then be freed. All that wait must have been
 * notified. 0. */
int ovl_cond_destroy(ovl_cond_t *cond);

/* In a child of fork: forgets those that waited and are not there. 0. */
int ovl_cond_after_fork(ovl_cond_t *cond);

/* Releases the mutex, which the calling thread holds, waits for a notification, and acquires the mutex again. 0. Ends without a notification only
 * in programs with more than 16383 threads; look at the condition again in any case. All that wait at a time wait with one mutex. */
int ovl_cond_wait(ovl_cond_t *cond, ovl_mutex_t *mutex);

/* The same, unless the deadline passes first. 0, ETIMEDOUT (there was no notification), or EINVAL (the mutex was not released). The mutex is held
 * again in any case, however long that takes. */
int ovl_cond_timedwait(ovl_cond_t *cond, ovl_mutex_t *mutex, const struct timespec *deadline);

/* Notifies the one that has waited longest, if there is one. What the caller did before is visible to it. 0. With the mutex or without it. */
int ovl_cond_signal(ovl_cond_t *cond);

/* Notifies all that wait; they get the mutex one after another. 0. With the mutex or without it. */
int ovl_cond_broadcast(ovl_cond_t *cond);

/* ---- Private from here on: the fast paths of mutexes. Define OVL_NO_INLINE to call the library instead. ---- */

OVL_PRIVATE_ASSERT(sizeof(ovl_mutex_t) == 16);
OVL_PRIVATE_ASSERT(sizeof(ovl_rwlock_t) == 40);
OVL_PRIVATE_ASSERT(sizeof(ovl_cond_t) == 16);

/* What the library's tests compare with the library. */
#define OVL_PRIVATE_HELD 0xfe
#define OVL_PRIVATE_KICK_FACTOR UINT64_C(0x9e3779b97f4a7c15)
#define OVL_PRIVATE_KICK_SHIFT 54
#define OVL_PRIVATE_KICK_INDEX(address) ((uint64_t)(uintptr_t)(address) * OVL_PRIVATE_KICK_FACTOR >> OVL_PRIVATE_KICK_SHIFT)

/* Counts by address the locks whose unlock has something to do. */
extern const uint32_t *const ovl_kick_table;

/* What is inlined is never emitted as a function: its address, and calls that a compiler does not inline, are the library's. */
#if defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(OVL_NO_INLINE)
#define OVL_PRIVATE_INLINE extern __inline__ __attribute__((__gnu_inline__, __always_inline__, __artificial__))

/* The library's functions, by names that are not inlined. */
int ovl_private_lock(ovl_mutex_t *mutex) __asm__("ovl_mutex_lock");
int ovl_private_timedlock(ovl_mutex_t *mutex, const struct timespec *deadline) __asm__("ovl_mutex_timedlock");
int ovl_private_unlock(ovl_mutex_t *mutex) __asm__("ovl_mutex_unlock");

OVL_PRIVATE_INLINE int ovl_private_take(ovl_mutex_t *mutex) {
    uint8_t ovl_free = 0;
    int taken = __atomic_compare_exchange_n(&mutex->ovl_locked, &ovl_free, (uint8_t)OVL_PRIVATE_HELD, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    if (__builtin_expect(taken, 1)) {
        __atomic_store_n(&mutex->ovl_done, __atomic_load_n(&mutex->ovl_done, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
    }
    return taken;
}

OVL_PRIVATE_INLINE int ovl_mutex_lock(ovl_mutex_t *mutex) {
    return __builtin_expect(ovl_private_take(mutex), 1) ? 0 : ovl_private_lock(mutex);
}

OVL_PRIVATE_INLINE int ovl_mutex_trylock(ovl_mutex_t *mutex) {
    return __atomic_load_n(&mutex->ovl_locked, __ATOMIC_RELAXED) == 0 && ovl_private_take(mutex) ? 0 : EBUSY;
}

OVL_PRIVATE_INLINE int ovl_mutex_timedlock(ovl_mutex_t *mutex, const struct timespec *deadline) {
    return __builtin_expect(ovl_private_take(mutex), 1) ? 0 : ovl_private_timedlock(mutex, deadline);
}

OVL_PRIVATE_INLINE int ovl_mutex_unlock(ovl_mutex_t *mutex) {
    /* The look comes first: after the release, the next owner may free the mutex. */
    if (__builtin_expect(__atomic_load_n(&ovl_kick_table[OVL_PRIVATE_KICK_INDEX(mutex)], __ATOMIC_RELAXED) != 0, 0)) {
        return ovl_private_unlock(mutex);
    }
    /* Pairs with the acquire in ovl_private_take, and orders the look before itself. */
    __atomic_store_n(&mutex->ovl_locked, (uint8_t)0, __ATOMIC_RELEASE);
    return 0;
}
#endif

/* ---- Spinlocks: as for mutexes ---- */

static __inline__ int ovl_spinlock_init(ovl_spinlock_t *lock) { return ovl_mutex_init(lock); }
static __inline__ int ovl_spinlock_destroy(ovl_spinlock_t *lock) { return ovl_mutex_destroy(lock); }
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
