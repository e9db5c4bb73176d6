//! A mutex that its owner may lock again: see [`ReentrantLock`].

mod guard;

use std::cell::UnsafeCell;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use overlock_core::raw::{ConstLock, RawFairLock, RawLock, RawTimedLock, ThreadId};
use overlock_core::sleep;

pub use guard::{ArcReentrantGuard, MappedReentrantGuard, Reentrant, ReentrantGuard};

use crate::guard::{Guard, Guarded, sealed};
use crate::watch::{How, Sort, Watched};
use crate::{System, deadline};

/// A raw lock `R` that its owner may lock again: [`overlock_core::sleep::reentrant`].
pub type RawReentrantMutex<R, I> = sleep::Reentrant<R, I, System>;

/// Tells the threads of a program apart, by the address of a thread-local variable.
#[derive(Clone, Copy, Debug, Default)]
pub struct RawThreadId;

// SAFETY: variables of threads that run do not overlap, and each stays where it is; a child of fork
// has the memory of its parent.
unsafe impl ThreadId for RawThreadId {
    #[inline]
    fn current() -> NonZeroUsize {
        let address = crate::base::with_own(|own| std::ptr::from_ref(own).addr());
        NonZeroUsize::new(address).expect("no variable has the address 0")
    }
}

// SAFETY: as above.
#[cfg(feature = "lock_api")]
unsafe impl lock_api::GetThreadId for RawThreadId {
    const INIT: Self = RawThreadId;

    #[inline]
    fn nonzero_thread_id(&self) -> NonZeroUsize {
        Self::current()
    }
}

/// A mutual-exclusion lock that its owner may lock again, over the raw lock `R`; `I` tells the
/// threads apart. The usual name is [`ReentrantMutex`](crate::ReentrantMutex).
///
/// The lock is free again when the last of its owner's guards is gone. Since there may be several,
/// none gives mutable access: put a [`Cell`](std::cell::Cell) or [`RefCell`](std::cell::RefCell)
/// inside. A signal handler must not lock it. A forgotten guard leaves the lock acquired.
///
/// A [`Condvar`](crate::Condvar) does not wait with it: a wait that released one of several
/// acquisitions would sleep with the lock.
pub struct ReentrantLock<R, I, T: ?Sized> {
    raw: Watched<RawReentrantMutex<R, I>>,
    data: UnsafeCell<T>,
}

// SAFETY: one thread at a time has access, by shared references: as good as sending the data there
// and back. Raw locks are made to be shared.
unsafe impl<R: RawLock, I: ThreadId, T: ?Sized + Send> Sync for ReentrantLock<R, I, T> {}

impl<R, I, T: ?Sized> sealed::Sealed for ReentrantLock<R, I, T> {}
impl<R, I, T: ?Sized> Guarded for ReentrantLock<R, I, T> {
    type Raw = RawReentrantMutex<R, I>;
    type Data = T;

    #[inline]
    fn parts(&self) -> (&Watched<Self::Raw>, *mut T) {
        (&self.raw, self.data.get())
    }
}

impl<R: ConstLock, I, T> ReentrantLock<R, I, T> {
    /// Returns a new, unlocked lock around `data`.
    #[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
    #[inline]
    pub const fn new(data: T) -> Self {
        Self::from_raw(R::INIT, data)
    }

    /// As [`new`](Self::new), with a name for the features `stat` and `lockdep`: see
    /// [`Lock::named`](crate::lock::Lock::named).
    #[inline]
    pub const fn named(name: &'static str, data: T) -> Self {
        ReentrantLock {
            raw: Watched::named(RawReentrantMutex::new(), Sort::Mutex, name),
            data: UnsafeCell::new(data),
        }
    }
}

impl<R, I, T> ReentrantLock<R, I, T> {
    /// Returns a lock made of its parts, for raw locks that are not constants. `raw` is free.
    #[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
    #[inline]
    pub const fn from_raw(raw: R, data: T) -> Self {
        ReentrantLock {
            raw: Watched::new(RawReentrantMutex::around(raw), Sort::Mutex),
            data: UnsafeCell::new(data),
        }
    }

