//! The usual names: aliases of the generic locks and guards, over the raw locks that we recommend.

#[cfg(all(any(target_os = "linux", target_os = "android"), not(overlock_threads)))]
use overlock_core::sleep;

use crate::base::{Condvar, FairOverlock, Overlock, OverlockRw, PerCpuRwSem, RecursiveRw};
use crate::guard;
use crate::lock::{ArcLockGuard, Lock, LockGuard, MappedLockGuard};
use crate::reentrant::{ArcReentrantGuard, MappedReentrantGuard, ReentrantGuard, ReentrantLock};
use crate::rwlock::{self, SharedLock};
use crate::{RawThreadId, System};

/// The raw lock of [`Mutex`] and [`SpinLock`]: [`overlock_core::sleep::overlock`].
pub type RawMutex = Overlock<System>;

/// The raw lock of [`RtMutex`]: [`overlock_core::sleep::rt_mutex`].
#[cfg(all(any(target_os = "linux", target_os = "android"), not(overlock_threads)))]
pub type RawRtMutex = sleep::RtMutex<System>;

/// The raw lock of [`RwLock`]: [`overlock_core::rw::overlock_rw`].
pub type RawRwLock = OverlockRw<System>;

/// The raw lock of [`PerCpuRwLock`]: [`overlock_core::rw::percpu_rwsem`].
pub type RawPerCpuRwLock = PerCpuRwSem<System>;

/// A mutual-exclusion lock that stays fast when there are more threads than CPUs. The default
/// choice.
///
/// A waiter spins for some microseconds, then sleeps, and costs nothing while it does. Running
/// threads bypass sleeping ones, up to a bound ([`overlock_core::sleep::overlock`]). Locking is one
/// compare-exchange, and so is unlocking. Neither is a call. 4 bytes beside the data.
///
/// Its methods are those of [`Lock`], with their orderings and errors; the guard is a
/// [`MutexGuard`]. There is no poisoning: a panic while a guard is alive releases the lock.
///
/// | method of [`Lock`] | |
/// |---|---|
/// | [`lock`](Lock::lock), [`try_lock`](Lock::try_lock) | the guard; at once or not at all |
/// | [`try_lock_for`](Lock::try_lock_for), [`try_lock_until`](Lock::try_lock_until) | with a limit |
/// | [`lock_cancellable`](Lock::lock_cancellable) | until another thread ends the wait |
/// | [`lock_arc`](Lock::lock_arc), [`try_lock_arc`](Lock::try_lock_arc) | a guard that keeps an `Arc` |
/// | [`get_mut`](Lock::get_mut), [`into_inner`](Lock::into_inner) | the data, without locking |
/// | [`is_locked`](Lock::is_locked), [`is_contended`](Lock::is_contended) | snapshots |
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
/// [`Condvar`](crate::Condvar) waits with it. [`MutexGuard::unlock_fair`] and [`MutexGuard::bump`]
/// ([docs](guard::Guard::bump)) let other threads have the lock in between. [`Lock::try_lock_for`]
/// and [`Lock::lock_cancellable`] wait with a limit.
pub type Mutex<T> = Lock<RawMutex, T>;

/// An alias of [`Mutex`], for users who look for a spinlock. Its waiters spin first, then sleep.
///
/// A spinlock stands for cheap locking around a few instructions, and [`Mutex`] offers that: it
/// spins first, and costs no more without contention. A lock whose waiters only spin hangs when its
/// holder loses its CPU, so a type of its own could promise nothing more. As one type, a
/// `&SpinLock<T>` goes wherever a `&Mutex<T>` does, a [`Condvar`](crate::Condvar) included. Module
/// `spin` (feature `family`) has locks that only spin.
///
/// ```
/// use overlock::SpinLock;
///
/// static HITS: SpinLock<u64> = SpinLock::new(0);
///
/// *HITS.lock() += 1;
/// ```
pub type SpinLock<T> = Mutex<T>;

/// The guard of a [`Mutex`]: see [`Guard`](guard::Guard). Its operations are associated functions:
/// `map`, `unlocked`, `unlock_fair`, `bump`, `into_token`, `leak`.
///
/// ```
/// use overlock::{Mutex, MutexGuard};
///
/// let pair = Mutex::new((1, 2));
/// let mut second = MutexGuard::map(pair.lock(), |pair| &mut pair.1);
/// *second += 1;
/// ```
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
/// Without that, threads of medium priority keep a holder of low priority from running, and a
/// waiter of high priority waits for them all. The kernel lends the priority (a PI futex), and
/// hands the lock off to the waiter of the highest priority. [`Mutex`] is much faster where that is
/// not needed: here each release with waiters is a system call and a wake-up. 4 bytes beside the
/// data.
///
/// Debug builds and the `checked` feature panic if a thread locks what it holds, or if threads wait
/// for each other in a cycle ([`overlock_core::sleep::rt_mutex`]). Its methods are those of
/// [`Lock`]: [`lock`](Lock::lock), [`try_lock`](Lock::try_lock),
/// [`try_lock_for`](Lock::try_lock_for), [`get_mut`](Lock::get_mut),
/// [`into_inner`](Lock::into_inner).
///
/// ```
/// use overlock::RtMutex;
///
/// static SETPOINT: RtMutex<f64> = RtMutex::new(0.0);
///
/// *SETPOINT.lock() = 1.5;
/// ```
#[cfg(all(any(target_os = "linux", target_os = "android"), not(overlock_threads)))]
pub type RtMutex<T> = Lock<RawRtMutex, T>;

