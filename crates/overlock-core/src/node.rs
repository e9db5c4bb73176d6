//! Queue nodes: where a thread waits.
//!
//! A thread owns one [`Slot`] while it lives, with one [`Node`] for each of the four
//! contexts that can nest in it: its ordinary code and up to three signal handlers, each
//! interrupting the one before. Slots are immortal and type-stable: a thread that exits
//! leaves its slot to the next one, and a late kick or a stale look meets a node,
//! never freed memory.
//!
//! More threads alive than slots, or a fifth context: [`NodeGuard::new`] answers `None`, and each lock
//! has a way to wait without a node that is still correct, only slower
//! ([`Event::LockNoNode`](crate::stat::Event::LockNoNode) counts it).
//!
//! | field | who writes it, and when |
//! |---|---|
//! | `Slot::busy` | the owning thread and the handlers that interrupt it, claiming and releasing contexts |
//! | `Slot::depth`, `Slot::spare` | the owning thread and the handlers that interrupt it: `fast_queue`'s contexts, and the ticket that each brings to its next lock (0: its first own one) |
//! | `Node::next` | the successor in the queue, once |
//! | `Node::wait` | the predecessor (or the owner), handing the lock or the head of the queue over |
//! | `Node::state` | the waiter and its waker |
//! | `Node::kicks` | whoever kicks the waiter through it: one more; never set back |
//! | `Node::kicked_at` | the kicker: when that was, where statistics are on |
//! | `Node::cancel` | the waiter: the address of the token whose cancellation shall kick it, or 0 |
//! | `Slot::reading` | the owning thread: the reader-writer locks that it holds visibly, by their ids; whoever waits for one of them: that it does |
//! | `Node::info`, `Node::lock` | the waiter before it publishes the node, and in sleeping locks then whoever holds the guard of its list; meaning by lock |

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use crate::platform::{Atomic, Platform};

pub use crate::platform::CONTEXTS;
pub use crate::slot::{MAX_SLOTS, Node, NodeId};

impl NodeId {
    /// The node itself.
    ///
    /// # Panics
    ///
    /// Where the platform has no such slot: the name comes from a corrupted lock.
    #[inline]
    pub fn node<P: Platform>(self) -> &'static Node<P> {
        &P::tables().slots[self.slot()].nodes[self.context()]
    }
}

/// The right to use a node of the calling thread, until dropped.
///
/// Not `Send`: the context belongs to the thread that claimed it.
#[derive(Debug)]
pub struct NodeGuard<P: Platform> {
    id: NodeId,
    _own: PhantomData<(*mut (), P)>,
}

impl<P: Platform> NodeGuard<P> {
    /// Claims the lowest free context of the calling thread; `None` where it has no slot, or where
    /// all four are in use.
    #[inline]
    pub fn new() -> Option<Self> {
        let slot = P::slot()?;
        let busy = &P::tables().slots[slot].busy;
        loop {
            let context = busy.load(Relaxed).trailing_ones() as usize;
            if context >= CONTEXTS {
                return None;
            }
            // A handler that runs between the load and this may keep a context beyond its return
            // (it forgot a guard); the exchange notices. Relaxed: only this thread and what
            // interrupts it ever meet here while the thread lives.
            if busy.fetch_or(1 << context, Relaxed) & 1 << context == 0 {
                return Some(NodeGuard {
                    id: NodeId::new(slot, context),
                    _own: PhantomData,
                });
            }
        }
    }

    /// The claimed node's name.
    #[inline]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// The claimed node.
    #[inline]
    pub fn node(&self) -> &'static Node<P> {
        self.id.node()
    }
}

impl<P: Platform> Drop for NodeGuard<P> {
    #[inline]
    fn drop(&mut self) {
        // Release, pairing with the acquire of whoever takes the slot over after this thread's
        // exit: all use of the node lies before.
        P::tables().slots[self.id.slot()]
            .busy
            .fetch_and(!(1 << self.id.context()), Release);
    }
}

/// Sets bits in words to hand out small numbers: slots to threads, tickets to locks. Lock-free,
/// so usable from signal handlers and across fork.
#[derive(Debug)]
pub struct Bitmap<'a, A>(pub &'a [A]);

impl<A: Atomic<u64>> Bitmap<'_, A> {
    /// Takes the lowest clear bit below `limit` that it finds; `None` where all are set.
    pub fn take(&self, limit: usize) -> Option<usize> {
        for (index, word) in self.0.iter().enumerate() {
            let mut seen = word.load(Relaxed);
            while seen != u64::MAX {
                let bit = seen.trailing_ones() as usize;
                let number = index * 64 + bit;
                if number >= limit {
                    return None;
                }
                // Acquire pairs with the release in `give`: what the last holder did lies before.
                seen = word.fetch_or(1 << bit, AcqRel);
                if seen & 1 << bit == 0 {
                    return Some(number);
                }
            }
        }
        None
    }

    /// Gives `number` back.
    ///
    /// # Panics
    ///
    /// Where `number` lies outside the bitmap. In debug builds and with the `checked` feature also
    /// where it was not taken.
    pub fn give(&self, number: usize) {
        let old = self.0[number / 64].fetch_and(!(1 << (number % 64)), AcqRel);
        crate::check!(
            old & 1 << (number % 64) != 0,
            "number {number} was given back twice"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::watch::{Access, Watch, before, left, watch};

    /// A handler runs between the look and the exchange, and keeps the context that was free. Fails
    /// where `NodeGuard::new` does not look at what the exchange found.
    #[test]
    fn a_context_that_a_handler_keeps_is_not_claimed_twice() {
        let guard = NodeGuard::<Watch>::new;
        watch(&Watch::tables().slots[0].busy);
        before(Access::Or, move || core::mem::forget(guard()));
        let outer = guard().unwrap();
        assert_eq!(outer.id(), NodeId::new(0, 1));
        // The same with the last one.
        let third = guard().unwrap();
        before(Access::Or, move || core::mem::forget(guard()));
        assert!(guard().is_none());
        drop((outer, third));
        assert_eq!(guard().unwrap().id(), NodeId::new(0, 1));
        assert_eq!(left(), 0);
    }
}
