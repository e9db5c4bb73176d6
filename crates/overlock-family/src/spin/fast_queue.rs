//! The fast queue spinlock: a fair queue for one atomic exchange to lock and one plain store to
//! unlock.
//!
//! Michel Lespinasse's proposal of January 2013. Its text describes the lock and its costs; its
//! patch could not be found. This is our reconstruction, which matches every fact of the text: a
//! queue of Craig's, Landin's and Hagersten's kind (CLH) in which tickets are recycled.
//!
//! The lock names the *ticket* of its latest arrival. A thread that locks puts a ticket of its own
//! there and polls the ticket that it finds. When that one is released, the lock is ours, and *the
//! ticket that we polled is ours too*: no other thread knows its name any more, and we queue with
//! it for our next lock. So no thread allocates after the lock was created, none writes to
//! another's memory, and the release does not need to know its successor.
//!
//! # Layout
//!
//! ```text
//! lock:    63             32 31              0   31              0
//!         +-----------------+-----------------+ +-----------------+
//!         | its use count   | latest ticket   | | reserve         |
//!         +-----------------+-----------------+ +-----------------+
//! ticket: wait: RELEASED, OWNER or WAITING · uses     (see `pool`)
//! ```
//!
//! # States
//!
//! As (latest ticket, and its `wait`); `s` is the spare of the context that locks:
//!
//! ```text
//! (t, RELEASED)  --lock-->     (s, OWNER)      ours at once; t is our spare now
//! (t, OWNER)     --lock-->     (s, WAITING)    we poll t ...
//! (t, RELEASED)                                ... until its owner releases it: s: OWNER, t our spare
//! (t, RELEASED)  --try_lock--> (u, *)          another thread was faster: s stays our spare
//! (s, OWNER)     --unlock-->   (s, RELEASED)   the lock is free, or owned by the waiter that polls s
//! (t, RELEASED)  --drop-->                     t and the reserve are the pool's
//! ```
//!
//! The reserve is for acquisitions without a spare: `r --> TAKEN` by an acquisition that joins the
//! queue with r, then `TAKEN --> t`, the ticket that it has found there.
//!
//! # Invariants
//!
//! - Q1: a ticket has one holder: the pool, a live lock (as its latest, or as its reserve), a
//!   context (as its spare), or an acquisition that is waiting (its own). So the number of tickets
//!   in use is always that of the contexts plus twice that of the live locks.
//! - Q2: a ticket that was found in the lock is adopted only after it was seen RELEASED. That store
//!   is its user's last access to it, and only the thread that found it knows its name.
//! - Q3: between the exchange and the adoption a context has no spare, and no other code uses that
//!   context: a handler that interrupts there uses the next one (`Context`).
//! - Q4: while the lock's word stays the same, so does its meaning: its ticket is not in another
//!   use.
//!
//! # Orderings
//!
//! - FT, the exchange of the lock's word, acquire and release, pairs with itself: a ticket's
//!   WAITING and its use count come before its name is seen, so no thread takes a RELEASED of an
//!   earlier use for this one's.
//! - FU, the release store of RELEASED in the unlock, pairs with FL, the acquire load of the next
//!   owner: what happened under the lock, and all use of the ticket.
//! - FR, the release store of the reserve, pairs with the acquire exchange that takes it.
//! - FC, compiler fences in `Context`, order it against handlers on its own thread; across threads
//!   a slot's handoff does.
//!
//! # Fast and slow path
//!
//! The fast path is one exchange of the lock's word, and one load that finds the ticket RELEASED.
//! The slow path polls that ticket. An unlock is one store to the owner's ticket.
//!
//! # Why no handoff is lost
//!
//! No waiter sleeps, and the release is a store to a ticket that its one successor polls or will
//! poll.
//!
//! # try_lock
//!
//! To take a free lock, try_lock exchanges the word that it loaded for its own. With names alone
//! that goes wrong. The ticket that was seen RELEASED may have been adopted, used elsewhere and
//! queued here again by a waiter; the "success" would be a place in the queue. So the word also
//! holds how often its ticket has joined a queue, and stands for one use of it (Q4). The same word
//! means another use only if that one ticket has joined exactly 2^32 queues, or a multiple, between
//! our load and our exchange, the last of them this lock's.
//!
//! # Without a context
//!
//! A thread without a slot, or a fifth nested context, has no spare. Each lock has a second ticket
//! for them, its reserve: one such acquisition at a time queues with it, and leaves the ticket that
//! it finds. A shared pool in its place could deadlock: all tickets may be queued for a lock whose
//! owner needs one for the next lock. [`Event::LockNoNode`] counts these acquisitions.
//!
//! # Where this deviates from the published lock
//!
//! - The published contexts are task and softirq; here they are those of a
//!   [slot](overlock_core::node), and a handler need not disable others, since contexts nest by
//!   depth.
//! - Tickets are named by index, and come from a static pool (`tickets.rs`). The limits stay: the
//!   lock cannot be a static, its creation may fail, and it must be destroyed. [`LazyFastQueue`]
//!   hides them, at the price of a panic at the first use.
//! - try_lock is new: the published interface had no use for one. OWNER is new, so that a snapshot
//!   can tell whether a thread waits.

