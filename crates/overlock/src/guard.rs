//! Guards: one generic type for every lock with data and every way to hold it.
//!
//! A [`Guard`] consists of a [`Place`], which holds or references the lock, and a [`Mode`], which
//! says how the acquisition shares it. The usual names are aliases:
//!
//! | name | place | mode |
//! |---|---|---|
//! | [`MutexGuard`](crate::MutexGuard) | `&Mutex<T>` | [`Exclusive`](crate::lock::Exclusive) |
//! | [`ArcMutexGuard`](crate::ArcMutexGuard) | `Arc<Mutex<T>>` | [`Exclusive`](crate::lock::Exclusive) |
//! | [`RwLockReadGuard`](crate::RwLockReadGuard) | `&RwLock<T>` | [`Read`](crate::rwlock::Read) |
//! | [`RwLockWriteGuard`](crate::RwLockWriteGuard) | `&RwLock<T>` | [`Write`](crate::rwlock::Write) |
//! | [`RwLockUpgradableReadGuard`](crate::RwLockUpgradableReadGuard) | `&RwLock<T>` | [`Upgradable`](crate::rwlock::Upgradable) |
//! | [`ReentrantMutexGuard`](crate::ReentrantMutexGuard) | `&ReentrantMutex<T>` | [`Reentrant`](crate::reentrant::Reentrant) |
//!
//! The other guards exist for `Arc` too. A guard that is [mapped](Guard::map) to a part of the data
//! is a [`MappedGuard`], or a [`MappedSharedGuard`].
//!
//! # Invariants
//!
//! - G1: while a guard lives, its lock is acquired in the guard's mode, by the thread that owns the
//!   guard. If the mode is a [`SendMode`] it may be another thread, which has handed the guard on.
//! - G2: the guard owns that acquisition's token, and nobody else has it. An operation that takes
//!   the token out either ends the guard or puts another token in before anybody sees the guard
//!   again. If the lock panics in between, that is impossible, and the process aborts.

mod fair;
mod mapped;
mod modes;
mod shared;

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::watch::{Paused, Watched};

pub use fair::Fair;
pub use mapped::MappedGuard;
pub use shared::{MappedReadGuard, MappedSharedGuard};

pub(crate) use modes::mode;

pub(crate) mod sealed {
    /// Keeps the traits of guards to this crate's types: `unsafe` code relies on their
    /// implementations.
    pub trait Sealed {}
}

/// A lock with data: [`Lock`](crate::lock::Lock), [`SharedLock`](crate::rwlock::SharedLock) or
/// [`ReentrantLock`](crate::reentrant::ReentrantLock). Sealed.
pub trait Guarded: sealed::Sealed {
    /// The lock without its data.
    type Raw;
    /// The data.
    type Data: ?Sized;

    #[doc(hidden)]
    fn parts(&self) -> (&Watched<Self::Raw>, *mut Self::Data);
}

/// How a guard keeps its lock: by a reference, or by an [`Arc`]. Sealed.
pub trait Place: sealed::Sealed {
    /// The lock without its data.
    type Raw;
    /// The data.
    type Data: ?Sized;

    #[doc(hidden)]
    fn parts(&self) -> (&Watched<Self::Raw>, *mut Self::Data);
}

/// How an acquisition shares its lock: [`Exclusive`](crate::lock::Exclusive),
/// [`Read`](crate::rwlock::Read), [`Write`](crate::rwlock::Write),
/// [`Upgradable`](crate::rwlock::Upgradable) or [`Reentrant`](crate::reentrant::Reentrant). Sealed.
pub trait Mode: sealed::Sealed {
    /// The lock without its data.
    type Raw;
    /// The token of an acquisition, which its release takes.
    type Token;

    #[doc(hidden)]
    fn acquire(raw: &Watched<Self::Raw>) -> Self::Token;

    /// # Safety
    ///
    /// `token` is that of an acquisition of `raw` in this mode, by the calling thread.
    #[doc(hidden)]
    unsafe fn release(raw: &Watched<Self::Raw>, token: Self::Token);

    /// Whether the thread is without the lock after a release.
    ///
    /// # Safety
    ///
    /// The calling thread holds `raw` in this mode.
    #[doc(hidden)]
    #[inline]
    unsafe fn is_last(_: &Watched<Self::Raw>) -> bool {
        true
    }
}

/// A [`Mode`] whose holder is alone with the data: [`Exclusive`](crate::lock::Exclusive) or
/// [`Write`](crate::rwlock::Write). Sealed.
pub trait Alone: Mode {}

/// A [`Mode`] of a lock that any thread may release, so that its guards are `Send`:
/// [`SendMutex`](crate::SendMutex), [`SendRwLock`](crate::SendRwLock). Sealed.
///
/// # Safety
///
/// Functions that ask for an acquisition by the calling thread take that of another one, too, if it
/// happens before the call.
pub unsafe trait SendMode: Mode {}

impl<L: Guarded + ?Sized> sealed::Sealed for &L {}
impl<L: Guarded + ?Sized> Place for &L {
    type Raw = L::Raw;
    type Data = L::Data;

