//! The slot of a thread, with a [`Node`] for each context: plain data. [`node`](crate::node) says
//! how it is used.

use core::num::NonZeroU32;
use core::sync::atomic::Ordering::Relaxed;

use crate::platform::atomic::{Atomic, clear};
use crate::platform::atomics::Atomics;
use crate::platform::contexts::CONTEXTS;

/// The slots whose nodes may stand in a queue's tail, of which 14 bits name one. The nodes of slots
/// beyond serve in the lists of [sleepers](crate::sleep::wait_list).
pub const MAX_SLOTS: usize = (1 << 14) - 1;

/// The most slots that a platform may have: as many as Linux has numbers for threads.
pub const MOST_SLOTS: usize = 1 << 22;

/// The place where one context of one thread waits. A cache line of its own, since its owner spins
/// on it.
///
/// The public fields are free for the lock that uses the node. It stores what it relies on before
/// it publishes the node, since the last user has left its values there.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Node<A: Atomics> {
    /// The successor in the queue.
    pub next: A::U32,
    /// The word on which the thread waits for its predecessor, or for the owner.
    pub wait: A::U32,
    /// The state that the waiter and its waker share.
    pub state: A::U32,
    /// A value of the waiter's, for others.
    pub info: A::U32,
    /// Kicks that went to the waiter through the node: one more each, never set back.
    pub kicks: A::U32,
    /// 1 while the owner waits for a condition: a jump out of the wait ends it.
    pub jumps: A::U32,
    /// The address of the lock that the waiter waits for.
    pub lock: A::Usize,
    /// The time of the latest kick, if statistics are on.
    pub kicked_at: A::Usize,
    /// The address of the token whose cancellation kicks the waiter, or 0.
    pub cancel: A::Usize,
}

/// Entries of a slot.
pub const ENTRIES: usize = 8;

/// Two words of a slot that a lock claims by making `holds` another value than 0.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Entry<A: Atomics> {
    /// The object that the thread holds by this entry, in the lock's own numbers; else 0.
    pub(crate) holds: A::U32,
    /// How many threads sleep, or are about to, until the entry holds something else.
    pub(crate) waited: A::U32,
}

/// The entries of a thread, on a line of their own: their owner writes them often, and others read
/// them seldom.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Entries<A: Atomics>(pub(crate) [Entry<A>; ENTRIES]);

impl<A: Atomics> Entries<A> {
    const fn new() -> Self {
        Entries(
            [const {
                Entry {
                    holds: Atomic::ZERO,
                    waited: Atomic::ZERO,
                }
            }; ENTRIES],
        )
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|entry| entry.holds.load(Relaxed) == 0)
    }

    /// After fork() in the child: forgets what a thread of the parent holds.
    fn forget(&self) {
        clear(self.0.iter().map(|entry| &entry.holds));
        self.forget_waiters();
    }

    /// After fork() in the child: forgets waiters, which exist only in the parent.
    pub(crate) fn forget_waiters(&self) {
        clear(self.0.iter().map(|entry| &entry.waited));
    }
}

/// The nodes of one thread.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Slot<A: Atomics> {
    pub(crate) nodes: [Node<A>; CONTEXTS],
    /// The contexts that are in use, a bit each; above them, a count of guards.
    pub(crate) busy: A::U32,
    pub(crate) entries: Entries<A>,
}

impl<A: Atomics> Node<A> {
    /// A node that nobody waits in.
    const fn new() -> Self {
        Node {
            next: Atomic::ZERO,
            wait: Atomic::ZERO,
            state: Atomic::ZERO,
            info: Atomic::ZERO,
            kicks: Atomic::ZERO,
            jumps: Atomic::ZERO,
            lock: Atomic::ZERO,
            kicked_at: Atomic::ZERO,
            cancel: Atomic::ZERO,
        }
    }
}

impl<A: Atomics> Slot<A> {
    /// A slot that no thread owns: all zero bytes, so a static table of them costs no space in the
    /// program's file.
    pub(crate) const fn new() -> Self {
        Slot {
            nodes: [const { Node::new() }; CONTEXTS],
            busy: Atomic::ZERO,
            entries: Entries::new(),
        }
    }

    /// Whether no context of the slot is in use, and none of its entries holds anything: see
    /// [`Tables::is_idle`](crate::tables::Tables::is_idle).
    pub(crate) fn is_idle(&self) -> bool {
        self.busy.load(Relaxed) == 0 && self.entries.is_empty()
    }

    /// After fork() in the child: frees the slot of a thread that exists only in the parent.
    pub(crate) fn forget(&self) {
        for node in &self.nodes {
            clear([&node.next, &node.wait, &node.state, &node.info].into_iter());
            clear([&node.lock, &node.cancel].into_iter());
            clear([&node.jumps].into_iter());
        }
        self.entries.forget();
        clear([&self.busy].into_iter());
    }
}

/// The name of a node in [`NAME_BITS`] bits: context in bits 0 and 1, slot + 1 above. Never 0, so
/// that a list's head can say "nobody". The names of the first [`MAX_SLOTS`] slots have 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(NonZeroU32);

/// The bits of a node's name.
pub const NAME_BITS: u32 = (MOST_SLOTS << 2 | (CONTEXTS - 1)).ilog2() + 1;

impl NodeId {
    /// The node of `context` in `slot`.
    ///
    /// # Panics
    ///
    /// If either is out of range.
    pub const fn new(slot: usize, context: usize) -> Self {
        assert!(slot < MOST_SLOTS && context < CONTEXTS);
        match NonZeroU32::new(((slot + 1) << 2 | context) as u32) {
            Some(name) => NodeId(name),
            None => unreachable!(),
        }
    }

    /// The node of this name; `None` for 0, and for names of no slot.
    #[inline]
    pub const fn from_name(name: u32) -> Option<Self> {
        match NonZeroU32::new(name) {
            Some(some) if name >> 2 != 0 => Some(NodeId(some)),
            _ => None,
        }
    }

    /// The name, as it is kept in lists.
    #[inline]
    pub const fn name(self) -> u32 {
        self.0.get()
    }

    /// The node that `bits` names; `None` for 0, and for bits that name no slot.
    #[inline]
    pub const fn from_bits(bits: u16) -> Option<Self> {
        Self::from_name(bits as u32)
    }

    /// The name as it is kept in the words of queues.
    ///
    /// # Panics
    ///
    /// In debug builds, if the node's slot is none of the first [`MAX_SLOTS`].
    #[inline]
    pub const fn bits(self) -> u16 {
        debug_assert!(self.slot() < MAX_SLOTS);
        self.0.get() as u16
    }

    /// The slot's number: see [`Platform::slot`](crate::Platform::slot).
    #[inline]
    pub const fn slot(self) -> usize {
        (self.0.get() >> 2) as usize - 1
    }

    /// The context within the slot.
    #[inline]
    pub const fn context(self) -> usize {
        (self.0.get() & 3) as usize
    }
}