mod context;
mod lazy;
#[cfg(test)]
mod tests;
pub(crate) mod tickets;

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use context::Context;
pub use lazy::LazyFastQueue;

use crate::tables::FamilyPlatform;
use overlock_core::facts::{Bound, Facts, HasFacts, NeedsNode, Slow};
use overlock_core::node::take_without_node;
use overlock_core::platform::{Atomic, Spin};
use overlock_core::raw::{Create, CreateError, RawLock};
use overlock_core::stat::{self, Event};
use tickets::{QueueTicket, TicketId};

/// The fast queue spinlock: see the [module's page](self). 16 bytes, and two tickets of the pool.
#[derive(Debug)]
pub struct FastQueue<P: FamilyPlatform> {
    /// The latest ticket in the low half, its use count in the high half; 0 only in an unused
    /// [`LazyFastQueue`].
    latest: P::U64,
    /// A ticket, or [`TAKEN`]; 0 as for `latest`.
    reserve: P::U32,
}

/// An acquisition of a [`FastQueue`]: the ticket whose release its successor waits for.
#[derive(Debug)]
#[must_use = "the lock stays locked until its token is passed to `unlock`"]
pub struct FastQueueToken(TicketId);

// Values of a ticket's `wait`, for its latest use. Zero, as in a new ticket, is RELEASED.
const RELEASED: u32 = 0;
const OWNER: u32 = 1;
const WAITING: u32 = 2;

/// The reserve while an acquisition queues with it. No ticket has this name.
const TAKEN: u32 = u32::MAX;

/// The ticket that the lock's word names.
#[inline]
fn named(latest: u64) -> Option<TicketId> {
    TicketId::from_bits(latest as u32)
}

/// The lock's word for the use of `id` that follows `uses` others.
#[inline]
fn next_use(id: TicketId, uses: u32) -> u64 {
    u64::from(id.bits()) | u64::from(uses.wrapping_add(1)) << 32
}

impl<P: FamilyPlatform> Create for FastQueue<P> {
    /// Fails if the platform's tickets are used up.
    fn create() -> Result<Self, CreateError> {
        let [latest, reserve] = take_two::<P>()?;
        Ok(FastQueue {
            latest: P::U64::new(first_word::<P>(latest)),
            reserve: P::U32::new(reserve.bits()),
        })
    }
}

impl<P: FamilyPlatform> FastQueue<P> {
    /// Destroys the lock, as dropping it does: the ticket that it names now and its reserve go back
    /// to the pool.
    ///
    /// # Panics
    ///
    /// In debug builds and with the `checked` feature, if the lock is held. Without them its ticket
    /// is then never used again.
    pub fn destroy(self) {
        drop(self);
    }

    /// Joins the queue with ticket `mine`, waits to become the owner, and returns the ticket to
    /// adopt.
    ///
    /// Does not panic: the word names a ticket from the lock's creation on (from `prepare` on, in a
    /// [`LazyFastQueue`]), and each exchange puts another name there.
    #[inline(always)]
    fn join(&self, mine: TicketId) -> TicketId {
        let ticket = P::family_tables().tickets.get(mine);
        ticket.wait.store(WAITING, Relaxed);
        let word = next_use(mine, ticket.uses.load(Relaxed));
        ticket.uses.store((word >> 32) as u32, Relaxed);
        // (t, *) -> (s, WAITING). FT: acquire and release, pairs with itself.
        let before = named(self.latest.swap(word, AcqRel)).expect("a lock names a ticket");
        // FL: acquire, pairs with FU.
        if P::family_tables().tickets.get(before).wait.load(Acquire) != RELEASED {
            wait(P::family_tables().tickets.get(before));
        }
        // (s, WAITING) -> (s, OWNER). Relaxed: only snapshots tell the two apart.
        ticket.wait.store(OWNER, Relaxed);
        before
    }

    /// As [`join`](Self::join), with the word `seen` of a free lock still there; `None` where it is
    /// not.
    #[inline]
    fn join_free(&self, mine: TicketId, seen: u64) -> Option<TicketId> {
        let ticket = P::family_tables().tickets.get(mine);
        ticket.wait.store(OWNER, Relaxed);
        let word = next_use(mine, ticket.uses.load(Relaxed));
        // (t, RELEASED) -> (s, OWNER). FT: release; the load that found t RELEASED was FL.
        self.latest
            .compare_exchange(seen, word, Release, Relaxed)
            .ok()?;
        ticket.uses.store((word >> 32) as u32, Relaxed);
        named(seen)
    }

    #[cold]
    fn lock_with_reserve(&self) -> FastQueueToken {
        let take = || self.take_reserve();
        let mine = take_without_node::<P, _>(&self.reserve, |id| id != TAKEN, take);
        let before = self.join(mine);
        self.leave_reserve(before);
        FastQueueToken(mine)
    }

