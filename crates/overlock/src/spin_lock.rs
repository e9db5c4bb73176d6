//! The lock that we recommend, with the data that it protects.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use overlock_core::Platform;
use overlock_core::raw::{RawLock, RawTimedLock};
use overlock_core::spin::Overlock;

use crate::Linux;

/// A mutual-exclusion lock for short critical sections that stays fast when there are more threads
/// than CPUs.
///
/// Unlike a plain spinlock it survives the loss of its holder's CPU: a waiter spins only for as long as that is
/// worth it, then sleeps. Unlocking is a plain store. It takes 16 bytes beside the data.
///
/// The waiting time is bounded, see [`overlock_core::spin::overlock`]. Acquiring has acquire ordering, releasing has
/// release ordering. A panic while a guard is alive releases the lock; there is no poisoning.
///
/// ```
/// use overlock::SpinLock;
///
/// static COUNTS: SpinLock<[u64; 2]> = SpinLock::new([0; 2]);
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
/// A thread that locks what it holds already waits for ever, as does a signal handler that locks what the
/// thread that it interrupted holds.
#[derive(Default)]
pub struct SpinLock<T: ?Sized> {
    raw: Overlock<Linux>,
    data: UnsafeCell<T>,
}

// SAFETY: the lock gives one thread at a time access to the data, by reference, which is as good as sending
// the data there and back.
unsafe impl<T: ?Sized + Send> Sync for SpinLock<T> {}
// SAFETY: owning the lock is owning the data.
unsafe impl<T: ?Sized + Send> Send for SpinLock<T> {}

/// Access to the data of a [`SpinLock`]; releases the lock when dropped.
///
/// Not `Send`: the thread that locked unlocks.
#[must_use = "the lock is released as soon as the guard is dropped"]
pub struct SpinLockGuard<'a, T: ?Sized> {
    lock: &'a SpinLock<T>,
    here: PhantomData<*mut ()>,
}

// SAFETY: a shared guard gives shared access to the data, and to nothing else.
unsafe impl<T: ?Sized + Sync> Sync for SpinLockGuard<'_, T> {}

impl<T> SpinLock<T> {
    /// A new, unlocked lock around `data`.
    pub const fn new(data: T) -> Self {
        SpinLock {
            raw: Overlock::new(),
            data: UnsafeCell::new(data),
        }
    }

    /// The data, out of the lock.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> SpinLock<T> {
    /// Acquires the lock, waiting for as long as it takes.
    #[inline]
    pub fn lock(&self) -> SpinLockGuard<'_, T> {
        self.raw.lock();
        self.guard()
    }

    /// Acquires the lock if it is free; does not wait.
    #[inline]
    pub fn try_lock(&self) -> Option<SpinLockGuard<'_, T>> {
        self.raw.try_lock().map(|()| self.guard())
    }

    /// Acquires the lock unless `timeout` passes first. Tries at least once.
    pub fn try_lock_for(&self, timeout: Duration) -> Option<SpinLockGuard<'_, T>> {
        self.raw
            .lock_until(Linux::now().plus(timeout))
            .map(|()| self.guard())
    }

    /// Acquires the lock unless `deadline` passes first. Tries at least once.
    pub fn try_lock_until(&self, deadline: Instant) -> Option<SpinLockGuard<'_, T>> {
        self.try_lock_for(deadline.saturating_duration_since(Instant::now()))
    }

    /// The data: the borrow checker knows that nobody else is there.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// Whether somebody holds the lock. A snapshot: it may be stale when it arrives.
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// Whether a thread sleeps for the lock, or is waking up for it. A snapshot, as
    /// [`is_locked`](Self::is_locked); waiters that still spin do not show.
    pub fn is_contended(&self) -> bool {
        self.raw.is_contended()
    }

    /// The caller has just acquired the lock.
    #[inline]
    fn guard(&self) -> SpinLockGuard<'_, T> {
        SpinLockGuard {
            lock: self,
            here: PhantomData,
        }
    }
}