    /// [`from_raw`](Self::from_raw), by the name that parking_lot had for it until 0.12.
    #[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
    #[inline]
    pub const fn const_new(raw: R, _: I, data: T) -> Self
    where
        I: Copy,
    {
        Self::from_raw(raw, data)
    }

    /// Consumes the lock and returns the data.
    #[inline]
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }

    /// Returns the lock's parts. The raw lock is locked if a guard was forgotten.
    #[inline]
    pub fn into_inner_with_raw(self) -> (R, T) {
        (self.raw.into_raw().into_inner(), self.data.into_inner())
    }
}

impl<R, I, T: ?Sized> ReentrantLock<R, I, T> {
    /// Returns the data: the mutable borrow proves that nobody else has access.
    #[inline]
    pub const fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// Returns a pointer to the data, for a holder of the lock without a guard.
    #[inline]
    pub const fn data_ptr(&self) -> *mut T {
        self.data.get()
    }

    /// Returns the raw lock inside.
    ///
    /// # Safety
    ///
    /// The caller locks and unlocks it only while no thread uses this lock.
    #[inline]
    pub const unsafe fn raw(&self) -> &R {
        self.raw.raw().inner()
    }
}

impl<R: RawLock<Token = ()>, I: ThreadId, T: ?Sized> ReentrantLock<R, I, T> {
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn acquire(&self) {
        if self.raw.lock_again() {
            return;
        }
        let (queue, attempt) = (|| self.raw.is_contended(), || self.raw.try_lock_first());
        (self.raw).acquire(How::of::<R>(), 0, queue, attempt, || self.raw.lock_first());
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn attempt(&self) -> Option<()> {
        if self.raw.lock_again() {
            return Some(());
        }
        let queue = || self.raw.is_contended();
        (self.raw).attempt(How::of::<R>(), queue, || self.raw.try_lock_first())
    }

    /// Acquires the lock, and waits as long as necessary, unless the thread has it already.
    ///
    /// # Panics
    ///
    /// If the thread has 2^32 guards of the lock.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn lock(&self) -> ReentrantGuard<'_, R, I, T> {
        self.acquire();
        // SAFETY: just acquired.
        unsafe { Guard::new(self, ()) }
    }

    /// As [`lock`](Self::lock), if that needs no waiting.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_lock(&self) -> Option<ReentrantGuard<'_, R, I, T>> {
        self.attempt()?;
        // SAFETY: just acquired.
        Some(unsafe { Guard::new(self, ()) })
    }

    /// As [`lock`](Self::lock), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn lock_arc(self: &Arc<Self>) -> ArcReentrantGuard<R, I, T> {
        self.acquire();
        // SAFETY: just acquired.
        unsafe { Guard::new(Arc::clone(self), ()) }
    }

    /// As [`try_lock`](Self::try_lock), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_lock_arc(self: &Arc<Self>) -> Option<ArcReentrantGuard<R, I, T>> {
        self.attempt()?;
        // SAFETY: just acquired.
        Some(unsafe { Guard::new(Arc::clone(self), ()) })
    }

    /// Whether a thread holds the lock. A snapshot: it may be stale on return.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// Whether the calling thread holds the lock.
    #[inline]
    pub fn is_owned_by_current_thread(&self) -> bool {
        self.raw.is_owned_by_current_thread()
    }

    /// Whether a thread waits for the lock. A snapshot; spinning waiters may not show.
    #[inline]
    pub fn is_contended(&self) -> bool {
        self.raw.is_contended()
    }

    /// Returns a guard for an acquisition that the caller holds already, since it forgot the guard.
    ///
    /// # Safety
    ///
    /// The calling thread holds such an acquisition, and uses it for nothing else.
    #[inline]
    pub unsafe fn make_guard_unchecked(&self) -> ReentrantGuard<'_, R, I, T> {
        // SAFETY: the caller's promise.
        unsafe { Guard::new(self, ()) }
    }

    /// As [`make_guard_unchecked`](Self::make_guard_unchecked), with a guard that keeps the lock
    /// alive.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline]
    pub unsafe fn make_arc_guard_unchecked(self: &Arc<Self>) -> ArcReentrantGuard<R, I, T> {
        // SAFETY: the caller's promise.
        unsafe { Guard::new(Arc::clone(self), ()) }
    }

    /// Undoes an acquisition whose guard was forgotten.
    ///
    /// # Safety
    ///
    /// As for [`make_guard_unchecked`](Self::make_guard_unchecked); no reference to the data from
    /// that guard remains.
    #[inline]
    pub unsafe fn force_unlock(&self) {
        // SAFETY: the caller's promise.
        drop(unsafe { self.make_guard_unchecked() });
    }
}

