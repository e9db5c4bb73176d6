//! Queue nodes: a node is where one context of one thread waits.
//!
//! A thread owns one slot while it lives, with one [`Node`] for each of the four contexts that can
//! nest in it: its ordinary code, and up to three signal handlers, each interrupting the last one.
//! Slots are immortal and type-stable: a thread that exits leaves its slot to the next one. So a
//! late kick or a stale load meets a node, never freed memory.
//!
//! [`NodeGuard::new`] returns `None` for a fifth context, and while more threads than slots are
//! alive. Each lock then has a way to wait without a node that is still correct, only slower
//! ([`Event::LockNoNode`](crate::stat::Event) counts it).
//!
//! The fields, and who writes each:
//!
//! - `Slot::busy`: the owning thread and the handlers that interrupt it, when they take and release
//!   contexts; in the bits above, the number of their [`SlotGuard`]s.
//! - `Entry::holds`: the owning thread, when it acquires and releases an object by the entry.
//! - `Entry::waited`: a thread that waits until the entry holds something else, before it sleeps
//!   and after.
//! - `Node::next`: the successor in the queue, once.
//! - `Node::wait`: the predecessor (or the owner), when it hands off the lock or the head of the
//!   queue.
//! - `Node::state`: the waiter and its waker.
//! - `Node::kicks`: a waker that kicks the waiter through it: two more, never set back; and the
//!   waiter, the lowest bit, while it sleeps.
//! - `Node::kicked_at`: the waker: the time of its kick, if statistics are on.
//! - `Node::cancel`: the waiter: the address of the token whose cancellation kicks it, or 0.
//! - `Node::jumps`: the waiter: 1 while it waits for a condition.
//! - `Node::info`, `Node::lock`: the waiter before it publishes the node; in sleeping locks
//!   afterwards the holder of the wait lock; meaning by lock.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use crate::platform::{Atomic, Platform, Spin};
use crate::stat::{self, Event};

pub use crate::platform::CONTEXTS;
use crate::slot::Slot;
pub use crate::slot::{MAX_SLOTS, MOST_SLOTS, NAME_BITS, Node, NodeId};

impl NodeId {
    /// The node itself.
    ///
    /// # Panics
    ///
    /// If the platform has no such slot. Names come from [`NodeGuard`]s, so from existing slots. A
    /// name of another slot means that a lock's memory was overwritten, or used after it was freed:
    /// see [In a kernel](crate::platform#panics).
    #[inline]
    pub fn node<P: Platform>(self) -> &'static Node<P> {
        &P::tables().slot(self.slot()).nodes[self.context()]
    }
}

/// Takes a lock without a node, and so without a place in its queue: waits until `is_free` holds
/// for the lock's `word`, and attempts. The thread may starve while others come.
#[cold]
pub fn take_without_node<P: Platform, T>(
    word: &P::U32,
    is_free: impl Fn(u32) -> bool,
    attempt: impl Fn() -> Option<T>,
) -> T {
    stat::count::<P>(Event::LockNoNode);
    loop {
        // Relaxed: the attempt acquires.
        let _ = P::wait_until(word, Relaxed, Spin::Forever, &is_free);
        if let Some(taken) = attempt() {
            return taken;
        }
    }
}

/// The right to use a node of the calling thread, until dropped.
///
/// Not `Send`: the context belongs to the thread that took it.
#[derive(Debug)]
pub struct NodeGuard<P: Platform> {
    id: NodeId,
    _own: PhantomData<(*mut (), P)>,
}

impl<P: Platform> NodeGuard<P> {
    /// Takes the lowest free context of the calling thread, whose name fits a queue's tail. `None`
    /// if the thread has no slot, none of the first [`MAX_SLOTS`], or all four are in use.
    #[inline]
    pub fn new() -> Option<Self> {
        Self::of(P::slot().filter(|&slot| slot < MAX_SLOTS)?)
    }

