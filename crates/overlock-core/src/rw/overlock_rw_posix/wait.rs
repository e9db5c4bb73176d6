//! Those that cannot acquire at once.

use core::ptr;
use core::sync::atomic::Ordering::{self, Acquire, Relaxed};

use super::states::Step;
use super::{
    ASLEEP, CLOSED, FULL, OverlockRwPosix, PASSING, PATIENCE_NS, Passing, READER, READERS, Refused,
    WRITING,
};
use crate::platform::{Atomic, Instant, Platform, Spin};
use crate::raw::{RawLock, RawTimedLock};

/// How long the gate's owner, or a reader that passes, watches the word before it sleeps. Most sections are shorter, and an owner that has lost its CPU
/// is away for a thousand times as long.
pub(super) const SPIN_NS: u64 = 5_000;

/// Who finds the lock busy stays away from the word for so long before it looks again, each time. Where sections are short, most of what they take is
/// the word's way from CPU to CPU; meanwhile it stays with one, which gets more done than two would. The first times are for owners that are about to leave.
pub(super) const AWAY_NS: [u64; 3] = [200, 1_600, 12_800];

/// Where a look takes longer than this the CPUs are far apart: then who stays away does so for this long at least. That is for short sections which follow
/// each other closely; with some more work in between they get less done so (docs/locks/overlock_rw_posix.md, Measured).
pub(super) const FAR_NS: u64 = 64;
pub(super) const FAR_AWAY_NS: u64 = 6_400;

/// Who has less time than this goes to the gate at once.
pub(super) const AMPLE_NS: u64 = 100_000;

/// `end`, or `limit` where that comes before.
fn earlier(limit: Option<Instant>, end: Instant) -> Instant {
    limit.map_or(end, |limit| limit.min(end))
}

fn is_over<P: Platform>(until: Option<Instant>) -> bool {
    until.is_some_and(|until| P::now() >= until)
}

impl<P: Platform> OverlockRwPosix<P> {
    /// A writer that waits for the word.
    #[inline]
    fn exchange(&self, seen: u32) -> bool {
        // (0, 0) -> (1, 0). WA: acquire, pairs with RU and WU.
        let written = self
            .word
            .compare_exchange(seen, WRITING, Acquire, Relaxed)
            .is_ok();
        if written {
            Step::WriteAtGate.taken::<P>();
        }
        written
    }

    /// Stays away from the word, and tries again, a few times.
    fn try_later(&self, until: Option<Instant>, attempt: impl Fn(&Self) -> bool) -> bool {
        if until.is_some_and(|until| until.nanos_since(P::now()) < AMPLE_NS) {
            return false;
        }
        let look = P::looks().map(|looks| looks.at(P::spread(ptr::from_ref(self).addr())));
        let least = match look {
            Some(look) if look.nanos() > FAR_NS => FAR_AWAY_NS,
            _ => 0,
        };
        AWAY_NS.into_iter().any(|nanos| {
            let now = P::delay(nanos.max(least));
            if let Some(look) = look {
                // A load, and nothing that the attempt may do besides.
                look.sample::<P>(now, || {
                    self.word.load(Relaxed);
                });
            }
            attempt(self)
        })
    }

    fn lock_gate(&self, until: Option<Instant>) -> bool {
        match until {
            None => {
                self.gate.lock();
                true
            }
            Some(until) => self.gate.lock_until(until).is_some(),
        }
    }

    fn open_gate(&self) {
        // SAFETY: the callers own it, and its token is ().
        unsafe { self.gate.unlock(()) };
    }

    /// Watches the word for a while.
    fn spin(
        &self,
        order: Ordering,
        until: Option<Instant>,
        done: impl Fn(u32) -> bool,
    ) -> Result<u32, u32> {
        let end = earlier(until, P::now().plus_nanos(SPIN_NS));
        P::wait_until(&self.word, order, Spin::Until(end), done)
    }

