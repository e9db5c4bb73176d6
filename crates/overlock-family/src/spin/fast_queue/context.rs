//! The context of a thread, and with it the spare ticket, that an acquisition uses.
//!
//! A thread's ordinary code is a context with a spare of its own, and so is each handler that
//! interrupts it or another handler. The contexts of a thread are numbered by depth. A context is
//! in use only while it locks, not while it holds: its spare is back before the acquisition
//! returns. A handler that interrupts it enters and leaves in between, so entering and leaving are
//! plain loads and stores.
//!
//! There is no `Drop`. A handler may never return (it unwinds, or jumps out) in the middle of an
//! acquisition. The depth then stays as it was, and the ticket that is still in a queue is never
//! used as a spare again. The thread has one context less; nothing else is lost.

use core::sync::atomic::Ordering::{self, Relaxed};
use core::sync::atomic::compiler_fence;

use super::tickets::{Contexts, TicketId};
use overlock_core::node::CONTEXTS;
use overlock_core::platform::Atomic;

use crate::tables::FamilyPlatform;

/// A context of the calling thread in the middle of locking.
#[derive(Debug)]
pub(super) struct Context<P: FamilyPlatform> {
    contexts: &'static Contexts<P>,
    index: usize,
    depth: usize,
}

impl<P: FamilyPlatform> Context<P> {
    /// Enters the next context; `None` where the thread has no slot or one beyond the table, or its
    /// contexts are all in the middle of locking.
    #[inline]
    pub(super) fn enter() -> Option<Self> {
        let index = P::slot()?;
        let contexts = &P::family_tables().threads.get(index)?.contexts;
        let depth = contexts.depth.load(Relaxed) as usize;
        if depth >= CONTEXTS {
            return None;
        }
        // A handler between the load and the store has put the depth back before it returns.
        contexts.depth.store(depth as u32 + 1, Relaxed);
        // FC: the spare is used only after handlers no longer use it.
        compiler_fence(Ordering::SeqCst);
        Some(Context {
            contexts,
            index,
            depth,
        })
    }

    /// The ticket with which this context queues.
    #[inline]
    pub(super) fn spare(&self) -> TicketId {
        TicketId::from_bits(self.contexts.spare[self.depth].load(Relaxed))
            .unwrap_or_else(|| TicketId::first_of(self.index, self.depth))
    }

    /// Leaves the context, with `spare` for its next use.
    #[inline]
    pub(super) fn leave(self, spare: TicketId) {
        self.contexts.spare[self.depth].store(spare.bits(), Relaxed);
        // FC: handlers may use the context again only after its spare is there.
        compiler_fence(Ordering::SeqCst);
        self.contexts.depth.store(self.depth as u32, Relaxed);
    }
}
