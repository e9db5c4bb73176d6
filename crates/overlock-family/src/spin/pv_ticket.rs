//! The paravirtual ticket lock: a ticket lock whose waiters sleep, and whose owner wakes the next
//! waiter.
//!
//! Fitzhardinge's and Vaddagiri's design, brought into Linux 3.12 by Raghavendra K T (series V13 of
//! August 2013). A ticket lock serves its waiters in order, so one waiter that has lost its CPU
//! holds up all waiters behind it, which burn theirs. Here a waiter whose spin budget is used up
//! raises a flag in the lock and halts, and the release that serves it kicks it. The order stays
//! strict, so under overcommit each handoff may still cost a wake-up: this lock does not collapse,
//! and is not fast.
//!
//! # Layout
//!
//! ```text
//!  31            17 16 15              1  0      Large: 16-bit tickets
//!  15             9  8  7              1  0      Small: 8-bit tickets
//! +----------------+--+----------------+--+
//! | tail           |  | head           | f|     HeadFlag (TailFlag: the flag is in the
//! | next number    | 0| number served  |  |     tail's bit 0, the head's is 0)
//! +----------------+--+----------------+--+
//! ```
//!
//! Numbers go up by 2. The flag f says that a waiter may sleep.
//!
//! # States
//!
//! ```text
//! (h, h)      --lock-->             (h, h+2)      ours at once
//! (h, t)      --lock-->             (h, t+2)      we wait ...
//! (h, t)      --enter; raise-->     (h|f, t)      ... and our node is in the table; then we sleep ...
//! (t, *)                                          ... until number t is served: ours
//! (h, t)      --unlock-->           (h+2, t)      h+2 is served, or the lock is free
//! (h|f, t)    --unlock; kick-->     (h+2|f, t)    and the sleeper of h+2 is kicked, if there is one
//! (n|f, n+2)  --acquired slowly-->  (n, n+2)      n was the last waiter: none sleeps
//! (n, n|f)    --unlocked-->         (n, n)        TailFlag: no waiter has come meanwhile
//! (h, t)      --refuse-->           (h, t)        Small: too many wait
//! (h, n+2)    --refuse-->           (h, n)        Large: too many wait; number n was never drawn
//! (n, *)      --refuse-->           (n+2, *)      Large, with later numbers out: n's turn is passed on
//! ```
//!
//! # Invariants
//!
//! - V1: head moves by the owner's unlock alone, and numbers are served in the order of drawing.
//! - V2: a waiter sleeps only after it has entered its node into the table, then raised the flag,
//!   then rechecked head, in this order; raising is a read-modify-write even where the flag is up.
//! - V3: the flag comes down only in an operation that proves no number but the owner's to be out.
//! - V4: with [`HeadFlag`], an unlock does not touch the lock after its read-modify-write.
//! - V5: there is always a number that is not out: if all were, a held lock would look free. Each
//!   [width](Width) refuses further threads before that, in its own way.
//!
//! # Orderings
//!
//! - PU, acquire and release on the word in the unlock, pairs with PL, the acquire load (or draw)
//!   of the next owner: what happened under the lock.
//! - PR, the release in raising the flag, pairs with PU's acquire: the waiter's entry in the table
//!   is seen by every unlock that sees the flag it raised. Every change of the word in between is a
//!   read-modify-write, so the chain does not break.
//!
//! # Fast and slow path
//!
//! The fast path is the draw, as in [`ticket`](super::ticket). The slow path polls the word for
//! `SPIN` polls, then sleeps (V2), and starts over. An unlock is one addition to head; only if the
//! flag is up does it search the table.
//!
//! # Why no wake-up is lost
//!
//! Raising the flag and serving a number are read-modify-writes of one word, so one comes first. If
//! the raise does, the unlock sees the flag, and so the entry (PR), and kicks; the halt word has
//! changed then, and the halt returns or does not begin. If the unlock does, the raise
//! returns a head that is ours, and the waiter does not sleep (a "pickup"). The published form
//! needs a full fence on both sides, since it stores to the head and reads the tail; one word has
//! one order, and needs none.
//!
//! The flag stays up while a waiter that raised it has not been served (V3). After a spurious
//! wake-up a waiter spins again, and then starts V2 from its beginning.
//!
//! # Nesting
//!
//! Published, a CPU has one (lock, ticket) slot. An interrupt handler that waits slowly overwrites
//! the slot of the code it interrupts, which survives only since the interrupt also ends its halt.
//! A non-maskable interrupt must not sleep at all. Here each context of a thread enters a node of
//! its own ([`NodeGuard`]). So a handler that waits slowly for another lock while its thread
//! sleeps leaves the thread's entry alone, and may itself be interrupted. A waiter spins on instead
//! of sleeping in a fifth context, on a thread without a slot, or where its table line is full.
//!
//! # Where this deviates from the published form
//!
//! - The flag lies in the head by default, see [`HeadFlag`] and [`TailFlag`].
//! - The waiter is found through a hash table (`waiters.rs`), not by scanning all CPUs' slots.
//! - Too many waiters are refused (V5). Published, the number of CPUs bounds them.
//! - Ticket width and flag place are types, chosen at build time. The kernel patches its unlock at
//!   boot; a native lock is [`Ticket`](super::Ticket) here, and pays for none of this.

