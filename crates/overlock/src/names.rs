//! The names that people type: aliases of the generic locks and guards, over the raw locks that we
//! recommend.

use overlock_core::rw::{OverlockRw, PerCpuRwSem};
use overlock_core::sleep;
use overlock_core::sleep::Overlock;

use crate::Linux;
use crate::guard;
use crate::lock::{ArcLockGuard, Lock, LockGuard, MappedLockGuard};
use crate::rwlock::{self, SharedLock};

/// The raw lock of [`Mutex`] and [`SpinLock`]: [`overlock_core::sleep::overlock`].
pub type RawMutex = Overlock<Linux>;

/// The raw lock of [`RtMutex`]: [`overlock_core::sleep::rt_mutex`].
pub type RawRtMutex = sleep::RtMutex<Linux>;

/// The raw lock of [`RwLock`]: [`overlock_core::rw::overlock_rw`].
pub type RawRwLock = OverlockRw<Linux>;

/// The raw lock of [`PerCpuRwLock`]: [`overlock_core::rw::percpu_rwsem`].
pub type RawPerCpuRwLock = PerCpuRwSem<Linux>;

/// A mutual-exclusion lock that stays fast when there are more threads than CPUs. The one to take.
///
/// A waiter spins for some microseconds, then sleeps, and costs nothing while it does. Those that
/// run pass those that sleep, up to a bound ([`overlock_core::sleep::overlock`]). Locking is one
/// compare-exchange. Unlocking is a load and a store that nothing can come between (a restartable
/// sequence; where there is none, a compare-exchange). Neither is a call. 4 bytes beside the data.
///
/// Its methods are those of [`Lock`], which also says what they order and what goes wrong; the
/// guard is a [`MutexGuard`]. There is no poisoning: a panic while a guard is alive releases the
/// lock.
///
/// ```
/// use overlock::Mutex;
///
/// static COUNTS: Mutex<[u64; 2]> = Mutex::new([0; 2]);
///
/// std::thread::scope(|scope| {
///     for i in 0..8 {
///         scope.spawn(move || {
///             for _ in 0..1000 {
///                 COUNTS.lock()[i % 2] += 1;
///             }
///         });
///     }
/// });
/// assert_eq!(*COUNTS.lock(), [4000, 4000]);
/// ```
///
/// What waits with it: a [`Condvar`](crate::Condvar). Where others must have their turn:
/// [`MutexGuard::unlock_fair`], [`MutexGuard::bump`] ([docs](guard::Guard::bump)). What ends a
/// wait: [`Lock::try_lock_for`], [`Lock::lock_cancellable`].
pub type Mutex<T> = Lock<RawMutex, T>;

/// [`Mutex`], for those that look for a spinlock.
///
/// It is the same type on purpose. What a spinlock is taken for, cheap locking around a few
/// instructions, [`Mutex`] does: it spins first, and it costs no more when nobody waits. What only
/// spins hangs on a holder that has lost its CPU, so there is nothing that a type of its own could
/// promise. As one type, a `&SpinLock<T>` goes wherever a `&Mutex<T>` does, a
/// [`Condvar`](crate::Condvar) included. Locks that do only spin are in [`spin`](crate::spin).
///
/// ```
/// use overlock::SpinLock;
///
/// static HITS: SpinLock<u64> = SpinLock::new(0);
///
/// *HITS.lock() += 1;
/// ```
pub type SpinLock<T> = Mutex<T>;

/// The guard of a [`Mutex`]: see [`Guard`](guard::Guard).
pub type MutexGuard<'a, T> = LockGuard<'a, RawMutex, T>;

/// The guard of a [`SpinLock`], which is that of a [`Mutex`].
pub type SpinLockGuard<'a, T> = MutexGuard<'a, T>;

/// The guard of a part of a [`Mutex`]'s data: see [`MappedGuard`](guard::MappedGuard).
pub type MappedMutexGuard<'a, T> = MappedLockGuard<'a, RawMutex, T>;

/// The guard of a mutex that it keeps alive: see [`Guard`](guard::Guard). `R` is the raw lock,
/// [`RawMutex`] for a [`Mutex`].
pub type ArcMutexGuard<R, T> = ArcLockGuard<R, T>;

/// A mutual-exclusion lock for threads with real-time priorities: while a thread waits, the holder
/// runs with at least its priority.
///
/// Without that, a holder of low priority is kept from running by threads of medium priority, and a
/// waiter of high priority waits for them all. The kernel does the lending (a PI futex), and gives
/// the lock to the waiter of the highest priority. Elsewhere [`Mutex`] is much faster: here each
/// release with waiters is a system call and a wake-up. 4 bytes beside the data.
///
/// Debug builds and the `checked` feature panic where a thread locks what it holds, or where
/// threads wait for each other in a circle ([`overlock_core::sleep::rt_mutex`]). Its methods are
/// those of [`Lock`].
///
/// ```
/// use overlock::RtMutex;
///
/// static SETPOINT: RtMutex<f64> = RtMutex::new(0.0);
///
/// *SETPOINT.lock() = 1.5;
/// ```
pub type RtMutex<T> = Lock<RawRtMutex, T>;

/// The guard of an [`RtMutex`]: see [`Guard`](guard::Guard).
pub type RtMutexGuard<'a, T> = LockGuard<'a, RawRtMutex, T>;

