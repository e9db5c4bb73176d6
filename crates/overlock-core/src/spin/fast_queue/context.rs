//! Whose spare ticket an acquisition uses.
//!
//! A thread's ordinary code, and each handler that interrupts it or another handler, is a context
//! with a spare of its own; the contexts of a thread are numbered by depth. A context is in use
//! only while it locks, not while it holds: its spare is back before the acquisition returns.
//! Whatever interrupts it enters and leaves in between, so entering and leaving are plain loads and
//! stores.
//!
//! There is no `Drop`: where a handler never returns (it unwinds, or jumps out) in the middle of an
//! acquisition, the depth stays as it was, and the ticket that still stands in a queue is never
//! used as a spare again. The thread has a context less, no more.

use core::sync::atomic::Ordering::{self, Relaxed};
use core::sync::atomic::compiler_fence;

use super::tickets::TicketId;
use crate::node::CONTEXTS;
use crate::platform::{Atomic, Platform};
use crate::slot::Slot;

/// A context of the calling thread in the middle of locking.
#[derive(Debug)]
pub(super) struct Context<P: Platform> {
    slot: &'static Slot<P>,
    index: usize,
    depth: usize,
}

impl<P: Platform> Context<P> {
    /// Enters the next context; `None` where the thread has no slot, or its contexts are all in the
    /// middle of locking.
    #[inline]
    pub(super) fn enter() -> Option<Self> {
        let index = P::slot()?;
        let slot = &P::tables().slots[index];
        let depth = slot.contexts.depth.load(Relaxed) as usize;
        if depth >= CONTEXTS {
            return None;
        }
        // A handler between the load and the store has put the depth back before it returns.
        slot.contexts.depth.store(depth as u32 + 1, Relaxed);
        // FC: the spare is used only after handlers keep away from it.
        compiler_fence(Ordering::SeqCst);
        Some(Context { slot, index, depth })
    }

    /// The ticket that this context brings.
    #[inline]
    pub(super) fn spare(&self) -> TicketId {
        TicketId::from_bits(self.slot.contexts.spare[self.depth].load(Relaxed))
            .unwrap_or_else(|| TicketId::first_of(self.index, self.depth))
    }

    /// Leaves, with `spare` for the next time.
    #[inline]
    pub(super) fn leave(self, spare: TicketId) {
        self.slot.contexts.spare[self.depth].store(spare.bits(), Relaxed);
        // FC: handlers may use the context again only after its spare is there.
        compiler_fence(Ordering::SeqCst);
        self.slot.contexts.depth.store(self.depth as u32, Relaxed);
    }
}