    /// Says in the word, if it is still `seen`, that the caller sleeps, and does; until it changes, or `until`.
    fn sleep(&self, seen: u32, flags: u32, until: Option<Instant>, step: Step) {
        let asleep = seen | flags;
        // Relaxed: it publishes nothing, and the halt looks at the word.
        let exchange = self.word.compare_exchange(seen, asleep, Relaxed, Relaxed);
        if exchange.is_ok() {
            step.taken::<P>();
            P::halt(&self.word, asleep, until);
        }
    }

    #[cold]
    pub(super) fn read_slow(
        &self,
        passing: Passing,
        until: Option<Instant>,
    ) -> Result<(), Refused> {
        let patience = match passing {
            // Others may wait for what it reads already.
            Passing::AtOnce => return self.read_beside(PASSING, until),
            Passing::Later => Some(earlier(until, P::now().plus_nanos(PATIENCE_NS))),
            Passing::Never => until,
        };
        if self.try_later(until, Self::enter_if_open) {
            return Ok(());
        }
        if !self.lock_gate(patience) {
            return match passing {
                Passing::Later if !is_over::<P>(until) => self.read_beside(PASSING, until),
                _ => Err(Refused::Late),
            };
        }
        let result = self.read_beside(ASLEEP, until);
        self.open_gate();
        result
    }

    /// A reader counts itself, whoever waits, and waits until no writer is inside. `flag` tells wakers who it is: `ASLEEP` for the
    /// gate's owner, else `PASSING`.
    fn read_beside(&self, flag: u32, until: Option<Instant>) -> Result<(), Refused> {
        // (w, n) -> (w, n + 1). RA: acquire, pairs with WU.
        let before = self.word.fetch_add(READER, Acquire);
        if before & FULL != 0 {
            self.leave();
            return Err(Refused::Full);
        }
        if before & WRITING == 0 {
            Step::ReadPast.taken::<P>();
            return Ok(());
        }
        Step::ReadBeside.taken::<P>();
        loop {
            // (1, n) -> (0, n) by the writer. RA: acquire, pairs with WU.
            let seen = match self.spin(Acquire, until, |word| word & WRITING == 0) {
                Ok(_) => {
                    Step::Share.taken::<P>();
                    return Ok(());
                }
                Err(seen) => seen,
            };
            if is_over::<P>(until) {
                // I2. Others may still need PASSING.
                self.word.fetch_and(!(flag & ASLEEP), Relaxed);
                Step::ReaderGivesUp.taken::<P>();
                self.leave();
                return Err(Refused::Late);
            }
            self.sleep(seen, flag, until, Step::of_reader(flag));
        }
    }

    #[cold]
    pub(super) fn write_slow(&self, until: Option<Instant>) -> bool {
        if self.try_later(until, Self::seize_if_free) {
            return true;
        }
        if !self.lock_gate(until) {
            return false;
        }
        let written = self.write_at_gate(until);
        self.open_gate();
        written
    }

    /// A writer that has the gate.
    fn write_at_gate(&self, until: Option<Instant>) -> bool {
        let patience = P::now().plus_nanos(PATIENCE_NS);
        loop {
            // Relaxed: the exchange acquires.
            let seen = match self.spin(Relaxed, until, |word| word & !(CLOSED | ASLEEP) == 0) {
                Ok(free) => {
                    if self.exchange(free) {
                        return true;
                    }
                    continue;
                }
                Err(seen) => seen,
            };
            if is_over::<P>(until) {
                // I2
                self.word.fetch_and(!(CLOSED | ASLEEP), Relaxed);
                Step::WriterGivesUp.taken::<P>();
                return false;
            }
            if seen & (READERS | CLOSED) != 0 || P::now() >= patience {
                self.sleep(seen, ASLEEP | CLOSED, until, Step::WriterCloses);
            } else {
                let until = Some(earlier(until, patience));
                self.sleep(seen, ASLEEP, until, Step::WriterSleeps);
            }
        }
    }
}
