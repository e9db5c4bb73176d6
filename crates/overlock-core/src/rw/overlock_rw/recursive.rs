//! Readers that may read what they read already: single acquisitions of [`OverlockRw`], and a lock
//! all of whose readers are such.

use core::sync::atomic::Ordering::Relaxed;

use super::{OverlockRw, Passing, READER, READERS, Refused, UPGRADING, counted};
use crate::platform::{Atomic, Deadline, FutexPlatform, Platform};
use crate::raw::{
    ConstLock, RawDowngradeRwLock, RawFairRwLock, RawForkRwLock, RawRecursiveRwLock, RawRwLock,
    RawTimedRwLock, RawUpgradeRwLock, forward,
};

// SAFETY: I1 holds for readers that barge, too.
unsafe impl<P: FutexPlatform> RawRecursiveRwLock for OverlockRw<P> {
    fn read_recursive(&self) {
        counted(self.read_passing(Passing::AtOnce, None));
    }

    fn try_read_recursive(&self) -> Option<()> {
        self.try_read_passing(Passing::AtOnce).ok()
    }

    fn read_recursive_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        let result = self.read_passing(Passing::AtOnce, Some(deadline.into()));
        (result != Err(Refused::Late)).then(|| counted(result))
    }
}

impl<P: FutexPlatform> OverlockRw<P> {
    /// Whether the caller, which reads, is the only reader beside one that upgrades.
    pub fn is_sole_reader(&self) -> bool {
        let word = self.word.load(Relaxed);
        let upgrader = if word & UPGRADING != 0 { READER } else { 0 };
        word & READERS == READER + upgrader
    }
}

/// An [`OverlockRw`] whose readers wait only for the thread that writes, not for threads that want
/// to: so a thread may read what it reads already, and writers may starve. An upgrade waits for
/// readers that come meanwhile, too.
#[derive(Debug)]
pub struct RecursiveRw<P: Platform>(OverlockRw<P>);

impl<P: Platform> RecursiveRw<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        RecursiveRw(OverlockRw::new())
    }
}

impl<P: Platform> Default for RecursiveRw<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> ConstLock for RecursiveRw<P> {
    const INIT: Self = Self::new();
}

// SAFETY: as for `OverlockRw`; so below.
unsafe impl<P: FutexPlatform> RawRwLock for RecursiveRw<P> {
    type Read = ();
    type Write = ();

    const NAME: &'static str = "recursive_rw";
    const IS_RECURSIVE: bool = true;

    #[inline]
    fn read(&self) {
        if !self.0.enter() {
            self.0.read_recursive();
        }
    }

    fn try_read(&self) -> Option<()> {
        self.0.try_read_recursive()
    }

    forward! {
        methods RawRwLock
    }
}

// SAFETY: as above.
unsafe impl<P: FutexPlatform> RawTimedRwLock for RecursiveRw<P> {
    fn read_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.0.read_recursive_until(deadline)
    }

    fn write_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.0.write_until(deadline)
    }
}

// SAFETY: as above.
unsafe impl<P: FutexPlatform> RawFairRwLock for RecursiveRw<P> {
    forward! {
        methods RawFairRwLock
    }

    /// Does nothing while there are other readers, of which the caller may be one.
    unsafe fn bump_read(&self, (): ()) {
        if self.0.is_contended() && self.0.is_sole_reader() {
            // SAFETY: as above.
            unsafe { self.0.unlock_read_fair(()) };
            // Behind the writer: the thread reads nothing any more for which that would wait.
            self.0.read();
        }
    }
}

forward! {
    impl [P: FutexPlatform] RawRecursiveRwLock for RecursiveRw<P>;
    impl [P: FutexPlatform] RawDowngradeRwLock for RecursiveRw<P>;
    impl [P: FutexPlatform] RawUpgradeRwLock for RecursiveRw<P>;
    impl [P: FutexPlatform] RawForkRwLock for RecursiveRw<P>;
}