/// The guard of a part of an [`RtMutex`]'s data: see [`MappedGuard`](guard::MappedGuard).
pub type MappedRtMutexGuard<'a, T> = MappedLockGuard<'a, RawRtMutex, T>;

/// A reader-writer lock that stays fast when there are more threads than CPUs. The one to take.
///
/// Readers share a count, by one atomic addition each. Whoever cannot come in spins for some
/// microseconds, then sleeps. Neither readers nor writers starve
/// ([`overlock_core::rw::overlock_rw`]). 8 bytes beside the data.
///
/// Its methods are those of [`SharedLock`], which also says what they order and what goes wrong.
/// There is no poisoning: a panic while a guard is alive releases the lock.
///
/// ```
/// use overlock::RwLock;
///
/// static NAMES: RwLock<Vec<&str>> = RwLock::new(Vec::new());
///
/// NAMES.write().push("ada");
/// let (one, other) = (NAMES.read().len(), NAMES.read().first().copied());
/// assert_eq!((one, other), (1, Some("ada")));
/// ```
///
/// The two `read`s above do not overlap. Those of one thread never should: a writer may come
/// between, and then it waits for the first, the second for it, and nothing moves any more.
///
/// Where others must have their turn: `unlock_fair` and `bump` of all three guards
/// ([docs](guard::Guard::unlock_fair)). What ends a wait: [`SharedLock::try_write_for`] and its
/// kind.
pub type RwLock<T> = SharedLock<RawRwLock, T>;

/// A reader-writer lock for what is read all the time and hardly ever written.
///
/// A reader touches only memory of its own thread; a writer looks at the memory of all threads,
/// which takes it some microseconds. Readers of a [`RwLock`] share a line, and slow each other down
/// where they do little inside. Take this one where the data is a configuration or a routing table.
/// 12 bytes beside the data. It has no upgradable readers.
///
/// ```
/// use overlock::PerCpuRwLock;
///
/// static LIMITS: PerCpuRwLock<[u32; 2]> = PerCpuRwLock::new([10, 20]);
///
/// assert_eq!(LIMITS.read()[1], 20);
/// LIMITS.write()[1] = 30;
/// ```
pub type PerCpuRwLock<T> = SharedLock<RawPerCpuRwLock, T>;

/// A reader's guard of a [`RwLock`]: see [`Guard`](guard::Guard).
pub type RwLockReadGuard<'a, T> = rwlock::ReadGuard<'a, RawRwLock, T>;

/// A writer's guard of a [`RwLock`]: see [`Guard`](guard::Guard).
pub type RwLockWriteGuard<'a, T> = rwlock::WriteGuard<'a, RawRwLock, T>;

/// An upgradable reader's guard of a [`RwLock`]: see [`Guard`](guard::Guard).
pub type RwLockUpgradableReadGuard<'a, T> = rwlock::UpgradableReadGuard<'a, RawRwLock, T>;

/// A reader's guard of a [`PerCpuRwLock`]: see [`Guard`](guard::Guard).
pub type PerCpuRwLockReadGuard<'a, T> = rwlock::ReadGuard<'a, RawPerCpuRwLock, T>;

/// A writer's guard of a [`PerCpuRwLock`]: see [`Guard`](guard::Guard).
pub type PerCpuRwLockWriteGuard<'a, T> = rwlock::WriteGuard<'a, RawPerCpuRwLock, T>;

/// A reader's guard of a part of a [`RwLock`]'s data: see
/// [`MappedReadGuard`](guard::MappedReadGuard).
pub type MappedRwLockReadGuard<'a, T> = guard::MappedReadGuard<'a, RawRwLock, T>;

/// A writer's guard of a part of a [`RwLock`]'s data: see [`MappedGuard`](guard::MappedGuard).
pub type MappedRwLockWriteGuard<'a, T> = rwlock::MappedWriteGuard<'a, RawRwLock, T>;

/// A reader's guard of a lock that it keeps alive. `R` is the raw lock, [`RawRwLock`] for a
/// [`RwLock`].
pub type ArcRwLockReadGuard<R, T> = rwlock::ArcReadGuard<R, T>;

/// A writer's guard of a lock that it keeps alive. `R` is the raw lock, [`RawRwLock`] for a
/// [`RwLock`].
pub type ArcRwLockWriteGuard<R, T> = rwlock::ArcWriteGuard<R, T>;

/// An upgradable reader's guard of a lock that it keeps alive. `R` is the raw lock, [`RawRwLock`]
/// for a [`RwLock`].
pub type ArcRwLockUpgradableReadGuard<R, T> = rwlock::ArcUpgradableReadGuard<R, T>;

/// [`Mutex::new`](Lock::new), by the name that parking_lot had for it until 0.12.
#[inline]
#[cfg_attr(feature = "lockdep", track_caller)]
pub const fn const_mutex<T>(data: T) -> Mutex<T> {
    Mutex::new(data)
}

/// [`RwLock::new`](SharedLock::new), by the name that parking_lot had for it until 0.12.
#[inline]
#[cfg_attr(feature = "lockdep", track_caller)]
pub const fn const_rwlock<T>(data: T) -> RwLock<T> {
    RwLock::new(data)
}