    /// The same for a list of sleepers, in which a node of any slot may stand.
    #[inline]
    pub fn for_list() -> Option<Self> {
        Self::of(P::slot()?).or_else(|| Self::of(P::another_slot()?))
    }

    #[inline]
    fn of(slot: usize) -> Option<Self> {
        let busy = &P::tables().slot(slot).busy;
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

    /// The node's name.
    #[inline]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// The node.
    #[inline]
    pub fn node(&self) -> &'static Node<P> {
        self.id.node()
    }
}

impl<P: Platform> Drop for NodeGuard<P> {
    #[inline]
    fn drop(&mut self) {
        // Release, pairing with the acquire of the thread that takes the slot over after this
        // one's exit: all use of the node lies before.
        P::tables()
            .slot(self.id.slot())
            .busy
            .fetch_and(!(1 << self.id.context()), Release);
    }
}

/// A guard of the calling thread's slot: while there is one, the slot goes to no other thread. Any
/// number of them may exist.
///
/// Not `Send`: the slot belongs to the thread.
#[derive(Debug)]
pub struct SlotGuard<P: Platform> {
    slot: usize,
    _own: PhantomData<(*mut (), P)>,
}

/// One more guard, in [`Slot::busy`]: above the contexts' bits.
const GUARD: u32 = 1 << CONTEXTS;

impl<P: Platform> SlotGuard<P> {
    /// Guards the calling thread's slot. `None` if it has none of the first [`MAX_SLOTS`].
    #[inline]
    pub fn new() -> Option<Self> {
        let slot = P::slot().filter(|&slot| slot < MAX_SLOTS)?;
        // An addition, since a handler may keep a guard beyond its return (it forgot it). Relaxed:
        // as in `NodeGuard::new`.
        P::tables().slot(slot).busy.fetch_add(GUARD, Relaxed);
        Some(SlotGuard {
            slot,
            _own: PhantomData,
        })
    }

    /// The slot's number: see [`Platform::slot`].
    #[inline]
    pub fn number(&self) -> usize {
        self.slot
    }

    /// The slot.
    #[inline]
    pub(crate) fn slot(&self) -> &'static Slot<P> {
        P::tables().slot(self.slot)
    }
}

impl<P: Platform> Drop for SlotGuard<P> {
    #[inline]
    fn drop(&mut self) {
        // Release: as in `NodeGuard`'s drop.
        self.slot().busy.fetch_sub(GUARD, Release);
    }
}

/// Hands out small numbers, a bit each: slots to threads, for instance. Lock-free, so usable from
/// signal handlers and across fork.
#[derive(Debug)]
pub struct Bitmap<'a, A>(pub &'a [A]);

impl<A: Atomic<u64>> Bitmap<'_, A> {
    /// Takes the lowest clear bit below `limit` that it finds. `None` if all are set.
    pub fn take(&self, limit: usize) -> Option<usize> {
        for (index, word) in self.0.iter().enumerate() {
            let mut seen = word.load(Relaxed);
            while seen != u64::MAX {
                let bit = seen.trailing_ones() as usize;
                let number = index * 64 + bit;
                if number >= limit {
                    return None;
                }
                // Acquire pairs with the release in `give`: the last holder's accesses lie before.
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
    /// If `number` lies outside the bitmap. In debug builds and with the `checked` feature also if
    /// it was not taken.
    pub fn give(&self, number: usize) {
        let old = self.0[number / 64].fetch_and(!(1 << (number % 64)), AcqRel);
        let was_taken = old & 1 << (number % 64) != 0;
        crate::check!(was_taken, "number {number} was given back twice");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::watch::{Access, Watch, before, left, watch};

    /// A handler runs between the load and the exchange, and keeps the context that was free. Fails
    /// if `NodeGuard::new` ignores the value that the exchange found.
    #[test]
    fn a_context_that_a_handler_keeps_is_not_taken_twice() {
        let guard = NodeGuard::<Watch>::new;
        watch(&Watch::tables().slot(0).busy);
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
