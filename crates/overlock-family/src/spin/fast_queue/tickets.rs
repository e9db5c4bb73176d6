//! The tickets of the fast queue spinlock: immortal cache lines that wander from thread to lock and
//! back.
//!
//! A ticket belongs to one holder at a time: a live lock (its latest arrival), a thread's
//! context (its spare), or the pool. [`fast_queue`](crate::spin::fast_queue) says how they change
//! hands there. The pool hands them to new locks and takes them back from destroyed ones.
//!
//! The first tickets of the table, one for each (slot, context), belong to those contexts from
//! the start, so that neither a thread's first acquisition nor any later one has to ask the pool.
//! The others are for locks: never used ones are taken in order, used ones come from a stack.
//! Both are lock-free, so locks may be created and destroyed in signal handlers,
//! and a child of fork finds nothing locked. All-zero bytes are a valid, full pool.
//!
//! # Orderings
//!
//! - PG, the release exchange in `give`, pairs with PT, the acquire load in `take`: the last
//!   holder's accesses to the ticket lie before the next one's.

use core::num::NonZeroU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_core::platform::{Atomic, Atomics, CONTEXTS};

/// The cache line that a waiter of a fast queue spinlock polls.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct QueueTicket<A: Atomics> {
    /// Released, owner or waiting: [`spin::fast_queue`](crate::spin::fast_queue) has the values.
    pub(crate) wait: A::U32,
    /// How often the ticket has joined a queue; only its holder counts.
    pub(crate) uses: A::U32,
    /// The next ticket of the pool's stack, 0 for none, while the pool holds this one.
    below: A::U32,
}

impl<A: Atomics> QueueTicket<A> {
    /// A ticket that nobody has used: all zero bytes.
    const fn new() -> Self {
        QueueTicket {
            wait: Atomic::ZERO,
            uses: Atomic::ZERO,
            below: Atomic::ZERO,
        }
    }
}

/// The name of a ticket: its index in the table + 1, so that 0 can say "none".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TicketId(NonZeroU32);

impl TicketId {
    #[inline]
    pub(crate) fn from_bits(bits: u32) -> Option<Self> {
        NonZeroU32::new(bits).map(TicketId)
    }

    /// The ticket that belongs to a context from the start.
    #[inline]
    pub(crate) fn first_of(slot: usize, context: usize) -> Self {
        TicketId(NonZeroU32::MIN.saturating_add((slot * CONTEXTS + context) as u32))
    }

    #[inline]
    pub(crate) fn bits(self) -> u32 {
        self.0.get()
    }
}

/// The tickets of a thread: which of its contexts are in the middle of locking, and the ticket that
/// each brings to its next lock.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Contexts<A: Atomics> {
    /// Contexts that are in the middle of locking.
    pub(crate) depth: A::U32,
    /// The ticket of each; 0 is its [first own one](TicketId::first_of).
    pub(super) spare: [A::U32; CONTEXTS],
}

impl<A: Atomics> Contexts<A> {
    pub(crate) const fn new() -> Self {
        Contexts {
            depth: Atomic::ZERO,
            spare: [const { Atomic::ZERO }; CONTEXTS],
        }
    }

    /// Whether a context is in the middle of locking.
    pub(crate) fn is_in_use(&self) -> bool {
        self.depth.load(Relaxed) != 0
    }
}

/// All tickets of a platform: the first ones of its threads' contexts, then those for locks.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Tickets<A: Atomics, const SLOTS: usize, const FOR_LOCKS: usize> {
    of_contexts: [[QueueTicket<A>; CONTEXTS]; SLOTS],
    for_locks: [QueueTicket<A>; FOR_LOCKS],
}

impl<A: Atomics, const SLOTS: usize, const FOR_LOCKS: usize> Tickets<A, SLOTS, FOR_LOCKS> {
    pub(crate) const fn new() -> Self {
        Tickets {
            of_contexts: [const { [const { QueueTicket::new() }; CONTEXTS] }; SLOTS],
            for_locks: [const { QueueTicket::new() }; FOR_LOCKS],
        }
    }

    #[inline]
    pub(crate) const fn all(&self) -> &[QueueTicket<A>] {
        // SAFETY: both fields are arrays of `QueueTicket`s, so they have its alignment, which
        // divides its size. `repr(C)` places the second one right behind the first. The pointer may
        // read all of `self`, which stays borrowed as long as the slice.
        unsafe {
            core::slice::from_raw_parts(
                core::ptr::from_ref(self).cast(),
                SLOTS * CONTEXTS + FOR_LOCKS,
            )
        }
    }
}

/// Which tickets of a platform are nobody's: see the [module's page](self). A cache line of its
/// own, so that locks that come and go do not disturb those at work.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct TicketPool<A: Atomics> {
    /// The stack of tickets that have been given back: the top one's name in the low half, a
    /// tag that counts takes in the high half. The tag keeps a taker that slept from
    /// mistaking a top that went away and came back for one that stayed (2^32 takes aside).
    stack: A::U64,
    /// How many of the tickets for locks have ever been taken from the end of the table.
    fresh: A::U32,
}

fn top(stack: u64) -> Option<TicketId> {
    TicketId::from_bits(stack as u32)
}

impl<A: Atomics> TicketPool<A> {
    /// A full pool: all zero bytes.
    pub(crate) const fn new() -> Self {
        TicketPool {
            stack: Atomic::ZERO,
            fresh: Atomic::ZERO,
        }
    }
}

