//! The tickets of the fast queue spinlock: immortal cache lines that wander from thread to
//! lock and back.
//!
//! A ticket belongs to one holder at a time: a live lock (its latest arrival), a thread's
//! context (its spare), or this pool. The algorithm, [`spin::fast_queue`](crate::spin::fast_queue),
//! says how they change hands there; the pool hands them to new locks and takes them back
//! from destroyed ones.
//!
//! The first tickets of the table, one for each (slot, context), belong to those contexts from
//! the start, so that neither a thread's first acquisition nor any later one has to ask the pool.
//! The others are for locks: never used ones are taken in order, used ones come from a stack.
//! Both are lock-free, so locks may be created and destroyed in signal handlers,
//! and a child of fork finds nothing locked. All-zero bytes are a valid, full pool.
//!
//! # Orderings
//!
//! - PG, the release exchange in `give`, pairs with PT, the acquire load in `take`: what the last
//!   holder did to the ticket lies before what the next one does.

use core::num::NonZeroU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::node::CONTEXTS;
use crate::platform::{Atomic, ConstPlatform, Platform, Zero};

/// What a waiter of a fast queue spinlock watches. A cache line of its own.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct QueueTicket<P: Platform> {
    /// Released, owner or waiting: [`spin::fast_queue`](crate::spin::fast_queue) has the values.
    pub(crate) wait: P::U32,
    /// How often the ticket has joined a queue; only its holder counts.
    pub(crate) uses: P::U32,
    /// The next ticket of the pool's stack, 0 for none, while the pool holds this one.
    below: P::U32,
}

impl<P: Platform> QueueTicket<P> {
    /// A ticket that nobody has used.
    pub fn new() -> Self {
        QueueTicket {
            wait: P::U32::new(0),
            uses: P::U32::new(0),
            below: P::U32::new(0),
        }
    }
}

impl<P: Platform> Default for QueueTicket<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: ConstPlatform> QueueTicket<P> {
    /// A ticket that nobody has used, for statics: all zero bytes.
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new ticket, as intended
    pub const INIT: Self = QueueTicket {
        wait: Zero::ZERO,
        uses: Zero::ZERO,
        below: Zero::ZERO,
    };
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

    /// The ticket itself.
    ///
    /// # Panics
    ///
    /// Where the platform has no such ticket: the name comes from a corrupted lock.
    #[inline]
    pub(crate) fn ticket<P: Platform>(self) -> &'static QueueTicket<P> {
        &P::tickets()[self.bits() as usize - 1]
    }
}

/// Which tickets of a platform are nobody's: see the [module's page](self). A cache line of its
/// own, so that locks that come and go do not disturb those at work.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct TicketPool<P: Platform> {
    /// The stack of tickets that have been given back: the top one's name in the low half, a
    /// tag that counts takes in the high half. The tag keeps a taker that slept from
    /// mistaking a top that went away and came back for one that stayed (2^32 takes aside).
    stack: P::U64,
    /// How many of the tickets for locks have ever been taken from the end of the table.
    fresh: P::U32,
}

fn top(stack: u64) -> Option<TicketId> {
    TicketId::from_bits(stack as u32)
}

impl<P: ConstPlatform> TicketPool<P> {
    /// A full pool, for statics: all zero bytes.
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new pool, as intended
    pub const INIT: Self = TicketPool {
        stack: Zero::ZERO,
        fresh: Zero::ZERO,
    };
}

impl<P: Platform> Default for TicketPool<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> TicketPool<P> {
    /// A full pool.
    pub fn new() -> Self {
        TicketPool {
            stack: P::U64::new(0),
            fresh: P::U32::new(0),
        }
    }