/// The guard of an [`RtMutex`]: see [`Guard`](guard::Guard).
#[cfg(all(any(target_os = "linux", target_os = "android"), not(overlock_threads)))]
pub type RtMutexGuard<'a, T> = LockGuard<'a, RawRtMutex, T>;

/// The guard of a part of an [`RtMutex`]'s data: see [`MappedGuard`](guard::MappedGuard).
#[cfg(all(any(target_os = "linux", target_os = "android"), not(overlock_threads)))]
pub type MappedRtMutexGuard<'a, T> = MappedLockGuard<'a, RawRtMutex, T>;

/// A reader-writer lock that stays fast when there are more threads than CPUs. The default choice.
///
/// Readers share a count, by one atomic addition each. A thread that has to wait spins for some
/// microseconds, then sleeps. Neither readers nor writers starve
/// ([`overlock_core::rw::overlock_rw`]). 8 bytes beside the data.
///
/// Its methods are those of [`SharedLock`], with their orderings and errors. There is no poisoning:
/// a panic while a guard is alive releases the lock.
///
/// | method of [`SharedLock`] | |
/// |---|---|
/// | [`read`](SharedLock::read), [`write`](SharedLock::write) | the guards |
/// | [`try_read`](SharedLock::try_read), [`try_write`](SharedLock::try_write) | at once or not at all |
/// | [`try_read_for`](SharedLock::try_read_for) | a reader, with a limit; also `_until` |
/// | [`try_write_for`](SharedLock::try_write_for) | the writer, with a limit; also `_until` |
/// | [`upgradable_read`](SharedLock::upgradable_read) | a reader that may become the writer |
/// | [`read_arc`](SharedLock::read_arc), [`write_arc`](SharedLock::write_arc) | guards that keep an `Arc` |
/// | [`get_mut`](SharedLock::get_mut), [`into_inner`](SharedLock::into_inner) | the data, without locking |
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
/// The two `read`s above do not overlap. Those of one thread never should: a writer may arrive in
/// between. It waits for the first `read`, the second waits for the writer, and that is a deadlock.
///
/// `unlock_fair` and `bump` of all three guards ([docs](guard::Guard::unlock_fair)) let other
/// threads have the lock in between. [`SharedLock::try_write_for`] and its kind wait with a limit.
pub type RwLock<T> = SharedLock<RawRwLock, T>;

/// A reader-writer lock for data that is read all the time and hardly ever written, such as a
/// configuration or a routing table.
///
/// A reader touches only memory of its own thread. A writer reads the memory of all threads, which
/// takes it some microseconds. Readers of a [`RwLock`] share a cache line, and slow each other down
/// in short sections. 12 bytes beside the data. It has no upgradable readers. Its methods are those
/// of [`SharedLock`]: [`read`](SharedLock::read), [`write`](SharedLock::write),
/// [`try_read`](SharedLock::try_read), [`try_write`](SharedLock::try_write),
/// [`get_mut`](SharedLock::get_mut), [`into_inner`](SharedLock::into_inner).
///
/// ```
/// use overlock::PerCpuRwLock;
///
/// static LIMITS: PerCpuRwLock<[u32; 2]> = PerCpuRwLock::new([10, 20]);
///
/// assert_eq!(LIMITS.read()[1], 20);
/// LIMITS.write()[1] = 30;
/// ```
///
/// Not for threads of [two copies](crate#two-copies-in-a-process) of this crate.
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

/// The raw lock of [`FairMutex`]: [`overlock_core::sleep::FairOverlock`].
pub type RawFairMutex = FairOverlock<System>;

/// A [`Mutex`] each of whose releases hands it off to a sleeping waiter, if there is one.
///
/// A thread that releases and wants it again at once comes after those that sleep for it. That
/// costs a wake-up for each release with waiters: take it where threads must take turns, and
/// [`Mutex`] otherwise, which bounds waits too. 4 bytes beside the data.
///
/// ```
/// use overlock::FairMutex;
///
/// static TURNS: FairMutex<u32> = FairMutex::new(0);
///
/// *TURNS.lock() += 1;
/// ```
pub type FairMutex<T> = Lock<RawFairMutex, T>;

/// The guard of a [`FairMutex`]: see [`Guard`](guard::Guard).
pub type FairMutexGuard<'a, T> = LockGuard<'a, RawFairMutex, T>;

/// The guard of a part of a [`FairMutex`]'s data: see [`MappedGuard`](guard::MappedGuard).
pub type MappedFairMutexGuard<'a, T> = MappedLockGuard<'a, RawFairMutex, T>;