mod flag;
#[cfg(test)]
mod tests;
pub(crate) mod waiters;
mod width;

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

pub use flag::{HeadFlag, SlowFlag, TailFlag};
pub use width::{Large, Small, Width};
use width::{STEP, move_tail, next, out, served};

use crate::tables::FamilyPlatform;
use overlock_core::facts::{Bound, Facts, HasFacts, NeedsNode, Waiting};
use overlock_core::node::NodeGuard;
use overlock_core::platform::{Atomic, Platform, Spin};
use overlock_core::raw::{ConstLock, RawLock};
use overlock_core::stat::{self, Event, Latency};

/// The paravirtual ticket lock: see the [module's page](self). 4 bytes, [`Small`] 2.
///
/// `SPIN` is a waiter's spin budget before it sleeps, in polls; 2^15 is the published threshold.
#[derive(Debug)]
pub struct PvTicket<
    P: Platform,
    W: Width = Large,
    F: SlowFlag = HeadFlag,
    const SPIN: u32 = { 1 << 15 },
> {
    word: W::Word<P>,
    _flag: PhantomData<F>,
}

/// [`PvTicket`] with 8-bit tickets.
pub type PvTicketSmall<P> = PvTicket<P, Small>;

/// [`PvTicket`] as published, its flag in the tail: see [`TailFlag`] for its fault.
pub type PvTicketTailFlag<P> = PvTicket<P, Large, TailFlag>;

impl<P: Platform, W: Width, F: SlowFlag, const SPIN: u32> PvTicket<P, W, F, SPIN> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        PvTicket {
            word: Atomic::ZERO,
            _flag: PhantomData,
        }
    }
}

impl<P: Platform, W: Width, F: SlowFlag, const SPIN: u32> Default for PvTicket<P, W, F, SPIN> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, W: Width, F: SlowFlag, const SPIN: u32> ConstLock for PvTicket<P, W, F, SPIN> {
    const INIT: Self = Self::new();
}

impl<P: FamilyPlatform, W: Width, F: SlowFlag, const SPIN: u32> PvTicket<P, W, F, SPIN> {
    #[cold]
    fn wait(&self, old: u32) {
        let number = next::<W>(old);
        if out::<W>(old) >= W::LIMIT {
            self.refuse(number);
        }
        let seen = loop {
            // PL: acquire, pairs with PU.
            let waited = W::wait_until::<P>(&self.word, Spin::Polls(SPIN), |word| {
                served::<W>(word) == number
            });
            match waited {
                Ok(seen) => break seen,
                Err(_) => self.sleep(number),
            }
        };
        F::acquired::<P, W>(&self.word, number, seen);
    }

    /// Sleeps until kicked for `number`; returns for other reasons too.
    fn sleep(&self, number: u32) {
        stat::count::<P>(Event::TakenSlow);
        let Some(guard) = NodeGuard::<P>::new() else {
            return stat::count::<P>(Event::LockNoNode);
        };
        let key = ptr::from_ref(&self.word).addr();
        // V2: enter ...
        let Some(entry) = waiters::enter(key, number / STEP, &guard) else {
            return stat::count::<P>(Event::LockNoNode);
        };
        // ... raise: (h, t) -> (h|f, t). PR: release, pairs with PU ...
        let seen = W::raise::<P>(&self.word, F::bits::<W>());
        // ... recheck.
        if served::<W>(seen) == number {
            return stat::count::<P>(Event::TakenSlowPickup);
        }
        stat::timed::<P, _>(Latency::TimeBlocked, || entry.halt());
        if stat::is_on() && served::<W>(W::load::<P>(&self.word, Relaxed)) != number {
            stat::count::<P>(Event::TakenSlowSpurious);
        }
    }

