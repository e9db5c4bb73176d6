//! The operations of a [`Lock`]'s guards beyond those of [every guard](crate::guard).

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;

use overlock_core::raw::{RawFairLock, RawLock};

use super::Lock;
use crate::guard::{Alone, Fair, Guard, MappedGuard, Mode, sealed};
use crate::watch;

/// The one mode of a [`Lock`]: exclusive access.
#[derive(Debug)]
pub struct Exclusive<R>(PhantomData<R>, Infallible);

/// The guard of a [`Lock`].
pub type LockGuard<'a, R, T> = Guard<&'a Lock<R, T>, Exclusive<R>>;

/// The guard of a [`Lock`] which it keeps alive.
pub type ArcLockGuard<R, T> = Guard<Arc<Lock<R, T>>, Exclusive<R>>;

/// The guard of a part of a [`Lock`]'s data.
pub type MappedLockGuard<'a, R, T> = MappedGuard<'a, T, Exclusive<R>>;

impl<R> sealed::Sealed for Exclusive<R> {}
impl<R: RawLock> Alone for Exclusive<R> {}
impl<R: RawLock> Mode for Exclusive<R> {
    type Raw = R;
    type Token = R::Token;

    #[inline]
    fn acquire(raw: &R) -> R::Token {
        raw.lock()
    }

    #[inline]
    unsafe fn release(raw: &R, token: R::Token) {
        watch::release(raw);
        // SAFETY: the caller's promise.
        unsafe { raw.unlock(token) };
    }
}

impl<R: RawFairLock> Fair for Exclusive<R> {
    #[inline]
    unsafe fn release_fair(raw: &R, token: R::Token) {
        watch::release(raw);
        // SAFETY: the caller's promise.
        unsafe { raw.unlock_fair(token) };
    }

    #[inline]
    unsafe fn bump(raw: &R, token: R::Token) -> R::Token {
        // SAFETY: the caller's promise.
        watch::paused(raw, || unsafe { raw.bump(token) })
    }
}

impl<'a, R: RawLock, T: ?Sized> Guard<&'a Lock<R, T>, Exclusive<R>> {
    /// Returns the guard's lock.
    #[inline]
    pub fn mutex(s: &Self) -> &'a Lock<R, T> {
        s.place()
    }
}

impl<R: RawLock, T: ?Sized> Guard<Arc<Lock<R, T>>, Exclusive<R>> {
    /// Returns the guard's lock.
    #[inline]
    pub fn mutex(s: &Self) -> &Arc<Lock<R, T>> {
        s.place()
    }
}