impl<R: RawFairLock<Token = ()>, I: ThreadId, T: ?Sized> ReentrantLock<R, I, T> {
    /// As [`force_unlock`](Self::force_unlock), but the last one hands the lock off to a waiter if
    /// one sleeps.
    ///
    /// # Safety
    ///
    /// As for [`force_unlock`](Self::force_unlock).
    #[inline]
    pub unsafe fn force_unlock_fair(&self) {
        // SAFETY: the caller's promise.
        Guard::unlock_fair(unsafe { self.make_guard_unchecked() });
    }
}

impl<R: RawTimedLock<Token = ()>, I: ThreadId, T: ?Sized> ReentrantLock<R, I, T> {
    /// Reads the clock only if the lock is not free.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn acquire_until(&self, deadline: impl FnOnce() -> overlock_core::Instant) -> Option<()> {
        if self.raw.lock_again() {
            return Some(());
        }
        (self.raw).attempt_or(
            How::of::<R>(),
            || self.raw.is_contended(),
            || self.raw.try_lock_first(),
            || self.raw.lock_first_until(deadline()),
        )
    }

    /// Acquires the lock unless `timeout` passes first. Tries at least once; never gives up early.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_lock_for(&self, timeout: Duration) -> Option<ReentrantGuard<'_, R, I, T>> {
        self.acquire_until(|| deadline::after(timeout))?;
        // SAFETY: just acquired.
        Some(unsafe { Guard::new(self, ()) })
    }

    /// Acquires the lock unless `deadline` passes first. Tries at least once; never gives up early.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_lock_until(&self, deadline: Instant) -> Option<ReentrantGuard<'_, R, I, T>> {
        self.acquire_until(|| deadline::at(deadline))?;
        // SAFETY: just acquired.
        Some(unsafe { Guard::new(self, ()) })
    }

    /// As [`try_lock_for`](Self::try_lock_for), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_lock_arc_for(
        self: &Arc<Self>,
        timeout: Duration,
    ) -> Option<ArcReentrantGuard<R, I, T>> {
        self.acquire_until(|| deadline::after(timeout))?;
        // SAFETY: just acquired.
        Some(unsafe { Guard::new(Arc::clone(self), ()) })
    }

    /// As [`try_lock_until`](Self::try_lock_until), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_lock_arc_until(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Option<ArcReentrantGuard<R, I, T>> {
        self.acquire_until(|| deadline::at(deadline))?;
        // SAFETY: just acquired.
        Some(unsafe { Guard::new(Arc::clone(self), ()) })
    }
}

impl<R: ConstLock, I, T: Default> Default for ReentrantLock<R, I, T> {
    #[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
    fn default() -> Self {
        ReentrantLock::new(T::default())
    }
}

impl<R: ConstLock, I, T> From<T> for ReentrantLock<R, I, T> {
    #[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
    fn from(data: T) -> Self {
        ReentrantLock::new(data)
    }
}

impl<R: RawLock<Token = ()>, I: ThreadId, T: ?Sized + fmt::Debug> fmt::Debug
    for ReentrantLock<R, I, T>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ReentrantMutex");
        match self.try_lock() {
            Some(guard) => shown.field("data", &&*guard),
            None => shown.field("data", &format_args!("<locked>")),
        };
        shown.finish()
    }
}