    /// Gives up `number` and panics. Takes the number back if it is the last one drawn, else passes
    /// its turn on.
    #[cold]
    fn refuse(&self, number: u32) -> ! {
        let last = |word| next::<W>(word) == width::after::<W>(number);
        loop {
            // PL: acquire where the turn has come, pairs with PU.
            let seen = W::wait_until::<P>(&self.word, Spin::Forever, |word| {
                last(word) || served::<W>(word) == number
            })
            .unwrap_or_else(|word| word);
            if !last(seen) {
                // SAFETY: it is our turn: we hold the lock.
                unsafe { self.unlock(()) };
                break;
            }
            // (h, n+2) -> (h, n). Relaxed: nothing was touched under the lock, and a
            // read-modify-write continues the release sequence of the last PU.
            if W::exchange::<P>(&self.word, seen, move_tail::<W>(seen, -1), Relaxed) {
                break;
            }
        }
        refused::<W>();
    }
}

#[cold]
fn refused<W: Width>() -> ! {
    panic!(
        "paravirtual ticket lock: more than {} threads hold or wait for one lock with {}-bit tickets",
        W::LIMIT,
        W::BITS
    );
}

/// The rows differ in the numbers' width and the flag's place.
const fn facts<W: Width>(about: &'static str) -> Facts {
    Facts {
        about,
        bound: Bound::Order,
        waiting: Waiting::SpinsLong,
        most_threads: Some(W::LIMIT as usize),
        node: NeedsNode::Sleep,
        ..Facts::SPINNING
    }
}

impl<P: Platform, const SPIN: u32> HasFacts for PvTicket<P, Large, HeadFlag, SPIN> {
    const FACTS: Facts =
        facts::<Large>("paravirtual ticket: waiters halt and are kicked; 16-bit numbers");
}

impl<P: Platform, const SPIN: u32> HasFacts for PvTicket<P, Small, HeadFlag, SPIN> {
    const FACTS: Facts = facts::<Small>("pv_ticket with 8-bit numbers");
}

/// Its unlock touches the lock after it has released it.
impl<P: Platform, const SPIN: u32> HasFacts for PvTicket<P, Large, TailFlag, SPIN> {
    const FACTS: Facts = Facts {
        freed_by_last_user: false,
        ..facts::<Large>(
            "pv_ticket as first published: its unlock touches the lock after releasing it",
        )
    };
}

// SAFETY: no number is out twice (V5), `lock` returns only while head is its number, `try_lock`
// only where no number was out, and head moves on by the holder's unlock alone (V1).
unsafe impl<P: FamilyPlatform, W: Width, F: SlowFlag, const SPIN: u32> RawLock
    for PvTicket<P, W, F, SPIN>
{
    type Token = ();

    const NAME: &'static str = match (W::BITS, F::IN_TAIL) {
        (Large::BITS, false) => "pv_ticket",
        (Large::BITS, true) => "pv_ticket_tail_flag",
        (_, false) => "pv_ticket_small",
        (_, true) => "pv_ticket_small_tail_flag",
    };

    #[inline]
    fn lock(&self) {
        // (h, t) -> (h, t+2). Acquire: where head is our number, this is PL and pairs with PU.
        match W::draw::<P>(&self.word) {
            Some(old) if served::<W>(old) == next::<W>(old) => {}
            Some(old) => self.wait(old),
            None => refused::<W>(),
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        let old = W::load::<P>(&self.word, Relaxed);
        if served::<W>(old) != next::<W>(old) {
            return None;
        }
        // (h, h) -> (h, h+2), the flag staying. Acquire: PL, pairs with PU.
        W::exchange::<P>(&self.word, old, move_tail::<W>(old, 1), Acquire).then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        overlock_core::check!(
            self.is_locked(),
            "unlock of a paravirtual ticket lock that is free"
        );
        F::release::<P, W>(&self.word);
    }

    fn is_locked(&self) -> bool {
        out::<W>(W::load::<P>(&self.word, Relaxed)) > 0
    }

    fn is_contended(&self) -> bool {
        out::<W>(W::load::<P>(&self.word, Relaxed)) > 1
    }
}