/// The tickets of a platform, and their pool.
#[derive(Debug)]
pub(crate) struct TicketTable<A: Atomics> {
    tickets: &'static [QueueTicket<A>],
    /// How many of them, from the first, belong to contexts of threads.
    of_contexts: usize,
    pool: &'static TicketPool<A>,
}

impl<A: Atomics> Clone for TicketTable<A> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Atomics> Copy for TicketTable<A> {}

impl<A: Atomics> TicketTable<A> {
    #[inline]
    pub(crate) const fn new<const SLOTS: usize, const FOR_LOCKS: usize>(
        tickets: &'static Tickets<A, SLOTS, FOR_LOCKS>,
        pool: &'static TicketPool<A>,
    ) -> Self {
        TicketTable {
            tickets: tickets.all(),
            of_contexts: SLOTS * CONTEXTS,
            pool,
        }
    }

    /// The ticket of this name.
    ///
    /// # Panics
    ///
    /// If the platform has no such ticket: a lock's memory was overwritten, see
    /// [`NodeId::node`](overlock_core::node::NodeId::node). The names in locks, contexts and the
    /// pool are those of this table's tickets.
    #[inline]
    pub(crate) fn get(&self, id: TicketId) -> &'static QueueTicket<A> {
        &self.tickets[id.bits() as usize - 1]
    }

    /// Takes a ticket. `None` if all are in use.
    pub(crate) fn take(&self) -> Option<TicketId> {
        let stack = &self.pool.stack;
        // PT: acquire, pairs with PG. Those that pop in between extend the release sequence.
        let mut seen = stack.load(Acquire);
        while let Some(id) = top(seen) {
            // Stale if another taker was faster: the tag then makes the exchange fail.
            let below = self.get(id).below.load(Relaxed);
            let rest = u64::from(below) | (seen >> 32).wrapping_add(1) << 32;
            match stack.compare_exchange_weak(seen, rest, Acquire, Acquire) {
                Ok(_) => return Some(id),
                Err(now) => seen = now,
            }
        }
        self.take_fresh()
    }

    fn take_fresh(&self) -> Option<TicketId> {
        let taken = &self.pool.fresh;
        // Relaxed: nobody has used the ticket before.
        let mut fresh = taken.load(Relaxed);
        loop {
            let index = self.of_contexts + fresh as usize;
            if index >= self.tickets.len() {
                return None;
            }
            match taken.compare_exchange_weak(fresh, fresh + 1, Relaxed, Relaxed) {
                Ok(_) => return TicketId::from_bits(index as u32 + 1),
                Err(now) => fresh = now,
            }
        }
    }

    /// Gives a ticket back: the caller holds it, and nobody will poll it for a handoff any more.
    pub(crate) fn give(&self, id: TicketId) {
        let stack = &self.pool.stack;
        let mut seen = stack.load(Relaxed);
        loop {
            self.get(id).below.store(seen as u32, Relaxed);
            let more = u64::from(id.bits()) | seen >> 32 << 32;
            // PG: release, pairs with PT.
            match stack.compare_exchange_weak(seen, more, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}

#[cfg(test)]
impl<A: Atomics> TicketTable<A> {
    /// The tickets that can be taken. Only where nobody takes or gives meanwhile.
    pub(crate) fn free(&self) -> std::vec::Vec<TicketId> {
        let fresh = self.of_contexts + self.pool.fresh.load(Relaxed) as usize..self.tickets.len();
        let mut free: std::vec::Vec<_> = fresh
            .filter_map(|index| TicketId::from_bits(index as u32 + 1))
            .collect();
        let mut next = top(self.pool.stack.load(Relaxed));
        while let Some(id) = next {
            assert!(free.len() < self.tickets.len(), "the stack has a loop");
            free.push(id);
            next = TicketId::from_bits(self.get(id).below.load(Relaxed));
        }
        free
    }

    pub(crate) fn len(&self) -> usize {
        self.tickets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::FamilyPlatform;
    use overlock_core::toy::Toy;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    #[test]
    fn each_ticket_is_handed_out_once_and_comes_back() {
        let tickets = Toy::family_tables().tickets;
        let total = tickets.free().len();
        for _ in 0..3 {
            let taken: Vec<_> = core::iter::from_fn(|| tickets.take()).collect();
            assert_eq!(taken.len(), total);
            let names: BTreeSet<u32> = taken.iter().map(|id| id.bits()).collect();
            assert_eq!(names.len(), total);
            assert!(*names.first().unwrap() as usize > overlock_core::toy::SLOTS * CONTEXTS);
            assert_eq!(tickets.free().len(), 0);
            taken.into_iter().for_each(|id| tickets.give(id));
            assert_eq!(tickets.free().len(), total);
        }
    }

    /// The tag in the stack word: without it (`rest` keeping `seen >> 32`) the word below would be
    /// equal to the one first seen, and a taker that slept in between would put a ticket
    /// back onto the stack that somebody holds.
    #[test]
    fn a_stack_with_the_same_top_again_has_another_word() {
        let tickets = Toy::family_tables().tickets;
        let [a, b] = [tickets.take().unwrap(), tickets.take().unwrap()];
        tickets.give(b);
        tickets.give(a);
        let seen = tickets.pool.stack.load(Relaxed); // a on b: a taker stops here, having read b below a
        assert_eq!([tickets.take(), tickets.take()], [Some(a), Some(b)]);
        tickets.give(a); // a is on top again, b is taken
        assert_eq!(top(tickets.pool.stack.load(Relaxed)), top(seen));
        assert_ne!(tickets.pool.stack.load(Relaxed), seen);
    }
}
