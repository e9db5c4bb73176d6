//! The read locks of a thread, which writers look through: plain data.

use core::sync::atomic::Ordering::Relaxed;

use crate::platform::atomic::{Atomic, Zero, clear};
use crate::platform::atomics::{Atomics, ConstAtomics};

/// The read locks that a thread holds without having written to them, on a line of its own: its
/// owner writes it often, and only writers of such locks read it.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Reading<A: Atomics>(pub(crate) [Entry<A>; READING]);

/// One of them: see [`percpu_rwsem`](crate::rw::percpu_rwsem).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Entry<A: Atomics> {
    /// Its id, or 0.
    pub(crate) lock: A::U32,
    /// How many writers sleep, or are about to, until the entry names another.
    pub(crate) waited: A::U32,
}

/// Read locks that a thread can hold at a time without having written to them.
pub(crate) const READING: usize = 8;

impl<A: Atomics> Reading<A> {
    pub(crate) fn new() -> Self {
        Reading(core::array::from_fn(|_| Entry {
            lock: A::U32::new(0),
            waited: A::U32::new(0),
        }))
    }

    /// Whether no entry names a lock.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|entry| entry.lock.load(Relaxed) == 0)
    }

    /// After fork() in the child: forgets the locks too, which a thread of the parent has read.
    pub(crate) fn forget(&self) {
        clear(self.0.iter().map(|entry| &entry.lock));
        self.forget_writers();
    }

    /// After fork() in the child: forgets writers, which exist only in the parent.
    pub(crate) fn forget_writers(&self) {
        clear(self.0.iter().map(|entry| &entry.waited));
    }
}

impl<A: ConstAtomics> Reading<A> {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new table, as intended
    pub(crate) const INIT: Self = Reading(
        [const {
            Entry {
                lock: Zero::ZERO,
                waited: Zero::ZERO,
            }
        }; READING],
    );
}

/// The last id that was given to a lock, on a cache line of its own; 0 at first.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct ReaderIds<A: Atomics>(pub(crate) A::U32);

impl<A: Atomics> ReaderIds<A> {
    pub(crate) fn new() -> Self {
        ReaderIds(A::U32::new(0))
    }
}

impl<A: ConstAtomics> ReaderIds<A> {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new one, as intended
    pub(crate) const INIT: Self = ReaderIds(Zero::ZERO);
}
