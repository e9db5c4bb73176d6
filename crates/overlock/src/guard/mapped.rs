//! Guards of a part of the data.
//!
//! They keep a pointer to the part instead of the lock. So they have no operation that releases and
//! acquires again: the part might be gone by then. The pointers are raw: a reference that is passed
//! to a function by value must stay valid until the function returns, and `drop` releases the lock
//! earlier. Raw pointers also make the guards not `Send`, as the marker of a [`Guard`] does, unless
//! the mode is a [`SendMode`].

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use super::{Alone, Fair, Guard, Guarded, Mode, SendMode};
use crate::watch::Watched;

/// An acquisition of `raw`, released when dropped.
pub(super) struct Held<'a, M: Mode> {
    raw: &'a Watched<M::Raw>,
    token: ManuallyDrop<M::Token>,
}

impl<'a, M: Mode> Held<'a, M> {
    /// Consumes a guard without a release.
    #[inline]
    pub(super) fn of<L: Guarded<Raw = M::Raw> + ?Sized>(guard: Guard<&'a L, M>) -> Self {
        let (lock, token) = guard.into_parts();
        Held {
            raw: lock.parts().0,
            token: ManuallyDrop::new(token),
        }
    }

    /// Releases in favour of waiters.
    #[inline]
    pub(super) fn release_fair(self)
    where
        M: Fair,
    {
        let mut held = ManuallyDrop::new(self);
        // SAFETY: neither `held` nor its token is used again.
        let token = unsafe { ManuallyDrop::take(&mut held.token) };
        // SAFETY: the token is that of an acquisition by this thread, or by one that has handed it
        // on.
        unsafe { M::release_fair(held.raw, token) };
    }
}

impl<M: Mode> Drop for Held<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the token is there from the beginning, and is not used again.
        let token = unsafe { ManuallyDrop::take(&mut self.token) };
        // SAFETY: it is that of an acquisition by this thread, or by one that has handed it
        // on.
        unsafe { M::release(self.raw, token) };
    }
}

/// An acquired lock, and exclusive access to a part of its data; releases the lock when dropped.
///
/// Made by [`Guard::map`] and its kind. [`MappedMutexGuard`](crate::MappedMutexGuard) and
/// [`MappedRwLockWriteGuard`](crate::MappedRwLockWriteGuard) are aliases.
#[must_use = "the lock is released as soon as the guard is dropped"]
#[clippy::has_significant_drop]
pub struct MappedGuard<'a, T: ?Sized, M: Alone> {
    pub(super) held: Held<'a, M>,
    /// A `*mut`, so that the guard is invariant in `T` (what is written through it must be exactly
    /// that), and not `Send` by itself.
    part: *mut T,
}

// SAFETY: the mode is that of a lock which any thread may release, and the part may be sent.
unsafe impl<T: ?Sized + Send, M: Alone<Raw: Sync> + SendMode> Send for MappedGuard<'_, T, M> {}

// SAFETY: a shared guard gives shared access to the part, and to nothing else.
unsafe impl<T: ?Sized + Sync, M: Alone<Raw: Sync>> Sync for MappedGuard<'_, T, M> {}

impl<'a, L: Guarded<Raw = M::Raw> + ?Sized, M: Alone> Guard<&'a L, M> {
    /// Narrows the guard down to a part of the data. If `f` panics the lock is released.
    ///
    /// ```
    /// use overlock::{Mutex, MutexGuard};
    ///
    /// let lock = Mutex::new((1, String::from("a")));
    /// let mut name = MutexGuard::map(lock.lock(), |data| &mut data.1);
    /// name.push('b');
    /// drop(name);
    /// assert_eq!(lock.into_inner().1, "ab");
    /// ```
    #[inline]
    pub fn map<U: ?Sized, F>(s: Self, f: F) -> MappedGuard<'a, U, M>
    where
        F: FnOnce(&mut L::Data) -> &mut U,
    {
        // SAFETY: the holder is alone with the data for as long as the guard, or the mapped one,
        // lives.
        let part: *mut U = f(unsafe { &mut *s.data() });
        // SAFETY: `part` was just got from the data.
        unsafe { MappedGuard::narrow(s, part) }
    }

