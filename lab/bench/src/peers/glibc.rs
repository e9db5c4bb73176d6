//! glibc's locks, called as C programs call them.

pub mod condvar;
pub mod rw;

use std::cell::UnsafeCell;

use crate::lock::{BenchLock, CreateError};

/// A mutex of one of glibc's kinds.
///
/// It is moved into place between its creation and its first use. Statically initialised mutexes
/// hold no address, so that is the same as initialising them where they end up.
macro_rules! mutex {
    ($($(#[$doc:meta])* $name:ident = $initializer:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name(UnsafeCell<libc::pthread_mutex_t>);

        // SAFETY: pthread mutexes are made to be shared; the cell is only passed to pthread calls.
        unsafe impl Sync for $name {}

        // SAFETY: a mutex moves only while it is not in use (`self` by value), and holds no
        // address.
        unsafe impl Send for $name {}

        impl BenchLock for $name {
            type Guard<'a> = MutexGuard<'a>;

            fn create() -> Result<Self, CreateError> {
                Ok(Self(UnsafeCell::new($initializer)))
            }

            #[inline]
            fn lock(&self) -> MutexGuard<'_> {
                // SAFETY: the mutex is initialised and, borrowed, stays where it is.
                let status = unsafe { libc::pthread_mutex_lock(self.0.get()) };
                debug_assert_eq!(status, 0);
                MutexGuard(&self.0)
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: initialised, and no guard borrows it any more.
                unsafe { libc::pthread_mutex_destroy(self.0.get()) };
            }
        }
    )*};
}

mutex! {
    /// `pthread_mutex_t` with default attributes.
    Default = libc::PTHREAD_MUTEX_INITIALIZER;
    /// `pthread_mutex_t` of the kind `PTHREAD_MUTEX_ADAPTIVE_NP`, which spins before it sleeps.
    Adaptive = libc::PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
}

/// Unlocks its mutex when dropped.
#[derive(Debug)]
pub struct MutexGuard<'a>(&'a UnsafeCell<libc::pthread_mutex_t>);

impl Drop for MutexGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: only `lock` makes guards; they stay with the thread that locked, since
        // `&UnsafeCell` is not Send.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

/// `pthread_spinlock_t`.
#[derive(Debug)]
#[repr(transparent)]
pub struct SpinLock(UnsafeCell<libc::pthread_spinlock_t>);

// SAFETY: pthread spinlocks are made to be shared; the cell is only passed to pthread calls.
unsafe impl Sync for SpinLock {}

impl BenchLock for SpinLock {
    type Guard<'a> = SpinGuard<'a>;

    fn create() -> Result<Self, CreateError> {
        let lock = UnsafeCell::new(0);
        // SAFETY: `lock` is ours alone. It moves afterwards, while unused: in glibc the type is an
        // integer that holds the lock's state and no address.
        let status = unsafe { libc::pthread_spin_init(lock.get(), libc::PTHREAD_PROCESS_PRIVATE) };
        if status == 0 {
            Ok(Self(lock))
        } else {
            Err(CreateError(
                std::io::Error::from_raw_os_error(status).to_string(),
            ))
        }
    }

    #[inline]
    fn lock(&self) -> SpinGuard<'_> {
        // SAFETY: initialised by `create`.
        let status = unsafe { libc::pthread_spin_lock(self.0.get()) };
        debug_assert_eq!(status, 0);
        SpinGuard(&self.0)
    }
}

/// Unlocks its spinlock when dropped.
#[derive(Debug)]
pub struct SpinGuard<'a>(&'a UnsafeCell<libc::pthread_spinlock_t>);

impl Drop for SpinGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: only `lock` makes guards, and each is dropped once.
        unsafe { libc::pthread_spin_unlock(self.0.get()) };
    }
}
