//! The ticket lock with proportional back-off: a waiter polls rarely while its turn is far.
//!
//! Rik van Riel's proposal of 2012 and 2013, against which the fast queue spinlock was measured.
//! All waiters of a ticket lock poll one word, and each poll delays the owner's next write. Here a
//! waiter with `n` others before it backs off for `n` times a delay, which estimates the time that
//! one of them takes. It adapts the delay by whether its last pauses were too short or too long.
//!
//! # Layout
//!
//! ```text
//! +---------------------------+---------------------------+
//! | tickets: as in `ticket`   | delay: iterations per     |
//! | head, tail                | waiter / 256, 0: not yet  |
//! +---------------------------+---------------------------+
//! ```
//!
//! # States
//!
//! The lock's are those of [`ticket`](super::ticket). A waiter's, with `n` between it and the
//! owner:
//!
//! ```text
//!           n > 0: pause delay × n        n = 0: poll the word
//! waiting ----------------------> load -----------------------> served
//!    ^                            |  |                             ^
//!    +-- not yet: where this was -+  +-- already our turn: the ----+
//!        not the first pause,            delay was too long,
//!        lengthen the delay (B2)         shorten it (B1)
//! ```
//!
//! # Invariants
//!
//! - I1 to I3 of [`ticket`](super::ticket): the delay decides when a waiter polls, never which
//!   waiter is served.
//! - B1: the delay never falls below one iteration of a spin loop: the subtraction is clamped.
//! - B2: it never rises above `MAX` iterations, so a waiter with `n` others before it polls again
//!   within the time of `MAX` × `n` iterations.
//! - B3: only the owner writes the delay.
//!
//! # Where the delay lives
//!
//! The first versions kept one delay a CPU for all locks, which fits none of them; later ones kept
//! a small table a CPU, hashed by the lock's address. The delay measures how long *this lock's*
//! critical sections take, so here it lies in the lock. That costs four bytes and no traffic. A
//! waiter works on a copy and writes it back when it has become the owner (B3): it has the line
//! then, and will write head into it anyway. The last write wins.
//!
//! # Orderings
//!
//! TU and TL of [`ticket`](super::ticket). The delay is a hint: relaxed throughout.
//!
//! # Fast and slow path
//!
//! The fast path and the unlock are those of [`ticket`](super::ticket). On the slow path a waiter
//! pauses once or more while others are before it, and polls as the next one.
//!
//! # Why no turn is lost
//!
//! No waiter sleeps, every pause is finite (B2), and a load follows the last of them.
//!
//! # Where this deviates from the published form
//!
//! - The delay lies in the lock, see above.
//! - `MAX` is 1,000 iterations as in the first versions, not 16,000 as in the last. When threads
//!   lose their CPUs, the delay adapts to the length of time slices, and a long delay then outlasts
//!   the handoff that it waits for. The proposal itself uses a low cap under a hypervisor. It is a
//!   type parameter.

use core::sync::atomic::Ordering::Relaxed;

use super::Ticket;
use overlock_core::facts::{Facts, HasFacts};
use overlock_core::platform::{Atomic, Pause, Platform};
use overlock_core::raw::{ConstLock, RawLock};

/// The ticket lock with proportional back-off: see the [module's page](self). 8 bytes.
///
/// `MAX` is the longest delay for each waiter ahead, in iterations of a spin loop.
#[derive(Debug)]
pub struct BackoffTicket<P: Platform, const MAX: u32 = 1_000> {
    ticket: Ticket<P>,
    delay: P::U32,
}

/// The time of one iteration of a spin loop, in the delay's unit.
const ITERATION: u32 = 256;

/// The increment after a pause that was too short: a seventh of an iteration.
const INCREMENT: u32 = ITERATION / 7;

impl<P: Platform, const MAX: u32> Default for BackoffTicket<P, MAX> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, const MAX: u32> ConstLock for BackoffTicket<P, MAX> {
    const INIT: Self = Self::new();
}

impl<P: Platform, const MAX: u32> BackoffTicket<P, MAX> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        BackoffTicket {
            ticket: Ticket::new(),
            delay: Atomic::ZERO,
        }
    }

    /// The longest delay, in the delay's unit.
    const LONGEST: u32 = {
        assert!(MAX >= 1 && MAX <= u32::MAX / ITERATION / 2);
        MAX * ITERATION
    };

    /// The delay to try where `delay` was too short (B2).
    fn longer(delay: u32) -> u32 {
        (delay + INCREMENT).min(Self::LONGEST)
    }

    /// The delay to try where `delay` was too long (B1).
    fn shorter(delay: u32) -> u32 {
        delay.saturating_sub(delay / 32 + 1).max(ITERATION)
    }

    #[cold]
    fn wait(&self, old: u32) {
        let number = self.ticket.admit(old);
        let mut delay = self.delay.load(Relaxed).clamp(ITERATION, Self::LONGEST);
        let mut pauses = 0_u32;
        loop {
            let ahead = self.ticket.ahead(number);
            if ahead == 0 {
                if pauses > 0 {
                    // The last pause was too long, by an unknown amount.
                    delay = Self::shorter(delay);
                }
                break;
            }
            // The first pause used the delay that others have left: that it was too short says
            // little.
            if pauses > 1 {
                delay = Self::longer(delay);
            }
            if ahead == 1 {
                self.ticket.wait_for(number);
                break;
            }
            let iterations = u64::from(delay) * u64::from(ahead - 1) / u64::from(ITERATION);
            P::pause(Pause::Iterations(
                u32::try_from(iterations).unwrap_or(u32::MAX),
            ));
            pauses = pauses.saturating_add(1);
        }
        // B3: the lock is ours.
        self.delay.store(delay, Relaxed);
    }
}