    /// As [`map`](Self::map), for a part that may be missing.
    ///
    /// # Errors
    ///
    /// The guard itself, where `f` returns `None`.
    #[inline]
    pub fn try_map<U: ?Sized, F>(s: Self, f: F) -> Result<MappedGuard<'a, U, M>, Self>
    where
        F: FnOnce(&mut L::Data) -> Option<&mut U>,
    {
        Self::try_map_or_err(s, |data| f(data).ok_or(())).map_err(|(s, ())| s)
    }

    /// As [`try_map`](Self::try_map), where `f` also returns the reason for the absence.
    ///
    /// # Errors
    ///
    /// The guard itself and what `f` returned.
    #[inline]
    pub fn try_map_or_err<U: ?Sized, F, E>(
        s: Self,
        f: F,
    ) -> Result<MappedGuard<'a, U, M>, (Self, E)>
    where
        F: FnOnce(&mut L::Data) -> Result<&mut U, E>,
    {
        // SAFETY: as in `map`.
        let part: *mut U = match f(unsafe { &mut *s.data() }) {
            Ok(part) => part,
            Err(error) => return Err((s, error)),
        };
        // SAFETY: as in `map`.
        Ok(unsafe { MappedGuard::narrow(s, part) })
    }
}

impl<'a, T: ?Sized, M: Alone> MappedGuard<'a, T, M> {
    /// # Safety
    ///
    /// `part` is a part of `guard`'s data, and the only use of it.
    #[inline]
    unsafe fn narrow<L: Guarded<Raw = M::Raw> + ?Sized>(
        guard: Guard<&'a L, M>,
        part: *mut T,
    ) -> Self {
        MappedGuard {
            held: Held::of(guard),
            part,
        }
    }

    /// Narrows the guard down further. If `f` panics the lock is released.
    #[inline]
    pub fn map<U: ?Sized, F>(s: Self, f: F) -> MappedGuard<'a, U, M>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        // SAFETY: the holder is alone with the data, and this is the only use of the part.
        let part: *mut U = f(unsafe { &mut *s.part });
        MappedGuard { held: s.held, part }
    }

    /// As [`map`](Self::map), for a part that may be missing.
    ///
    /// # Errors
    ///
    /// The guard itself, where `f` returns `None`.
    #[inline]
    pub fn try_map<U: ?Sized, F>(s: Self, f: F) -> Result<MappedGuard<'a, U, M>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        Self::try_map_or_err(s, |data| f(data).ok_or(())).map_err(|(s, ())| s)
    }

    /// As [`try_map`](Self::try_map), where `f` also returns the reason for the absence.
    ///
    /// # Errors
    ///
    /// The guard itself and what `f` returned.
    #[inline]
    pub fn try_map_or_err<U: ?Sized, F, E>(
        s: Self,
        f: F,
    ) -> Result<MappedGuard<'a, U, M>, (Self, E)>
    where
        F: FnOnce(&mut T) -> Result<&mut U, E>,
    {
        // SAFETY: as in `map`.
        let part: *mut U = match f(unsafe { &mut *s.part }) {
            Ok(part) => part,
            Err(error) => return Err((s, error)),
        };
        Ok(MappedGuard { held: s.held, part })
    }
}

impl<T: ?Sized, M: Alone> Deref for MappedGuard<'_, T, M> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the holder is alone with the data.
        unsafe { &*self.part }
    }
}

impl<T: ?Sized, M: Alone> DerefMut for MappedGuard<'_, T, M> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the holder is alone with the data, and the guard itself is borrowed mutably.
        unsafe { &mut *self.part }
    }
}

impl<T: ?Sized + fmt::Debug, M: Alone> fmt::Debug for MappedGuard<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display, M: Alone> fmt::Display for MappedGuard<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