impl<T: ?Sized> Drop for SpinLockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard was made by the acquisition, on this thread (it is not Send), and its one drop
        // is this one.
        unsafe { self.lock.raw.unlock(()) }
    }
}

impl<T: ?Sized> Deref for SpinLockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held while the guard lives, so nobody else has a mutable reference.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> DerefMut for SpinLockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; and the guard itself is borrowed mutably, so this reference is the only one.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T> From<T> for SpinLock<T> {
    fn from(data: T) -> Self {
        SpinLock::new(data)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for SpinLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SpinLock");
        match self.try_lock() {
            Some(guard) => shown.field("data", &&*guard),
            None => shown.field("data", &format_args!("<locked>")),
        };
        shown.finish_non_exhaustive()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for SpinLockGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for SpinLockGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_sixteen_bytes_beside_the_data() {
        assert_eq!(size_of::<SpinLock<()>>(), 16);
        assert_eq!(size_of::<SpinLock<u8>>(), 20);
        assert_eq!(size_of::<SpinLock<u64>>(), 24);
    }

    #[test]
    fn shared_and_sent_exactly_where_that_is_sound() {
        trait Ambiguous<A> {
            fn check() {}
        }
        impl<T: ?Sized> Ambiguous<()> for T {}
        struct IsSend;
        impl<T: ?Sized + Send> Ambiguous<IsSend> for T {}
        // Would not compile ("type annotations needed") if a guard were Send.
        <SpinLockGuard<'static, u32> as Ambiguous<_>>::check();
        fn both<T: Send + Sync>() {}
        both::<SpinLock<std::cell::Cell<u32>>>();
        fn sync<T: Sync>() {}
        sync::<SpinLockGuard<'static, u32>>();
    }

    #[test]
    fn what_a_user_does_with_it() {
        let mut lock = SpinLock::from(String::from("a"));
        lock.lock().push('b');
        assert_eq!(format!("{lock:?}"), "SpinLock { data: \"ab\", .. }");
        let guard = lock.try_lock().unwrap();
        assert!(lock.is_locked() && !lock.is_contended());
        assert_eq!(format!("{guard} {guard:?}"), "ab \"ab\"");
        assert_eq!(format!("{lock:?}"), "SpinLock { data: <locked>, .. }");
        assert!(lock.try_lock().is_none());
        let start = Instant::now();
        let wait = Duration::from_millis(20);
        assert!(lock.try_lock_for(wait).is_none());
        assert!(start.elapsed() >= wait);
        assert!(lock.try_lock_until(start).is_none());
        drop(guard);
        assert!(lock.try_lock_until(start).is_some(), "tries once");
        lock.get_mut().clear();
        assert_eq!(lock.into_inner(), "");
    }

    #[test]
    fn a_panic_releases_the_lock() {
        let lock = SpinLock::new(0);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = lock.lock();
            panic!("as a test");
        }));
        assert!(result.is_err());
        assert!(lock.try_lock().is_some());
    }

    /// Many more threads than CPUs, sections that are left in the middle of a time slice.
    #[test]
    fn counts_under_overcommit() {
        const THREADS: usize = if cfg!(miri) { 3 } else { 32 };
        const TIMES: usize = if cfg!(miri) { 20 } else { 20_000 };
        let lock = SpinLock::new((0_usize, 0_usize));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let lock = &lock;
                scope.spawn(move || {
                    for i in 0..TIMES {
                        let mut guard = if (i + thread) % 7 == 0 {
                            match lock.try_lock_for(Duration::from_micros(50)) {
                                Some(guard) => guard,
                                None => lock.lock(),
                            }
                        } else {
                            lock.lock()
                        };
                        guard.0 += 1;
                        if i % 1000 == 0 {
                            std::thread::yield_now();
                        }
                        guard.1 += 1;
                        assert_eq!(guard.0, guard.1);
                    }
                });
            }
        });
        assert_eq!(lock.lock().0, THREADS * TIMES);
        assert!(!lock.is_contended());
    }
}
