//! This project's locks, through the traits that all of them share.

pub mod rw;
pub mod types;

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use overlock_core::raw::RawLock;

use crate::lock::{BenchLock, CreateError};

/// Any mutual-exclusion lock of ours.
#[derive(Debug)]
pub struct Ours<L>(L);

impl<L: RawLock> BenchLock for Ours<L> {
    type Guard<'a> = Guard<'a, L>;

    fn create() -> Result<Self, CreateError> {
        L::create()
            .map(Self)
            .map_err(|error| CreateError(error.to_string()))
    }

    // As in a program, whose compiler inlines the fast path into the caller.
    #[inline(always)]
    fn lock(&self) -> Guard<'_, L> {
        Guard {
            lock: &self.0,
            token: ManuallyDrop::new(self.0.lock()),
            here: PhantomData,
        }
    }
}

/// Unlocks its lock when dropped.
pub struct Guard<'a, L: RawLock> {
    lock: &'a L,
    token: ManuallyDrop<L::Token>,
    /// Not Send: a lock is released by the thread that acquired it.
    here: PhantomData<*const ()>,
}

impl<L: RawLock> Drop for Guard<'_, L> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the token is not used after this: the guard is being dropped.
        let token = unsafe { ManuallyDrop::take(&mut self.token) };
        // SAFETY: the token is from this lock's `lock`, on this thread, since the guard is not
        // Send.
        unsafe { self.lock.unlock(token) };
    }
}

impl<L: RawLock> fmt::Debug for Guard<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("lock", &L::NAME)
            .finish_non_exhaustive()
    }
}
