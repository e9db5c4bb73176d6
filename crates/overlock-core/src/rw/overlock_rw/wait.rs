//! Those that cannot acquire at once.

use core::sync::atomic::Ordering::{self, Acquire, Relaxed};

use super::states::Step;
use super::{
    BARGE_DELAY_NS, CLOSED, FIRST, FULL, OTHERS, OverlockRw, Passing, READER, READERS, Refused,
    SHUT, UPGRADABLE, WRITING, counted, is_awaited, kick_all,
};
use crate::platform::{Atomic, Deadline, Platform, Spin};
use crate::raw::{RawLock, RawTimedLock};

/// How long the gate's owner, the upgrader, and a reader beside a writer watch the word before they
/// sleep. Most sections are shorter, and an owner that has lost its CPU is away for a thousand
/// times as long.
pub(super) const SPIN_NS: u64 = 5_000;

/// A thread that finds the lock busy stays away from the word for so long before it looks again,
/// each time. Most sections are over after the first few looks, and between CPUs that share a cache
/// nothing is gained by staying backoff. Between others most of what a short section takes is the
/// word's way from CPU to CPU; meanwhile it stays with one, which gets more done than two would.
/// The times double, so that nobody stays away for much longer than it had to wait.
pub(super) const BACKOFF_NS: [u64; 14] = [0, 0, 0, 0, 0, 0, 0, 0, 100, 200, 400, 800, 1_600, 3_200];

/// Who has less time than this goes to the gate at once. Else a writer with short limits that tries
/// again and again never closes the lock.
pub(super) const MIN_SPIN_NS: u64 = 100_000;

/// What the gate's owner waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Write,
    Upgradable,
}

impl Want {
    /// Whether it can have it. Flags of sleepers are no obstacle, nor is its own closed.
    fn is_free(self, word: u32) -> bool {
        match self {
            Want::Write => word & !(CLOSED | FIRST | OTHERS) == 0,
            Want::Upgradable => word & (WRITING | UPGRADABLE) == 0,
        }
    }

    /// Whether it lets nobody pass from now on, however short its wait: there are readers alone,
    /// and as long as others come in there may always be.
    fn closes(self, word: u32) -> bool {
        self == Want::Write && word & READERS != 0 && word & (WRITING | CLOSED) == 0
    }

    /// What it makes of a word that is free.
    fn taken(self, word: u32) -> u32 {
        match self {
            // Readers that sleep go on sleeping, now for the writer.
            Want::Write => WRITING | word & OTHERS,
            Want::Upgradable => (word & !(CLOSED | FIRST | OTHERS)) + (READER | UPGRADABLE),
        }
    }
}

pub(super) fn is_over<P: Platform>(until: Option<Deadline>) -> bool {
    until.is_some_and(Deadline::is_over::<P>)
}

/// How long there is until `until`.
fn time_left<P: Platform>(until: Option<Deadline>) -> u64 {
    until.map_or(u64::MAX, Deadline::nanos_left::<P>)
}

impl<P: Platform> OverlockRw<P> {
    /// [`try_write_now`](Self::try_write_now) for those that have reason to look first.
    pub(super) fn try_write_if_free(&self) -> bool {
        self.word.load(Relaxed) == 0 && self.try_write_now()
    }

    /// Watches the word for a while.
    pub(super) fn spin(
        &self,
        order: Ordering,
        until: Option<Deadline>,
        done: impl Fn(u32) -> bool,
    ) -> Result<u32, u32> {
        let end = Deadline::earlier::<P>(until, P::now().plus_nanos(SPIN_NS));
        P::wait_until(&self.word, order, Spin::Until(end), done)
    }

    /// Says in the word, if it is still `seen`, that the caller sleeps, and does; until it changes,
    /// or `until`.
    pub(super) fn sleep(&self, seen: u32, flags: u32, until: Option<Deadline>, step: Step) {
        let asleep = seen | flags;
        // Relaxed: it publishes nothing, and the halt looks at the word.
        let exchange = self.word.compare_exchange(seen, asleep, Relaxed, Relaxed);
        if exchange.is_ok() {
            step.taken::<P>();
            P::halt(&self.word, asleep, until);
        }
    }

    /// A reader that has counted itself in vain. Unlike one that leaves it may touch the
    /// lock once more, and clears what it kicks for: others that come in vain need not kick again.
    #[cold]
    pub fn back_out(&self) {
        // (w, n + 1) -> (w, n). Relaxed: it has read nothing.
        let before = self.word.fetch_sub(READER, Relaxed);
        Step::BackOut.taken::<P>();
        if before & (FIRST | OTHERS) != 0 && is_awaited(before) {
            // While this one was counted, who left did not find itself the last.
            self.word.fetch_and(!(FIRST | OTHERS), Relaxed);
            Step::BackOutKicks.taken::<P>();
            kick_all::<P>(&self.word);
        }
    }

    /// A reader that has come in vain: one call, so that where none is needed nothing has to be
    /// saved for it.
    #[cold]
    #[inline(never)]
    pub(super) fn read_after_conflict(&self) {
        self.back_out();
        counted(self.read_slow(Passing::Never, None));
    }

