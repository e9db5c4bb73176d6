//! The ticket lock: first come, first served, by number.
//!
//! The baseline of the paravirtual ticket lock (Fitzhardinge and others, 2013) and of the fast
//! queue spinlock (Lespinasse, 2013). A waiter draws a number; the owner serves the next one.
//! All waiters poll the same word, so each release is read by all of them. A waiter that has lost
//! its CPU blocks all waiters behind it: under overcommit this lock collapses.
//!
//! # Layout
//!
//! ```text
//!  31            16 15             0
//! +----------------+----------------+
//! | tail           | head           |
//! | next number    | number served  |
//! +----------------+----------------+
//! ```
//!
//! The lock is free where head == tail. The tail is the high half, so that its overflow
//! falls out of the word and not into the head.
//!
//! # States
//!
//! ```text
//! (h, h)    --lock-->    (h, h+1)     ours at once, number h
//! (h, t)    --lock-->    (h, t+1)     we wait ...
//! (t, *)                              ... until number t is served: ours
//! (h, t)    --unlock-->  (h+1, t)     number h+1 is served, or the lock is free
//! (h, t+1)  --refuse-->  (h, t)       too many wait; number t was never drawn
//! (t, *)    --refuse-->  (t+1, *)     the same with later numbers out: t's turn is passed on
//! ```
//!
//! # Invariants
//!
//! - I1: only the owner changes head, so it may store it without a load before (TU).
//! - I2: numbers are served in the order in which they were drawn.
//! - I3: fewer than 65,536 numbers are out. One more would make a held lock look free. A thread
//!   that draws with [`LIMIT`] numbers out takes its number back and panics. If a later number is
//!   out already, it waits for its turn, passes it on, and then panics. Drawing is one addition,
//!   without a check before it. So the numbers beyond the limit are out between drawing and taking
//!   back: the lock would break if 8,192 threads were at that point at once, behind 57,344 that
//!   wait.
//!
//! # Orderings
//!
//! - TU, the release store of head, pairs with TL, the acquire load of head in the waiter that is
//!   served next (or in the drawing operation itself, where nobody waited).
//!
//! # Fast and slow path
//!
//! The fast path is the addition that draws a number: it returns the head too, and the lock is ours
//! if that is our number. The slow path polls the word until head is our number. An unlock is one
//! store.
//!
//! # Why no turn is lost
//!
//! No waiter sleeps. A waiter compares head with its own number, never with the tail: whether the
//! lock looks free does not matter to it, and under load the lock never does.
//!
//! # Where this deviates from the published form
//!
//! It refuses more than 57,344 waiters (I3). The published lock relies on the number of CPUs being
//! below the number of tickets; threads have no such bound.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_core::facts::{Bound, Facts, HasFacts};
use overlock_core::platform::{Atomic, Lanes, Platform, Spin};
use overlock_core::raw::{ConstLock, RawLock};

/// The ticket lock: see the [module's page](self). 4 bytes.
#[derive(Debug)]
pub struct Ticket<P: Platform> {
    tickets: P::U32,
}

/// One number drawn: 1 in the tail.
const DRAW: u32 = 1 << 16;

/// Numbers that may be out before a draw: seven eighths of all (I3).
pub const LIMIT: u16 = 0xe000;

fn head(tickets: u32) -> u16 {
    tickets as u16
}

fn tail(tickets: u32) -> u16 {
    (tickets >> 16) as u16
}

impl<P: Platform> Default for Ticket<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> ConstLock for Ticket<P> {
    const INIT: Self = Self::new();
}