    /// Takes a ticket; `None` where all are in use.
    pub(crate) fn take(&self) -> Option<TicketId> {
        // PT: acquire, pairs with PG. Those that pop in between extend the release sequence.
        let mut seen = self.stack.load(Acquire);
        while let Some(id) = top(seen) {
            // Stale where another taker was faster; the tag then makes the exchange fail.
            let below = id.ticket::<P>().below.load(Relaxed);
            let rest = u64::from(below) | (seen >> 32).wrapping_add(1) << 32;
            match self
                .stack
                .compare_exchange_weak(seen, rest, Acquire, Acquire)
            {
                Ok(_) => return Some(id),
                Err(now) => seen = now,
            }
        }
        self.take_fresh()
    }

    fn take_fresh(&self) -> Option<TicketId> {
        let own = P::slots().len() * CONTEXTS;
        // Relaxed: nobody has used the ticket before.
        let mut fresh = self.fresh.load(Relaxed);
        loop {
            let index = own + fresh as usize;
            if index >= P::tickets().len() {
                return None;
            }
            match self
                .fresh
                .compare_exchange_weak(fresh, fresh + 1, Relaxed, Relaxed)
            {
                Ok(_) => return TicketId::from_bits(index as u32 + 1),
                Err(now) => fresh = now,
            }
        }
    }

    /// Gives a ticket back: the caller holds it, and nobody will look at it for a handoff any
    /// more.
    pub(crate) fn give(&self, id: TicketId) {
        let mut seen = self.stack.load(Relaxed);
        loop {
            id.ticket::<P>().below.store(seen as u32, Relaxed);
            let more = u64::from(id.bits()) | seen >> 32 << 32;
            // PG: release, pairs with PT.
            match self
                .stack
                .compare_exchange_weak(seen, more, Release, Relaxed)
            {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}

#[cfg(test)]
impl<P: Platform> TicketPool<P> {
    /// The tickets that can be taken. Only where nobody takes or gives meanwhile.
    pub(crate) fn free(&self) -> std::vec::Vec<TicketId> {
        let own = P::slots().len() * CONTEXTS;
        let fresh = own + self.fresh.load(Relaxed) as usize..P::tickets().len();
        let mut free: std::vec::Vec<_> = fresh
            .filter_map(|index| TicketId::from_bits(index as u32 + 1))
            .collect();
        let mut next = top(self.stack.load(Relaxed));
        while let Some(id) = next {
            assert!(free.len() < P::tickets().len(), "the stack has a loop");
            free.push(id);
            next = TicketId::from_bits(id.ticket::<P>().below.load(Relaxed));
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    #[test]
    fn each_ticket_is_handed_out_once_and_comes_back() {
        let pool = Toy::ticket_pool();
        let total = pool.free().len();
        for _ in 0..3 {
            let taken: Vec<_> = core::iter::from_fn(|| pool.take()).collect();
            assert_eq!(taken.len(), total);
            let names: BTreeSet<u32> = taken.iter().map(|id| id.bits()).collect();
            assert_eq!(names.len(), total);
            assert!(*names.first().unwrap() as usize > Toy::slots().len() * CONTEXTS);
            assert_eq!(pool.free().len(), 0);
            taken.into_iter().for_each(|id| pool.give(id));
            assert_eq!(pool.free().len(), total);
        }
    }

    /// The tag in the stack word: without it (`rest` keeping `seen >> 32`) the word below would be
    /// equal to the one first seen, and a taker that slept in between would put a ticket
    /// back onto the stack that somebody holds.
    #[test]
    fn a_stack_that_looks_the_same_again_has_another_word() {
        let pool = Toy::ticket_pool();
        let [a, b] = [pool.take().unwrap(), pool.take().unwrap()];
        pool.give(b);
        pool.give(a);
        let seen = pool.stack.load(Relaxed); // a on b: a taker stops here, having read b below a
        assert_eq!([pool.take(), pool.take()], [Some(a), Some(b)]);
        pool.give(a); // a is on top again, b is taken
        assert_eq!(top(pool.stack.load(Relaxed)), top(seen));
        assert_ne!(pool.stack.load(Relaxed), seen);
    }
}