    #[cold]
    pub(super) fn read_slow(
        &self,
        passing: Passing,
        until: Option<Deadline>,
    ) -> Result<(), Refused> {
        // Others may wait for what a reader that passes at once reads already. The clock is not
        // read by those that need not sleep.
        let mut barge_at = (passing == Passing::AtOnce).then(P::now);
        let mut backoff = BACKOFF_NS.iter();
        loop {
            let waited = barge_at.is_some_and(|end| P::now() >= end);
            let shut = match passing {
                Passing::AtOnce | Passing::Later if waited => WRITING,
                _ => SHUT,
            };
            let opens = |word: u32| word & shut == 0 || waited && word & shut == WRITING;
            // Relaxed: the addition acquires.
            let seen = self.word.load(Relaxed);
            if opens(seen) {
                // (w, n) -> (w, n + 1). RA: acquire, pairs with WU.
                let before = self.word.fetch_add(READER, Acquire);
                if before & FULL != 0 {
                    self.back_out();
                    return Err(Refused::Full);
                }
                if before & shut == 0 {
                    Step::ReadLate.taken::<P>();
                    return Ok(());
                }
                if opens(before) {
                    Step::CountBehindWriter.taken::<P>();
                    return self.wait_counted(until);
                }
                self.back_out();
            }
            if is_over::<P>(until) {
                return Err(Refused::Late);
            }
            if let Some(&nanos) = backoff.next() {
                P::yield_slice(P::ticks());
                P::delay(nanos.min(time_left::<P>(until)));
            } else if seen & shut != 0 {
                let end = *barge_at.get_or_insert_with(|| P::now().plus_nanos(BARGE_DELAY_NS));
                let until = match passing {
                    Passing::Later if !waited => Some(Deadline::earlier::<P>(until, end).into()),
                    _ => until,
                };
                self.sleep(seen, OTHERS, until, Step::ReaderSleeps);
                backoff = BACKOFF_NS.iter();
            }
        }
    }

    /// A reader that is counted: waits until no writer is inside.
    fn wait_counted(&self, until: Option<Deadline>) -> Result<(), Refused> {
        loop {
            // (1, n) -> (0, n) by the writer. RA: acquire, pairs with WU.
            let seen = match self.spin(Acquire, until, |word| word & WRITING == 0) {
                Ok(_) => {
                    Step::ShareBegins.taken::<P>();
                    return Ok(());
                }
                Err(seen) => seen,
            };
            if is_over::<P>(until) {
                Step::CountedGivesUp.taken::<P>();
                self.leave();
                return Err(Refused::Late);
            }
            self.sleep(seen, OTHERS, until, Step::CountedSleeps);
        }
    }

    #[cold]
    pub(super) fn write_slow(&self, until: Option<Deadline>) -> bool {
        self.pass_gate(Want::Write, until, Self::try_write_if_free)
    }

    /// Attempts it a few times, then waits for it at the gate.
    pub(super) fn pass_gate(
        &self,
        want: Want,
        until: Option<Deadline>,
        attempt: impl Fn(&Self) -> bool,
    ) -> bool {
        if time_left::<P>(until) > MIN_SPIN_NS {
            for nanos in BACKOFF_NS {
                P::yield_slice(P::ticks());
                P::delay(nanos);
                if attempt(self) {
                    return true;
                }
            }
        }
        match until {
            None => self.gate.lock(),
            Some(until) => {
                if self.gate.lock_until(until).is_none() {
                    return false;
                }
            }
        }
        let acquired = self.wait_at_gate(want, until);
        // SAFETY: the caller owns it since a few lines above, and its token is ().
        unsafe { self.gate.unlock(()) };
        acquired
    }

    /// The caller owns the gate.
    fn wait_at_gate(&self, want: Want, until: Option<Deadline>) -> bool {
        let barge_at = P::now().plus_nanos(BARGE_DELAY_NS);
        loop {
            // Relaxed: the exchange acquires.
            let polled = self.spin(Relaxed, until, |word| {
                want.is_free(word) || want.closes(word)
            });
            let seen = match polled {
                Ok(seen) if want.is_free(seen) => {
                    if self.take(want, seen) {
                        return true;
                    }
                    continue;
                }
                Ok(_) => {
                    self.word.fetch_or(CLOSED, Relaxed);
                    Step::Close.taken::<P>();
                    continue;
                }
                Err(seen) => seen,
            };
            if is_over::<P>(until) {
                self.give_up();
                return false;
            }
            let (flags, step) = match P::now() >= barge_at {
                true => (FIRST | CLOSED, Step::FirstCloses),
                false => (FIRST, Step::FirstSleeps),
            };
            self.sleep(seen, flags, until, step);
        }
    }

    /// The gate's owner has found the lock free for what it wants.
    fn take(&self, want: Want, seen: u32) -> bool {
        // (0, 0) -> (1, 0), or (0, n) -> (0, n + 1) U. WA: acquire, pairs with RU and WU.
        let taken = self
            .word
            .compare_exchange(seen, want.taken(seen), Acquire, Relaxed)
            .is_ok();
        if taken && want == Want::Write {
            Step::WriteAtGate.taken::<P>();
        } else if taken {
            Step::UpgradableAtGate.taken::<P>();
            if seen & OTHERS != 0 {
                // I3: readers slept because it had closed the lock.
                kick_all::<P>(&self.word);
            }
        }
        taken
    }

    /// The gate's owner leaves without the lock.
    fn give_up(&self) {
        // I2, I3
        let before = self.word.fetch_and(!(CLOSED | FIRST | OTHERS), Relaxed);
        Step::FirstGivesUp.taken::<P>();
        if before & OTHERS != 0 {
            kick_all::<P>(&self.word);
        }
    }
}