impl<P: Platform> Ticket<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        Ticket {
            tickets: Atomic::ZERO,
        }
    }

    /// A free lock that serves `number` next.
    #[cfg(test)]
    pub(super) fn at_number(number: u16) -> Self {
        Ticket {
            tickets: P::U32::new(u32::from(number) << 16 | u32::from(number)),
        }
    }

    /// Draws a number: `Ok` where the lock is ours, else the word before the draw.
    #[inline]
    pub(super) fn draw(&self) -> Result<(), u32> {
        // (h, t) -> (h, t+1). Acquire: where head is our number, this is TL and pairs with TU.
        let old = self.tickets.fetch_add(DRAW, Acquire);
        if head(old) == tail(old) {
            Ok(())
        } else {
            Err(old)
        }
    }

    /// Returns the number drawn with `old`, the word before the draw.
    ///
    /// # Panics
    ///
    /// If too many numbers were out (I3), after giving ours up.
    pub(super) fn admit(&self, old: u32) -> u16 {
        let number = tail(old);
        if number.wrapping_sub(head(old)) >= LIMIT {
            self.refuse(number);
        }
        number
    }

    /// Returns how many numbers are still to be served before `number`. Acquire where that is 0:
    /// TL, pairs with TU.
    #[inline]
    pub(super) fn ahead(&self, number: u16) -> u16 {
        number.wrapping_sub(head(self.tickets.load(Acquire)))
    }

    #[cold]
    fn wait(&self, old: u32) {
        self.wait_for(self.admit(old));
    }

    /// Waits, awake, until `number` is served.
    pub(super) fn wait_for(&self, number: u16) {
        // The condition has a copy of the number: simulations of hundreds of waiters are slower if
        // it refers to the stack of each.
        // TL: acquire, pairs with TU.
        let is_served = move |tickets: u32| head(tickets) == number;
        let _ = P::wait_until(&self.tickets, Acquire, Spin::Forever, is_served);
    }

    #[cold]
    fn refuse(&self, number: u16) -> ! {
        let next = number.wrapping_add(1);
        loop {
            // TL: acquire where the turn has come, pairs with TU.
            let seen = P::wait_until(&self.tickets, Acquire, Spin::Forever, |tickets: u32| {
                tail(tickets) == next || head(tickets) == number
            })
            .unwrap_or_else(|last| last);
            if tail(seen) != next {
                // SAFETY: it is our turn: we hold the lock.
                unsafe { self.unlock(()) };
                break;
            }
            // (h, n+1) -> (h, n): no thread has drawn since. Relaxed: where h == n this frees the
            // lock, but we have touched nothing under it, and a read-modify-write continues the
            // release sequence of the last TU.
            let undo = seen.wrapping_sub(DRAW);
            if self
                .tickets
                .compare_exchange(seen, undo, Relaxed, Relaxed)
                .is_ok()
            {
                break;
            }
        }
        panic!("ticket lock: more than {LIMIT} threads wait for one lock");
    }
}

impl<P: Platform> HasFacts for Ticket<P> {
    const FACTS: Facts = Facts {
        about: "first come, first served, by number",
        bound: Bound::Order,
        most_threads: Some(LIMIT as usize),
        ..Facts::SPINNING
    };
}

// SAFETY: a number is drawn once until the tail has wrapped, which I3 rules out. `lock` returns
// only while head is its number, `try_lock` only where no number was out. Head moves on by the
// holder's unlock alone (I1).
unsafe impl<P: Platform> RawLock for Ticket<P> {
    type Token = ();

    const NAME: &'static str = "ticket";

    #[inline]
    fn lock(&self) {
        if let Err(old) = self.draw() {
            self.wait(old);
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        let old = self.tickets.load(Relaxed);
        if head(old) != tail(old) {
            return None;
        }
        // (h, h) -> (h, h+1). The whole word is compared: with the tail alone, a lock whose numbers
        // have wrapped in between would pass for free. Acquire: TL, pairs with TU.
        self.tickets
            .compare_exchange(old, old.wrapping_add(DRAW), Acquire, Relaxed)
            .ok()
            .map(drop)
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        let tickets = self.tickets.load(Relaxed);
        let served = head(tickets);
        overlock_core::check!(
            served != tail(tickets),
            "unlock of a ticket lock that is free"
        );
        // TU: (h, t) -> (h+1, t). Release, pairs with TL. A store suffices (I1).
        self.tickets.low_store(served.wrapping_add(1), Release);
    }

    fn is_locked(&self) -> bool {
        let tickets = self.tickets.load(Relaxed);
        head(tickets) != tail(tickets)
    }

    fn is_contended(&self) -> bool {
        let tickets = self.tickets.load(Relaxed);
        tail(tickets).wrapping_sub(head(tickets)) > 1
    }
}

#[cfg(test)]
mod tests;
