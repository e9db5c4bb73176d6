//! The grants of a thread: plain data. [`hemlock`](crate::spin::hemlock) says how they are used.

use overlock_core::platform::{Atomic, Atomics, CONTEXTS, clear};

/// A grant for each context, so that a handler which interrupts a handoff has one of its own.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Grants<A: Atomics> {
    /// The context whose grant the next acquisition uses: one above that of the latest handoff
    /// under way.
    pub(super) context: A::U32,
    pub(super) grants: [A::Usize; CONTEXTS],
}

impl<A: Atomics> Grants<A> {
    pub(crate) const fn new() -> Self {
        Grants {
            context: Atomic::ZERO,
            grants: [const { Atomic::ZERO }; CONTEXTS],
        }
    }

    /// After fork() in the child: no handoff of a thread that exists only in the parent goes on.
    pub(crate) fn forget(&self) {
        clear([&self.context].into_iter());
        clear(self.grants.iter());
    }
}