impl<P: Platform, const MAX: u32> HasFacts for BackoffTicket<P, MAX> {
    const FACTS: Facts = Facts {
        about: "ticket with proportional back-off",
        ..Ticket::<P>::FACTS
    };
}

// SAFETY: as for `Ticket`, which does all the work: `wait` returns only once the ticket lock serves
// our number.
unsafe impl<P: Platform, const MAX: u32> RawLock for BackoffTicket<P, MAX> {
    type Token = ();

    const NAME: &'static str = "backoff_ticket";

    #[inline]
    fn lock(&self) {
        if let Err(old) = self.ticket.draw() {
            self.wait(old);
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.ticket.try_lock()
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // SAFETY: the caller holds this lock, and so its ticket lock.
        unsafe { self.ticket.unlock(()) }
    }

    fn is_locked(&self) -> bool {
        self.ticket.is_locked()
    }

    fn is_contended(&self) -> bool {
        self.ticket.is_contended()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overlock_core::toy::{Point, Toy, as_thread, at, left};
    use std::boxed::Box;

    type Lock = BackoffTicket<Toy>;

    fn leak() -> &'static Lock {
        Box::leak(Box::new(BackoffTicket::new()))
    }

    /// Numbers out before the waiter under test.
    const AHEAD: u16 = 8;

    /// The number that is served now.
    fn served(lock: &Lock) -> u16 {
        0_u16.wrapping_sub(lock.ticket.ahead(0))
    }

    /// Plays owners that hold the lock for the time of `hold` iterations each, from `start` on,
    /// until `number` is served.
    fn serve(lock: &'static Lock, number: u16, start: u64, hold: u64) {
        at(Point::Wait, move || {
            let passed = (Toy::now().as_nanos() - start) / hold;
            let left = AHEAD - passed.min(u64::from(AHEAD)) as u16;
            while lock.ticket.ahead(number) > left {
                // SAFETY: the owners played here hold it.
                unsafe { lock.ticket.unlock(()) };
            }
            if left > 0 {
                serve(lock, number, start, hold);
            }
        });
    }

    /// Acquisitions one after another, each with `AHEAD` others before it.
    fn rounds(lock: &'static Lock, hold: u64, rounds: u16) {
        for _ in 0..rounds {
            let number = served(lock).wrapping_add(AHEAD);
            for _ in 0..AHEAD {
                let _ = lock.ticket.draw();
            }
            serve(lock, number, Toy::now().as_nanos(), hold);
            lock.lock();
            assert_eq!(served(lock), number);
            // SAFETY: just locked.
            unsafe { lock.unlock(()) };
            assert!(!lock.is_locked());
            assert_eq!(left(), 0);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "thousands of rounds")]
    fn the_delay_converges_to_the_hold_time_from_both_sides() {
        for hold in [4, 40, 200] {
            for from in [0, Lock::LONGEST] {
                let lock = leak();
                lock.delay.store(from, Relaxed);
                rounds(lock, hold, 3000);
                let iterations = f64::from(lock.delay.load(Relaxed)) / f64::from(ITERATION);
                let hold = hold as f64;
                assert!(
                    hold * 0.7 < iterations && iterations < hold * 1.3,
                    "{iterations} for {hold}, from {from}"
                );
            }
        }
    }

    /// B1: without the clamp in `shorter` the delay falls below one iteration, and with a plain
    /// subtraction of the clamped minimum it would wrap to the longest.
    #[test]
    fn a_delay_that_is_always_too_long_stops_at_one_iteration() {
        let lock = leak();
        rounds(lock, 1, 20);
        assert!(lock.delay.load(Relaxed) < 2 * ITERATION);
        let mut delay = Lock::LONGEST;
        for _ in 0..1_000 {
            let next = Lock::shorter(delay);
            assert!(next < delay || delay == ITERATION);
            delay = next;
        }
        assert_eq!(delay, ITERATION);
        assert_eq!([0, 1, ITERATION].map(Lock::shorter), [ITERATION; 3]);
    }

    /// B2: without the `min` in `longer`.
    #[test]
    fn a_delay_that_is_always_too_short_stops_at_the_maximum() {
        let mut delay = ITERATION;
        for _ in 0..10_000 {
            delay = Lock::longer(delay);
        }
        assert_eq!(delay, Lock::LONGEST);
        // In use: critical sections of twice the maximum.
        let lock = leak();
        lock.delay.store(u32::MAX, Relaxed);
        rounds(lock, 2 * 1_000, 2);
        assert_eq!(lock.delay.load(Relaxed), Lock::LONGEST);
    }

    #[test]
    fn waiters_are_served_across_the_wrap_of_the_numbers() {
        let lock = Box::leak(Box::new(Lock {
            ticket: Ticket::at_number(u16::MAX - 19),
            ..Lock::new()
        }));
        rounds(lock, 10, 20);
        assert_eq!(served(lock), 160);
    }

    #[test]
    fn the_next_waiter_does_not_pause_and_keeps_the_delay() {
        let lock = leak();
        lock.lock();
        at(Point::Wait, || {
            assert!(lock.is_contended());
            assert!(lock.try_lock().is_none());
            // SAFETY: thread 0 holds it.
            as_thread(0, || unsafe { lock.unlock(()) });
        });
        let before = Toy::now();
        as_thread(1, || lock.lock());
        assert_eq!(Toy::now().nanos_since(before), 1);
        assert_eq!(lock.delay.load(Relaxed), ITERATION);
        assert_eq!(left(), 0);
    }
}
