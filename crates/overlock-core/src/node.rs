//! Queue nodes: where a thread waits.
//!
//! A thread owns one [`Slot`] while it lives, with one [`Node`] for each of the four
//! contexts that can nest in it: its ordinary code and up to three signal handlers, each
//! interrupting the one before. Slots are immortal and type-stable: a thread that exits
//! leaves its slot to the next one, and a late kick or a stale look meets a node,
//! never freed memory.
//!
//! More threads alive than slots, or a fifth context: [`NodeGuard::new`] answers `None`, and each
//! lock has a way to wait without a node that is still correct, only slower
//! ([`Event::LockNoNode`](crate::stat::Event::LockNoNode) counts it).
//!
//! | field | who writes it, and when |
//! |---|---|
//! | `Slot::busy` | the owning thread and the handlers that interrupt it, claiming and releasing contexts; in the bits above, how many [`SlotGuard`]s they have |
//! | `Slot::grant` | the owning thread, handing a [`hemlock`](crate::spin::hemlock) off; the waiter that takes it: 0 |
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
use core::num::NonZeroU16;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use crate::fork::clear;
use crate::platform::{Atomic, ConstPlatform, Platform, Zero};

/// Nodes a thread: its ordinary code and three signal handlers nested in it.
pub const CONTEXTS: usize = 4;

/// The most slots that a platform may have: what 14 bits of a queue tail can name.
pub const MAX_SLOTS: usize = (1 << 14) - 1;

/// The node of one context of one thread, which waits there. A cache line of its own, since its
/// owner spins on it.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Node<P: Platform> {
    pub(crate) next: P::U32,
    pub(crate) wait: P::U32,
    pub(crate) state: P::U32,
    pub(crate) info: P::U32,
    pub(crate) kicks: P::U32,
    pub(crate) lock: P::Usize,
    pub(crate) kicked_at: P::U64,
    pub(crate) cancel: P::Usize,
}

/// The nodes of one thread.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Slot<P: Platform> {
    nodes: [Node<P>; CONTEXTS],
    busy: P::U32,
    pub(crate) grant: P::Usize,
    pub(crate) depth: P::U32,
    pub(crate) spare: [P::U32; CONTEXTS],
    pub(crate) reading: Reading<P>,
}

/// The read locks that a thread holds without having written to them, on a line of its own: its
/// owner writes it often, and only writers of such locks look at it.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Reading<P: Platform>(pub(crate) [Entry<P>; READING]);

/// One of them: see [`percpu_rwsem`](crate::rw::percpu_rwsem).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Entry<P: Platform> {
    /// Its id, or 0.
    pub(crate) lock: P::U32,
    /// How many writers sleep, or are about to, until the entry names another.
    pub(crate) waited: P::U32,
}

/// See [`Reading`].
pub(crate) const READING: usize = 8;

impl<P: Platform> Reading<P> {
    fn new() -> Self {
        Reading(core::array::from_fn(|_| Entry {
            lock: P::U32::new(0),
            waited: P::U32::new(0),
        }))
    }

    /// Those that waited for the thread's locks are gone.
    pub(crate) fn forget_writers(&self) {
        clear(self.0.iter().map(|entry| &entry.waited));
    }
}

impl<P: ConstPlatform> Reading<P> {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new table, as intended
    const INIT: Self = Reading(
        [const {
            Entry {
                lock: Zero::ZERO,
                waited: Zero::ZERO,
            }
        }; READING],
    );
}

impl<P: Platform> Node<P> {
    /// A node that nobody waits in.
    pub fn new() -> Self {
        Node {
            next: P::U32::new(0),
            wait: P::U32::new(0),
            state: P::U32::new(0),
            info: P::U32::new(0),
            kicks: P::U32::new(0),
            lock: P::Usize::new(0),
            kicked_at: P::U64::new(0),
            cancel: P::Usize::new(0),
        }
    }
}

impl<P: Platform> Default for Node<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: ConstPlatform> Node<P> {
    /// A node that nobody waits in, for statics.
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new node, as intended
    pub const INIT: Self = Node {
        next: Zero::ZERO,
        wait: Zero::ZERO,
        state: Zero::ZERO,
        info: Zero::ZERO,
        kicks: Zero::ZERO,
        lock: Zero::ZERO,
        kicked_at: Zero::ZERO,
        cancel: Zero::ZERO,
    };
}

impl<P: ConstPlatform> Slot<P> {
    /// A slot that no thread owns, for statics: all zero bytes, so a table of them costs no space
    /// in the program's file.
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new slot, as intended
    pub const INIT: Self = Slot {
        nodes: [const { Node::INIT }; CONTEXTS],
        busy: Zero::ZERO,
        grant: Zero::ZERO,
        depth: Zero::ZERO,
        spare: [const { Zero::ZERO }; CONTEXTS],
        reading: Reading::INIT,
    };
}