    #[cold]
    fn try_lock_with_reserve(&self, seen: u64) -> Option<FastQueueToken> {
        let mine = self.take_reserve()?;
        let before = self.join_free(mine, seen);
        self.leave_reserve(before.unwrap_or(mine));
        before.map(|_| FastQueueToken(mine))
    }

    fn take_reserve(&self) -> Option<TicketId> {
        // FR: acquire, pairs with `leave_reserve`.
        match self.reserve.swap(TAKEN, Acquire) {
            TAKEN => None,
            id => TicketId::from_bits(id),
        }
    }

    fn leave_reserve(&self, id: TicketId) {
        // FR: release, pairs with `take_reserve`.
        self.reserve.store(id.bits(), Release);
    }
}

/// Waits until `before` is released.
#[cold]
fn wait<P: FamilyPlatform>(before: &QueueTicket<P>) {
    stat::count::<P>(Event::LockSlowpath);
    // FL: acquire, pairs with FU.
    let _ = P::wait_until(&before.wait, Acquire, Spin::Forever, |wait: u32| {
        wait == RELEASED
    });
}

/// Takes two tickets from the pool, for a lock.
fn take_two<P: FamilyPlatform>() -> Result<[TicketId; 2], CreateError> {
    let first = P::family_tables().tickets.take().ok_or(CreateError)?;
    let second = P::family_tables().tickets.take().ok_or_else(|| {
        P::family_tables().tickets.give(first);
        CreateError
    })?;
    Ok([first, second])
}

/// The word of a new lock, whose `latest` ticket is RELEASED.
fn first_word<P: FamilyPlatform>(latest: TicketId) -> u64 {
    let ticket = P::family_tables().tickets.get(latest);
    ticket.wait.store(RELEASED, Relaxed);
    let word = next_use(latest, ticket.uses.load(Relaxed));
    ticket.uses.store((word >> 32) as u32, Relaxed);
    word
}

impl<P: FamilyPlatform> Drop for FastQueue<P> {
    fn drop(&mut self) {
        if let Some(reserve) = self.take_reserve() {
            P::family_tables().tickets.give(reserve);
        }
        let Some(latest) = named(self.latest.load(Relaxed)) else {
            return;
        };
        // FL: acquire, pairs with FU of the last owner, whose release is its last use of the
        // ticket.
        let free = P::family_tables().tickets.get(latest).wait.load(Acquire) == RELEASED;
        if free {
            P::family_tables().tickets.give(latest);
        }
        overlock_core::check!(free, "a fast queue spinlock was destroyed while held");
    }
}

impl<P: FamilyPlatform> HasFacts for FastQueue<P> {
    const FACTS: Facts = Facts {
        about: "queue with one exchange to lock and one store to unlock",
        bound: Bound::Order,
        node: NeedsNode::Always,
        slow: Slow::Queued,
        ..Facts::SPINNING
    };
}

// SAFETY: each ticket found in the lock is found by one acquisition (one exchange). It returns only
// after that ticket's use was released (FL; by Q4 and the use count for `try_lock`), which the
// previous owner does in its unlock. The first ticket is released from the start.
unsafe impl<P: FamilyPlatform> RawLock for FastQueue<P> {
    type Token = FastQueueToken;

    const NAME: &'static str = "fast_queue";

    #[inline]
    fn lock(&self) -> FastQueueToken {
        let Some(context) = Context::<P>::enter() else {
            return self.lock_with_reserve();
        };
        let mine = context.spare();
        let before = self.join(mine);
        context.leave(before);
        FastQueueToken(mine)
    }

    #[inline]
    fn try_lock(&self) -> Option<FastQueueToken> {
        // FT: acquire, so that the load that follows sees this use of the ticket or a later one.
        let seen = self.latest.load(Acquire);
        // FL: acquire, pairs with FU.
        let latest = P::family_tables().tickets.get(named(seen)?);
        if latest.wait.load(Acquire) != RELEASED {
            return None;
        }
        let Some(context) = Context::<P>::enter() else {
            return self.try_lock_with_reserve(seen);
        };
        let mine = context.spare();
        let before = self.join_free(mine, seen);
        context.leave(before.unwrap_or(mine));
        before.map(|_| FastQueueToken(mine))
    }

    #[inline]
    unsafe fn unlock(&self, token: FastQueueToken) {
        let ticket = P::family_tables().tickets.get(token.0);
        // FU: (s, OWNER) -> (s, RELEASED). Release, pairs with FL. After this neither the ticket
        // nor the lock is ours.
        ticket.wait.store(RELEASED, Release);
    }

    fn is_locked(&self) -> bool {
        // FT: acquire, as in `try_lock`.
        let seen = self.latest.load(Acquire);
        let Some(latest) = named(seen) else {
            return false;
        };
        // Acquire: the second load of the word comes after this one. If the word has changed
        // meanwhile, a thread has taken the lock.
        P::family_tables().tickets.get(latest).wait.load(Acquire) != RELEASED
            || self.latest.load(Relaxed) != seen
    }

    fn is_contended(&self) -> bool {
        named(self.latest.load(Acquire)).is_some_and(|latest| {
            P::family_tables().tickets.get(latest).wait.load(Relaxed) == WAITING
        })
    }
}