    #[inline]
    fn parts(&self) -> (&Watched<L::Raw>, *mut L::Data) {
        Guarded::parts(*self)
    }
}

impl<L: Guarded + ?Sized> sealed::Sealed for Arc<L> {}
impl<L: Guarded + ?Sized> Place for Arc<L> {
    type Raw = L::Raw;
    type Data = L::Data;

    #[inline]
    fn parts(&self) -> (&Watched<L::Raw>, *mut L::Data) {
        Guarded::parts(&**self)
    }
}

/// An acquired lock, and access to its data; releases the lock when dropped. See the [module's
/// page](self).
///
/// A panic while a guard is alive releases the lock, no more: nothing is poisoned.
///
/// All operations but access are associated functions, not methods, so that they hide nothing of
/// the data. They are called by a name that says the mode, as in `MutexGuard::map(guard, ...)`: a
/// reader's `map` differs from a writer's.
///
/// Guards stay on the thread that acquired the lock, but for those of a
/// [`SendMutex`](crate::SendMutex) and its kind:
///
/// ```compile_fail,E0277
/// let lock = overlock::Mutex::new(0);
/// let guard = lock.lock();
/// std::thread::scope(|scope| {
///     scope.spawn(move || drop(guard));
/// });
/// ```
///
/// and do not outlive their lock, unless they hold an [`Arc`] of it:
///
/// ```compile_fail,E0597
/// let guard;
/// {
///     let lock = overlock::Mutex::new(0);
///     guard = lock.lock();
/// }
/// drop(guard);
/// ```
#[must_use = "the lock is released as soon as the guard is dropped"]
#[clippy::has_significant_drop]
pub struct Guard<P: Place<Raw = M::Raw>, M: Mode> {
    /// Nothing else depends on `P`, so that a guard's lifetime can shrink.
    place: P,
    token: ManuallyDrop<M::Token>,
    /// Makes the guard neither `Send` nor `Sync`.
    here: PhantomData<*mut ()>,
}

// SAFETY: the mode is that of a lock which any thread may release. The place's own bound says that
// its data may be used by the other thread, too: as the lock is `Sync`, the data is `Send`, and
// `Sync` where the mode shares it.
unsafe impl<P: Place<Raw = M::Raw> + Send, M: SendMode> Send for Guard<P, M> {}

// SAFETY: a shared guard gives shared access to its data and to its place (from which others can
// lock); nobody gets at the token.
unsafe impl<P: Place<Raw = M::Raw, Data: Sync> + Sync, M: Mode> Sync for Guard<P, M> {}

/// Runs `f`, which leaves a guard without its token for a while, and aborts the process if it
/// unwinds (G2). Locks panic on misuse only.
#[inline]
pub(crate) fn or_abort<V>(f: impl FnOnce() -> V) -> V {
    struct Abort;

    impl Drop for Abort {
        #[cold]
        fn drop(&mut self) {
            crate::base::unwound();
        }
    }

    let abort = Abort;
    let value = f();
    std::mem::forget(abort);
    value
}

impl<P: Place<Raw = M::Raw>, M: Mode> Guard<P, M> {
    /// # Safety
    ///
    /// `token` is that of an acquisition of `place`'s lock in mode `M` by the calling thread, and
    /// is used for nothing else.
    #[inline]
    pub(crate) unsafe fn new(place: P, token: M::Token) -> Self {
        Guard {
            place,
            token: ManuallyDrop::new(token),
            here: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn raw(&self) -> &Watched<M::Raw> {
        self.place.parts().0
    }

    #[inline]
    pub(crate) fn data(&self) -> *mut P::Data {
        self.place.parts().1
    }

    #[inline]
    pub(crate) fn place(&self) -> &P {
        &self.place
    }

    /// Ends the guard without releasing the lock.
    #[inline]
    pub(crate) fn into_parts(self) -> (P, M::Token) {
        let mut guard = ManuallyDrop::new(self);
        // SAFETY: the guard is neither used nor dropped again.
        let place = unsafe { std::ptr::read(&guard.place) };
        // SAFETY: as before; a guard has its token (G2).
        let token = unsafe { ManuallyDrop::take(&mut guard.token) };
        (place, token)
    }

    /// # Safety
    ///
    /// The guard is not used or dropped before [`put_token`](Self::put_token) has given it the
    /// token of another acquisition.
    #[inline]
    pub(crate) unsafe fn take_token(&mut self) -> M::Token {
        // SAFETY: a guard has its token (G2), and the caller keeps to the above.
        unsafe { ManuallyDrop::take(&mut self.token) }
    }

    #[inline]
    pub(crate) fn put_token(&mut self, token: M::Token) {
        self.token = ManuallyDrop::new(token);
    }

    /// Runs `f`, which consumes the token and returns another one, and a result.
    #[inline]
    pub(crate) fn with_token<V>(
        &mut self,
        f: impl FnOnce(&Watched<M::Raw>, M::Token) -> (M::Token, V),
    ) -> V {
        // SAFETY: if `f` returns the guard has a token again; if not, the process ends.
        let token = unsafe { self.take_token() };
        let (token, value) = or_abort(|| f(self.raw(), token));
        self.put_token(token);
        value
    }

    /// Releases the lock by `release`, runs `f`, and acquires the lock again, however `f` ends.
    #[inline]
    pub(crate) fn released_by<V>(
        &mut self,
        release: impl FnOnce(&Watched<M::Raw>, M::Token),
        f: impl FnOnce() -> V,
    ) -> V {
        struct Again<'a, P: Place<Raw = M::Raw>, M: Mode>(&'a mut Guard<P, M>, Option<Paused>);

        impl<P: Place<Raw = M::Raw>, M: Mode> Drop for Again<'_, P, M> {
            #[inline]
            fn drop(&mut self) {
                let raw = self.0.raw();
                let paused = self.1.take();
                let token = or_abort(|| match paused {
                    Some(paused) => paused.end(raw, || M::acquire(raw)),
                    None => M::acquire(raw),
                });
                self.0.put_token(token);
            }
        }

        // SAFETY: `again` gives the guard a token before it is seen again, or the process ends.
        let token = unsafe { self.take_token() };
        // SAFETY: the guard's own acquisition, on its thread (G1).
        let is_last = unsafe { M::is_last(self.raw()) };
        let paused = is_last.then(|| self.raw().pause());
        let again = Again(self, paused);
        or_abort(|| release(again.0.raw(), token));
        f()
    }

