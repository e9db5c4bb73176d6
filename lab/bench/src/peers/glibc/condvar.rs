//! `pthread_cond_t`, with a mutex of either kind.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;

use super::MutexGuard;
use crate::lock::{BenchCondvar, BenchLock, CreateError, Held};

/// A condition variable that is used with mutexes of type `M`.
pub struct Condvar<M> {
    condvar: UnsafeCell<libc::pthread_cond_t>,
    mutex: PhantomData<fn() -> M>,
}

// SAFETY: condition variables are made to be shared; the cell is only passed to pthread calls.
unsafe impl<M> Sync for Condvar<M> {}

// SAFETY: it moves only while it is not in use (`self` by value). It holds no address: glibc learns
// the mutex at each wait.
unsafe impl<M> Send for Condvar<M> {}

impl<M> BenchCondvar for Condvar<M>
where
    M: for<'a> BenchLock<Guard<'a> = MutexGuard<'a>>,
{
    type Mutex = M;

    fn create() -> Result<Self, CreateError> {
        Ok(Self {
            condvar: UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER),
            mutex: PhantomData,
        })
    }

    #[inline]
    fn wait<'a>(&self, guard: Held<'a, Self>) -> Held<'a, Self> {
        // SAFETY: both are initialised and, borrowed, stay where they are; the guard says that this
        // thread holds the mutex, as it does again afterwards.
        let status = unsafe { libc::pthread_cond_wait(self.condvar.get(), guard.0.get()) };
        debug_assert_eq!(status, 0);
        guard
    }

    #[inline]
    fn notify_one(&self) {
        // SAFETY: initialised and, borrowed, where it stays.
        unsafe { libc::pthread_cond_signal(self.condvar.get()) };
    }

    #[inline]
    fn notify_all(&self) {
        // SAFETY: as in `notify_one`.
        unsafe { libc::pthread_cond_broadcast(self.condvar.get()) };
    }
}

impl<M> Drop for Condvar<M> {
    fn drop(&mut self) {
        // SAFETY: initialised, and without waiters, since no reference is left.
        unsafe { libc::pthread_cond_destroy(self.condvar.get()) };
    }
}

impl<M> fmt::Debug for Condvar<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