impl<P: Platform> Slot<P> {
    /// A slot that no thread owns.
    pub fn new() -> Self {
        Slot {
            nodes: core::array::from_fn(|_| Node::new()),
            busy: P::U32::new(0),
            grant: P::Usize::new(0),
            depth: P::U32::new(0),
            spare: core::array::from_fn(|_| P::U32::new(0)),
            reading: Reading::new(),
        }
    }

    /// Whether no context of the slot is claimed, nothing guards it, and none of its entries names
    /// a read lock. A slot whose thread exits while one does (it forgot a guard) must not be given
    /// to another thread: a queue may still name its node, and that lock is still read.
    pub fn is_idle(&self) -> bool {
        let mut entries = self.reading.0.iter();
        self.busy.load(Relaxed) == 0 && entries.all(|entry| entry.lock.load(Relaxed) == 0)
    }

    /// The thread is gone, and so is what it waited for and read: no context is claimed any more.
    /// Whether another thread may have the slot.
    pub(crate) fn forget_nodes(&self) -> bool {
        for node in &self.nodes {
            clear([&node.next, &node.wait, &node.state, &node.info].into_iter());
            clear([&node.lock, &node.cancel].into_iter());
        }
        clear(self.reading.0.iter().map(|entry| &entry.lock));
        self.reading.forget_writers();
        clear([&self.grant].into_iter());
        clear([&self.busy].into_iter());
        self.depth.load(Relaxed) == 0
    }

    /// The nodes, whoever uses them.
    pub(crate) fn nodes(&self) -> &[Node<P>] {
        &self.nodes
    }
}

impl<P: Platform> Default for Slot<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// The name of a node in 16 bits: context in bits 0 and 1, slot + 1 above. Never 0, so that
/// a queue's tail can say "nobody".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(NonZeroU16);

impl NodeId {
    /// The node of `context` in `slot`.
    ///
    /// # Panics
    ///
    /// If either is out of range.
    pub const fn new(slot: usize, context: usize) -> Self {
        assert!(slot < MAX_SLOTS && context < CONTEXTS);
        match NonZeroU16::new(((slot + 1) << 2 | context) as u16) {
            Some(bits) => NodeId(bits),
            None => unreachable!(),
        }
    }

    /// The node that `bits` names; `None` for 0, and for bits that name no slot.
    #[inline]
    pub const fn from_bits(bits: u16) -> Option<Self> {
        match NonZeroU16::new(bits) {
            Some(some) if bits >> 2 != 0 => Some(NodeId(some)),
            _ => None,
        }
    }

    /// The name as it is kept in words.
    #[inline]
    pub const fn bits(self) -> u16 {
        self.0.get()
    }

    /// The slot's index in [`Platform::slots`].
    #[inline]
    pub const fn slot(self) -> usize {
        (self.0.get() >> 2) as usize - 1
    }

    /// The context within the slot.
    #[inline]
    pub const fn context(self) -> usize {
        (self.0.get() & 3) as usize
    }

    /// The node itself.
    ///
    /// # Panics
    ///
    /// If the platform has no such slot: the name comes from a corrupted lock.
    #[inline]
    pub fn node<P: Platform>(self) -> &'static Node<P> {
        &P::slots()[self.slot()].nodes[self.context()]
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
        let busy = &P::slots()[slot].busy;
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
        P::slots()[self.id.slot()]
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
    /// Guards the calling thread's slot; `None` where it has none.
    #[inline]
    pub fn new() -> Option<Self> {
        let slot = P::slot()?;
        // An addition, since a handler may keep a guard beyond its return (it forgot it). Relaxed:
        // as in `NodeGuard::new`.
        P::slots()[slot].busy.fetch_add(GUARD, Relaxed);
        Some(SlotGuard {
            slot,
            _own: PhantomData,
        })
    }

    /// The slot's name in words: its number, from 1.
    #[inline]
    pub fn name(&self) -> u32 {
        self.slot as u32 + 1
    }

    /// The slot.
    #[inline]
    pub fn slot(&self) -> &'static Slot<P> {
        &P::slots()[self.slot]
    }
}

impl<P: Platform> Drop for SlotGuard<P> {
    #[inline]
    fn drop(&mut self) {
        // Release: as in `NodeGuard`'s drop.
        self.slot().busy.fetch_sub(GUARD, Release);
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
    /// If `number` lies outside the bitmap. In debug builds and with the `checked` feature also
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
        watch(&Watch::slots()[0].busy);
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
