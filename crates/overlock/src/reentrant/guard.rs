//! The guards of a [`ReentrantLock`].

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;

use overlock_core::raw::{RawFairLock, RawLock, ThreadId};

use super::{RawReentrantMutex, ReentrantLock};
use crate::guard::{Fair, Guard, MappedSharedGuard, Mode, sealed};
use crate::watch::Watched;

/// The one mode of a [`ReentrantLock`]: shared with other guards of the same thread.
#[derive(Debug)]
pub struct Reentrant<R, I>(PhantomData<(R, I)>, Infallible);

/// The guard of a [`ReentrantLock`].
pub type ReentrantGuard<'a, R, I, T> = Guard<&'a ReentrantLock<R, I, T>, Reentrant<R, I>>;

/// The guard of a [`ReentrantLock`] which it keeps alive.
pub type ArcReentrantGuard<R, I, T> = Guard<Arc<ReentrantLock<R, I, T>>, Reentrant<R, I>>;

/// The guard of a part of a [`ReentrantLock`]'s data.
pub type MappedReentrantGuard<'a, R, I, T> = MappedSharedGuard<'a, T, Reentrant<R, I>>;

impl<R, I> sealed::Sealed for Reentrant<R, I> {}
impl<R: RawLock<Token = ()>, I: ThreadId> Mode for Reentrant<R, I> {
    type Raw = RawReentrantMutex<R, I>;
    type Token = ();

    #[inline]
    fn acquire(raw: &Watched<Self::Raw>) {
        raw.lock();
    }

    #[inline]
    unsafe fn release(raw: &Watched<Self::Raw>, (): ()) {
        // SAFETY: the caller's promise.
        let is_last = unsafe { Self::is_last(raw) };
        // SAFETY: as above.
        let unlock = || unsafe { raw.unlock() };
        match is_last {
            true => raw.release(unlock),
            false => unlock(),
        }
    }

    #[inline]
    unsafe fn is_last(raw: &Watched<Self::Raw>) -> bool {
        // SAFETY: the caller's promise.
        unsafe { raw.is_held_once() }
    }
}

impl<R: RawFairLock<Token = ()>, I: ThreadId> Fair for Reentrant<R, I> {
    #[inline]
    unsafe fn release_fair(raw: &Watched<Self::Raw>, (): ()) {
        // SAFETY: the caller's promise.
        let is_last = unsafe { Self::is_last(raw) };
        // SAFETY: as above.
        let unlock = || unsafe { raw.unlock_fair() };
        match is_last {
            true => raw.release(unlock),
            false => unlock(),
        }
    }

    #[inline]
    unsafe fn bump(raw: &Watched<Self::Raw>, (): ()) {
        // SAFETY: the caller's promise.
        let is_last = unsafe { Self::is_last(raw) };
        // SAFETY: as above.
        let bump = || unsafe { raw.bump() };
        match is_last {
            true => raw.paused(bump),
            false => bump(),
        }
    }
}

impl<'a, R: RawLock<Token = ()>, I: ThreadId, T: ?Sized> ReentrantGuard<'a, R, I, T> {
    /// Returns the guard's lock.
    #[inline]
    pub fn remutex(s: &Self) -> &'a ReentrantLock<R, I, T> {
        s.place()
    }
}

impl<R: RawLock<Token = ()>, I: ThreadId, T: ?Sized> ArcReentrantGuard<R, I, T> {
    /// Returns the guard's lock.
    #[inline]
    pub fn remutex(s: &Self) -> &Arc<ReentrantLock<R, I, T>> {
        s.place()
    }
}