    /// Releases the lock, runs `f`, and acquires the lock again in the same mode, even if `f`
    /// panics. The guard is borrowed mutably, so that no reference into the data can be kept
    /// meanwhile.
    ///
    /// ```
    /// use overlock::{Mutex, MutexGuard};
    ///
    /// let lock = Mutex::new(1);
    /// let mut guard = lock.lock();
    /// MutexGuard::unlocked(&mut guard, || *lock.lock() += 1);
    /// assert_eq!(*guard, 2);
    /// ```
    #[inline]
    pub fn unlocked<F, U>(s: &mut Self, f: F) -> U
    where
        F: FnOnce() -> U,
    {
        s.released_by(
            // SAFETY: the guard's own acquisition, on its thread (G1).
            |raw, token| unsafe { M::release(raw, token) },
            f,
        )
    }
}

impl<L: Guarded<Raw = M::Raw> + ?Sized, M: Mode> Guard<&L, M> {
    /// Leaves the lock acquired, for a later release without a guard. The token is for
    /// [`force_unlock`](crate::lock::Lock::force_unlock) and its kind.
    ///
    /// ```
    /// use overlock::{Mutex, MutexGuard};
    ///
    /// let lock = Mutex::new(0);
    /// let token = MutexGuard::into_token(lock.lock());
    /// assert!(lock.is_locked());
    /// // SAFETY: the guard that had the token is gone, on this thread.
    /// unsafe { lock.force_unlock(token) };
    /// assert!(!lock.is_locked());
    /// ```
    #[inline]
    pub fn into_token(s: Self) -> M::Token {
        s.into_parts().1
    }
}

impl<'a, L: Guarded<Raw = M::Raw> + ?Sized, M: Alone> Guard<&'a L, M> {
    /// Leaves the lock acquired for ever, and the data to the caller.
    #[inline]
    pub fn leak(s: Self) -> &'a mut L::Data {
        let data = s.data();
        std::mem::forget(s);
        // SAFETY: nobody will ever release the lock, so the holder stays alone with the data for as
        // long as the lock is borrowed.
        unsafe { &mut *data }
    }
}

impl<L: Guarded<Raw = M::Raw> + ?Sized, M: Mode> Guard<Arc<L>, M> {
    /// Releases the lock, and keeps the [`Arc`].
    #[inline]
    pub fn into_arc(s: Self) -> Arc<L> {
        let (lock, token) = s.into_parts();
        // SAFETY: the guard's own acquisition, on its thread (G1).
        unsafe { M::release(Guarded::parts(&*lock).0, token) };
        lock
    }
}

impl<P: Place<Raw = M::Raw>, M: Mode> Drop for Guard<P, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: a guard has its token (G2), and is not used again.
        let token = unsafe { self.take_token() };
        // SAFETY: the guard's own acquisition, on its thread (G1).
        unsafe { M::release(self.raw(), token) };
    }
}

impl<P: Place<Raw = M::Raw>, M: Mode> Deref for Guard<P, M> {
    type Target = P::Data;

    #[inline]
    fn deref(&self) -> &P::Data {
        // SAFETY: while the guard lives (G1) nobody else has a mutable reference to the data.
        unsafe { &*self.data() }
    }
}

impl<P: Place<Raw = M::Raw>, M: Alone> DerefMut for Guard<P, M> {
    #[inline]
    fn deref_mut(&mut self) -> &mut P::Data {
        // SAFETY: the holder is alone with the data (G1), and the guard itself is borrowed mutably.
        unsafe { &mut *self.data() }
    }
}

impl<P: Place<Raw = M::Raw, Data: fmt::Debug>, M: Mode> fmt::Debug for Guard<P, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<P: Place<Raw = M::Raw, Data: fmt::Display>, M: Mode> fmt::Display for Guard<P, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