/// A mutual-exclusion lock that its owner may lock again.
///
/// Several guards of the owner may live at a time, so none gives mutable access: put a
/// [`RefCell`](std::cell::RefCell) inside. Its methods are those of [`ReentrantLock`]. 16 bytes
/// beside the data.
///
/// ```
/// use std::cell::Cell;
/// use overlock::ReentrantMutex;
///
/// static COUNT: ReentrantMutex<Cell<u32>> = ReentrantMutex::new(Cell::new(0));
///
/// fn add(more: u32) {
///     let count = COUNT.lock();
///     count.set(count.get() + more);
/// }
///
/// let count = COUNT.lock();
/// add(2); // in the section of `count`
/// assert_eq!(count.get(), 2);
/// ```
///
/// Not for threads of [two copies](crate#two-copies-in-a-process) of this crate.
pub type ReentrantMutex<T> = ReentrantLock<RawMutex, RawThreadId, T>;

/// The guard of a [`ReentrantMutex`]: see [`Guard`](guard::Guard).
pub type ReentrantMutexGuard<'a, T> = ReentrantGuard<'a, RawMutex, RawThreadId, T>;

/// The guard of a part of a [`ReentrantMutex`]'s data: see
/// [`MappedSharedGuard`](guard::MappedSharedGuard).
pub type MappedReentrantMutexGuard<'a, T> = MappedReentrantGuard<'a, RawMutex, RawThreadId, T>;

/// The guard of a reentrant mutex that it keeps alive. `R` is the raw lock, [`RawMutex`], and `I`
/// is [`RawThreadId`] for a [`ReentrantMutex`].
pub type ArcReentrantMutexGuard<R, I, T> = ArcReentrantGuard<R, I, T>;

/// The raw lock of [`RecursiveRwLock`]: [`overlock_core::rw::RecursiveRw`].
pub type RawRwLockRecursive = RecursiveRw<System>;

/// A [`RwLock`] whose readers may read again: each `read` is a
/// [`read_recursive`](SharedLock::read_recursive). Writers may starve. 8 bytes beside the data.
///
/// ```
/// use overlock::RecursiveRwLock;
///
/// let lock = RecursiveRwLock::new(5);
/// let (outer, inner) = (lock.read(), lock.read());
/// assert_eq!(*outer, *inner);
/// ```
pub type RecursiveRwLock<T> = SharedLock<RawRwLockRecursive, T>;

/// A reader's guard of a [`RecursiveRwLock`]: see [`Guard`](guard::Guard).
pub type RecursiveRwLockReadGuard<'a, T> = rwlock::ReadGuard<'a, RawRwLockRecursive, T>;

/// A writer's guard of a [`RecursiveRwLock`]: see [`Guard`](guard::Guard).
pub type RecursiveRwLockWriteGuard<'a, T> = rwlock::WriteGuard<'a, RawRwLockRecursive, T>;

/// An upgradable reader's guard of a [`RecursiveRwLock`]: see [`Guard`](guard::Guard).
pub type RecursiveRwLockUpgradableReadGuard<'a, T> =
    rwlock::UpgradableReadGuard<'a, RawRwLockRecursive, T>;

/// A reader's guard of a part of a [`RecursiveRwLock`]'s data: see
/// [`MappedSharedGuard`](guard::MappedSharedGuard).
pub type MappedRecursiveRwLockReadGuard<'a, T> = guard::MappedReadGuard<'a, RawRwLockRecursive, T>;

/// A writer's guard of a part of a [`RecursiveRwLock`]'s data: see
/// [`MappedGuard`](guard::MappedGuard).
pub type MappedRecursiveRwLockWriteGuard<'a, T> =
    rwlock::MappedWriteGuard<'a, RawRwLockRecursive, T>;

/// The raw lock of [`Condvar`](crate::Condvar), with lock_api's traits for a [`RawMutex`]:
/// [`overlock_core::sleep::condvar`].
pub type RawCondvar = Condvar<System>;

/// [`Mutex::new`](Lock::new), by the name that parking_lot had for it until 0.12.
#[inline]
#[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
pub const fn const_mutex<T>(data: T) -> Mutex<T> {
    Mutex::new(data)
}

/// [`RwLock::new`](SharedLock::new), by the name that parking_lot had for it until 0.12.
#[inline]
#[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
pub const fn const_rwlock<T>(data: T) -> RwLock<T> {
    RwLock::new(data)
}

/// [`FairMutex::new`](Lock::new), by the name that parking_lot had for it until 0.12.
#[inline]
#[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
pub const fn const_fair_mutex<T>(data: T) -> FairMutex<T> {
    FairMutex::new(data)
}

/// [`ReentrantMutex::new`](ReentrantLock::new), by the name that parking_lot had for it until 0.12.
#[inline]
#[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
pub const fn const_reentrant_mutex<T>(data: T) -> ReentrantMutex<T> {
    ReentrantMutex::new(data)
}
