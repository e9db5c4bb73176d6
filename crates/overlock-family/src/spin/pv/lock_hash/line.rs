//! The table's cache lines: plain data.

use core::sync::atomic::Ordering::Release;

use overlock_core::platform::CONTEXTS;
use overlock_core::platform::{Atomic, Zero, clear};
use overlock_core::platform::{Atomics, ConstAtomics};

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
    /// An empty line.
    pub(crate) fn new() -> Self {
        Line(core::array::from_fn(|_| Bucket {
            lock: A::Usize::new(0),
            node: A::U32::new(0),
        }))
    }

    /// After fork() in the child: forgets sleepers, which exist only in the parent.
    pub(crate) fn forget(&self) {
        clear(self.0.iter().map(|bucket| &bucket.lock));
    }
}

impl<A: ConstAtomics> Line<A> {
    /// An empty line, for statics: all zero bytes, so a table takes no space in the program's file.
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new line, as intended
    pub(crate) const INIT: Self = Line(
        [const {
            Bucket {
                lock: Zero::ZERO,
                node: Zero::ZERO,
            }
        }; CONTEXTS],
    );
}

impl<A: Atomics> Bucket<A> {
    /// Takes the entry out.
    pub(crate) fn clear(&self) {
        // HF: (lock, node) -> empty. Release, pairs with HT.
        self.lock.store(0, Release);
    }
}
