//! Guards of a part of data that the holder shares.

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;

use overlock_core::raw::{RawLock, RawRwLock, ThreadId};

use super::mapped::Held;
use super::{Guard, Guarded, Mode, SendMode};
use crate::reentrant::Reentrant;
use crate::rwlock::Read;

/// An acquired lock, and shared access to a part of its data; releases the lock when dropped.
///
/// Made by `map` and its kind of a guard without mutable access.
/// [`MappedRwLockReadGuard`](crate::MappedRwLockReadGuard) and
/// [`MappedReentrantMutexGuard`](crate::MappedReentrantMutexGuard) are aliases.
#[must_use = "the lock is released as soon as the guard is dropped"]
#[clippy::has_significant_drop]
pub struct MappedSharedGuard<'a, T: ?Sized, M: Mode> {
    pub(super) held: Held<'a, M>,
    /// Covariant in `T`, and not `Send` by itself.
    part: NonNull<T>,
}

/// A reader's guard of a part of the data.
pub type MappedReadGuard<'a, R, T> = MappedSharedGuard<'a, T, Read<R>>;

// SAFETY: the mode is that of a lock which any thread may release, and the part may be shared.
unsafe impl<T: ?Sized + Sync, M: SendMode<Raw: Sync>> Send for MappedSharedGuard<'_, T, M> {}

// SAFETY: a shared guard gives shared access to the part, and to nothing else.
unsafe impl<T: ?Sized + Sync, M: Mode<Raw: Sync>> Sync for MappedSharedGuard<'_, T, M> {}

/// The methods of a guard of the mode, which compilers cannot tell from one with mutable access.
macro_rules! map {
    ($mode:ident<$($param:ident: $bound:path),+>) => {
        impl<'a, L, $($param: $bound),+> Guard<&'a L, $mode<$($param),+>>
        where
            L: Guarded<Raw = <$mode<$($param),+> as Mode>::Raw> + ?Sized,
            $mode<$($param),+>: Mode,
        {
            /// Narrows the guard down to a part of the data. If `f` panics the lock is released.
            #[inline]
            pub fn map<U: ?Sized, F>(s: Self, f: F) -> MappedSharedGuard<'a, U, $mode<$($param),+>>
            where
                F: FnOnce(&L::Data) -> &U,
            {
                let part = NonNull::from(f(&s));
                MappedSharedGuard { held: Held::of(s), part }
            }

            /// As [`map`](Self::map), for a part that may be missing.
            ///
            /// # Errors
            ///
            /// The guard itself, where `f` returns `None`.
            #[inline]
            pub fn try_map<U: ?Sized, F>(
                s: Self,
                f: F,
            ) -> Result<MappedSharedGuard<'a, U, $mode<$($param),+>>, Self>
            where
                F: FnOnce(&L::Data) -> Option<&U>,
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
            ) -> Result<MappedSharedGuard<'a, U, $mode<$($param),+>>, (Self, E)>
            where
                F: FnOnce(&L::Data) -> Result<&U, E>,
            {
                match f(&s).map(NonNull::from) {
                    Ok(part) => Ok(MappedSharedGuard { held: Held::of(s), part }),
                    Err(error) => Err((s, error)),
                }
            }
        }
    };
}

map!(Read<R: RawRwLock>);
map!(Reentrant<R: RawLock<Token = ()>, I: ThreadId>);

impl<'a, T: ?Sized, M: Mode> MappedSharedGuard<'a, T, M> {
    /// Narrows the guard down further. If `f` panics the lock is released.
    #[inline]
    pub fn map<U: ?Sized, F>(s: Self, f: F) -> MappedSharedGuard<'a, U, M>
    where
        F: FnOnce(&T) -> &U,
    {
        let part = NonNull::from(f(&s));
        MappedSharedGuard { held: s.held, part }
    }

    /// As [`map`](Self::map), for a part that may be missing.
    ///
    /// # Errors
    ///
    /// The guard itself, where `f` returns `None`.
    #[inline]
    pub fn try_map<U: ?Sized, F>(s: Self, f: F) -> Result<MappedSharedGuard<'a, U, M>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
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
    ) -> Result<MappedSharedGuard<'a, U, M>, (Self, E)>
    where
        F: FnOnce(&T) -> Result<&U, E>,
    {
        match f(&s).map(NonNull::from) {
            Ok(part) => Ok(MappedSharedGuard { held: s.held, part }),
            Err(error) => Err((s, error)),
        }
    }

    /// [`try_map_or_err`](Self::try_map_or_err), by the name that lock_api 0.4 has for it here.
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn try_map_or_else<U: ?Sized, F, E>(
        s: Self,
        f: F,
    ) -> Result<MappedSharedGuard<'a, U, M>, (Self, E)>
    where
        F: FnOnce(&T) -> Result<&U, E>,
    {
        Self::try_map_or_err(s, f)
    }
}

impl<T: ?Sized, M: Mode> Deref for MappedSharedGuard<'_, T, M> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: while somebody shares the data, nobody has a mutable reference to it.
        unsafe { self.part.as_ref() }
    }
}

impl<T: ?Sized + fmt::Debug, M: Mode> fmt::Debug for MappedSharedGuard<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display, M: Mode> fmt::Display for MappedSharedGuard<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
