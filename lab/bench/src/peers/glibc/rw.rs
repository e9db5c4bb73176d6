//! `pthread_rwlock_t`, of the kinds that differ.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

use crate::lock::{BenchRwLock, CreateError};

/// `PTHREAD_RWLOCK_PREFER_READER_NP` in glibc's `pthread.h`: the default.
const PREFER_READER: libc::c_int = 0;
/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`. The kind without NONRECURSIVE prefers readers as
/// well.
const PREFER_WRITER: libc::c_int = 2;

/// A reader-writer lock of one of glibc's kinds.
#[derive(Debug)]
#[repr(transparent)]
pub struct RwLock<const KIND: libc::c_int>(UnsafeCell<libc::pthread_rwlock_t>);

/// With default attributes: readers come first.
pub type Default = RwLock<PREFER_READER>;

/// Of the kind that lets no more readers in while a writer waits.
pub type Writer = RwLock<PREFER_WRITER>;

// SAFETY: pthread locks are made to be shared; the cell is only passed to pthread calls.
unsafe impl<const KIND: libc::c_int> Sync for RwLock<KIND> {}

// SAFETY: a lock moves only while it is not in use (`self` by value), and holds no address.
unsafe impl<const KIND: libc::c_int> Send for RwLock<KIND> {}

impl<const KIND: libc::c_int> BenchRwLock for RwLock<KIND> {
    type Read<'a> = Guard<'a>;
    type Write<'a> = Guard<'a>;

    fn create() -> Result<Self, CreateError> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the call initialises what the pointer points at.
        check(unsafe { libc::pthread_rwlockattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: initialised above.
        check(unsafe { libc::pthread_rwlockattr_setkind_np(attributes.as_mut_ptr(), KIND) })?;
        let lock = UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER);
        // SAFETY: `lock` is ours alone. It moves afterwards, while unused: glibc's lock is words of
        // state and holds no address.
        check(unsafe { libc::pthread_rwlock_init(lock.get(), attributes.as_ptr()) })?;
        // SAFETY: initialised above; the lock has copied what it needs.
        check(unsafe { libc::pthread_rwlockattr_destroy(attributes.as_mut_ptr()) })?;
        Ok(Self(lock))
    }

    #[inline]
    fn read(&self) -> Guard<'_> {
        // SAFETY: the lock is initialised and, borrowed, stays where it is.
        let status = unsafe { libc::pthread_rwlock_rdlock(self.0.get()) };
        debug_assert_eq!(status, 0);
        Guard(&self.0)
    }

    #[inline]
    fn write(&self) -> Guard<'_> {
        // SAFETY: as in `read`.
        let status = unsafe { libc::pthread_rwlock_wrlock(self.0.get()) };
        debug_assert_eq!(status, 0);
        Guard(&self.0)
    }
}

impl<const KIND: libc::c_int> Drop for RwLock<KIND> {
    fn drop(&mut self) {
        // SAFETY: initialised, and no guard borrows it any more.
        unsafe { libc::pthread_rwlock_destroy(self.0.get()) };
    }
}

fn check(status: libc::c_int) -> Result<(), CreateError> {
    match status {
        0 => Ok(()),
        error => Err(CreateError(io::Error::from_raw_os_error(error).to_string())),
    }
}

/// Unlocks its lock when dropped: one call for readers and writers.
#[derive(Debug)]
pub struct Guard<'a>(&'a UnsafeCell<libc::pthread_rwlock_t>);

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: only `read` and `write` make guards; they stay with the thread that locked, since
        // `&UnsafeCell` is not Send.
        unsafe { libc::pthread_rwlock_unlock(self.0.get()) };
    }
}
