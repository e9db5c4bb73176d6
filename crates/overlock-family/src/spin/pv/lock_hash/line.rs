//! The table's cache lines: plain data.

use core::sync::atomic::Ordering::Release;

use overlock_core::platform::{Atomic, Atomics, CONTEXTS, clear};

/// One line of the table: as many buckets as a slot has nodes.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Line<A: Atomics>(pub(super) [Bucket<A>; CONTEXTS]);

/// One entry: empty where `lock` is 0.
#[derive(Debug)]
pub(crate) struct Bucket<A: Atomics> {
    pub(super) lock: A::Usize,
    pub(super) node: A::U32,
}

impl<A: Atomics> Line<A> {
    /// An empty line: all zero bytes, so a static table takes no space in the program's file.
    pub(crate) const fn new() -> Self {
        Line(
            [const {
                Bucket {
                    lock: Atomic::ZERO,
                    node: Atomic::ZERO,
                }
            }; CONTEXTS],
        )
    }

    /// After fork() in the child: forgets sleepers, which exist only in the parent.
    pub(crate) fn forget(&self) {
        clear(self.0.iter().map(|bucket| &bucket.lock));
    }
}

impl<A: Atomics> Bucket<A> {
    /// Takes the entry out.
    pub(crate) fn clear(&self) {
        // HF: (lock, node) -> empty. Release, pairs with HT.
        self.lock.store(0, Release);
    }
}
