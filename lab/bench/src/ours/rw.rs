//! This project's reader-writer locks.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use overlock_core::raw::RawRwLock;

use crate::lock::{BenchRwLock, CreateError};

/// Any reader-writer lock of ours.
#[derive(Debug)]
pub struct Ours<L>(L);

impl<L: RawRwLock> BenchRwLock for Ours<L> {
    type Read<'a> = ReadGuard<'a, L>;
    type Write<'a> = WriteGuard<'a, L>;

    fn create() -> Result<Self, CreateError> {
        Ok(Ours(L::INIT))
    }

    #[inline]
    fn read(&self) -> ReadGuard<'_, L> {
        ReadGuard {
            lock: &self.0,
            token: ManuallyDrop::new(self.0.read()),
            here: PhantomData,
        }
    }

    #[inline]
    fn write(&self) -> WriteGuard<'_, L> {
        WriteGuard {
            lock: &self.0,
            token: ManuallyDrop::new(self.0.write()),
            here: PhantomData,
        }
    }
}

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $token:ident, $unlock:ident) => {
        $(#[$doc])*
        pub struct $name<'a, L: RawRwLock> {
            lock: &'a L,
            token: ManuallyDrop<L::$token>,
            /// Not Send: a lock is released by the thread that acquired it.
            here: PhantomData<*const ()>,
        }

        impl<L: RawRwLock> Drop for $name<'_, L> {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the token is not used after this: the guard is being dropped.
                let token = unsafe { ManuallyDrop::take(&mut self.token) };
                // SAFETY: only the acquisition that goes with this release makes such guards, and
                // on this thread, since the guard is not Send.
                unsafe { self.lock.$unlock(token) };
            }
        }

        impl<L: RawRwLock> fmt::Debug for $name<'_, L> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("lock", &L::NAME)
                    .finish_non_exhaustive()
            }
        }
    };
}

guard! {
    /// Releases a reader's acquisition when dropped.
    ReadGuard, Read, unlock_read
}

guard! {
    /// Releases a writer's acquisition when dropped.
    WriteGuard, Write, unlock_write
}
