//! Slow paths.

use core::ptr;
use core::sync::atomic::Ordering::{self, Acquire, Relaxed};

use super::{
    BARGE_DELAY_NS, CLOSED, FIRST, FULL, OTHERS, OverlockRw, Passing, READER, READERS, RESERVED,
    Refused, SHUT, UPGRADABLE, WRITING, counted, is_awaited, kick_all,
};
use crate::platform::{Atomic, Deadline, FutexPlatform, Pause, Spin};
use crate::raw::{RawLock, RawTimedLock};

/// The spin of the gate's owner, the upgrader, and a counted reader on the word before they sleep.
/// Most sections are shorter, and an owner that has lost its CPU is away for a thousand times as
/// long.
pub(super) const SPIN_NS: u64 = 5_000;

/// The back-off before each poll of a busy lock.
///
/// Most sections are over after the first few polls, and between CPUs that share a cache a back-off
/// gains nothing. Between other CPUs the transfer of the word takes most of a short section. During
/// a back-off the word stays with one CPU, which gets more done than two would. The times double,
/// so that a thread does not back off for much longer than it had to wait.
pub(super) const BACKOFF_NS: [u64; 14] = [0, 0, 0, 0, 0, 0, 0, 0, 100, 200, 400, 800, 1_600, 3_200];

/// A wait with less time than this goes to the gate at once. Otherwise a writer with short limits,
/// which tries again and again, never closes the lock.
pub(super) const MIN_BACKOFF_LIMIT_NS: u64 = 100_000;

/// The acquisition that the gate's owner waits for, or a writer of rank without the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Write,
    Upgradable,
    /// To write, without the gate: the thread has a [rank](crate::Platform::rank), or has lost it.
    Ranked,
}

impl Want {
    /// Whether it can be had. Flags of sleepers, and its own closed, do not matter.
    fn is_free(self, word: u32) -> bool {
        match self {
            Want::Write | Want::Ranked => word & !(CLOSED | RESERVED | FIRST | OTHERS) == 0,
            Want::Upgradable => word & (WRITING | UPGRADABLE) == 0,
        }
    }

    /// Whether it closes the lock, however short its wait: only readers are inside, and there may
    /// always be some as long as others come in.
    fn closes(self, word: u32) -> bool {
        self != Want::Upgradable && word & READERS != 0 && word & (WRITING | CLOSED) == 0
    }

    /// The word after an acquisition from the free word `word`.
    fn taken(self, word: u32) -> u32 {
        match self {
            // Readers that sleep stay asleep, and wait for the writer now.
            Want::Write => WRITING | word & OTHERS,
            // So does the gate's owner.
            Want::Ranked => WRITING | word & (RESERVED | FIRST | OTHERS),
            Want::Upgradable => {
                (word & !(CLOSED | RESERVED | FIRST | OTHERS)) + (READER | UPGRADABLE)
            }
        }
    }
}

/// Property of a thread only while it waits. The lowest bits of a lock's address have room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noted {
    /// The gate.
    Gate,
    /// The flags of a writer of rank.
    Flags,
    /// The share of a reader behind a writer.
    Share,
}

const _: () = assert!(align_of::<u32>() > Noted::Share as usize);

/// Gives up what `noted` says: a signal handler of its thread jumps out of the wait. If it jumps
/// less far, the thread waits on without it.
///
/// # Safety
///
/// [`FutexPlatform::begin_gate`] was told so by a wait for a lock that is still there, and the
/// thread of that wait calls this once.
#[cold]
pub unsafe fn abandon<P: FutexPlatform>(noted: usize) {
    let what = noted % align_of::<u32>();
    let lock = ptr::with_exposed_provenance::<OverlockRw<P>>(noted - what);
    // SAFETY: the caller's promise.
    let lock = unsafe { &*lock };
    if what == Noted::Share as usize {
        lock.leave();
    } else if what == Noted::Flags as usize {
        lock.give_up(Want::Ranked);
    } else {
        // Readers sleep on a closed lock (I3).
        lock.give_up(Want::Write);
        // SAFETY: the thread owns the gate, by the caller's promise, and its token is ().
        unsafe { lock.gate.unlock(()) };
    }
}

pub(super) fn is_over<P: FutexPlatform>(until: Option<Deadline>) -> bool {
    until.is_some_and(Deadline::is_over::<P>)
}

/// Returns the time until `until`.
fn time_left<P: FutexPlatform>(until: Option<Deadline>) -> u64 {
    until.map_or(u64::MAX, Deadline::nanos_left::<P>)
}

impl<P: FutexPlatform> OverlockRw<P> {
    /// [`try_write_now`](Self::try_write_now) after a load, where the lock is likely to be busy.
    pub(super) fn try_write_if_free(&self) -> bool {
        self.word.load(Relaxed) == 0 && self.try_write_now()
    }

    /// Spins on the word for [`SPIN_NS`], or until `until`.
    pub(super) fn spin(
        &self,
        order: Ordering,
        until: Option<Deadline>,
        done: impl Fn(u32) -> bool,
    ) -> Result<u32, u32> {
        let end = Deadline::earlier::<P>(until, P::now().plus_nanos(SPIN_NS));
        P::wait_until(&self.word, order, Spin::Until(end), done)
    }

    /// Sets `flags` in the word and sleeps until it changes, or `until`. Returns at once where the
    /// word is not `seen` any more.
    pub(super) fn sleep(&self, seen: u32, flags: u32, until: Option<Deadline>) {
        let asleep = seen | flags;
        // Relaxed: it publishes nothing, and the halt compares the word.
        let exchange = self.word.compare_exchange(seen, asleep, Relaxed, Relaxed);
        if exchange.is_ok() {
            P::halt(&self.word, asleep, until);
        }
    }

    /// Takes out a reader that has counted itself in vain. Unlike a reader that leaves, it may
    /// touch the lock once more: it clears the flags that it kicks for, so that the next reader in
    /// vain need not kick again.
    #[cold]
    pub fn back_out(&self) {
        // (w, n + 1) -> (w, n). Relaxed: it has read nothing.
        let before = self.word.fetch_sub(READER, Relaxed);
        if before & (FIRST | OTHERS) != 0 && is_awaited(before) {
            // While this one was counted, the last reader did not find itself the last.
            self.word.fetch_and(!(FIRST | OTHERS), Relaxed);
            kick_all::<P>(&self.word);
        }
    }

    /// Backs out and acquires by waiting. One call, so that the fast path saves no registers for
    /// it.
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
        let has_rank = P::rank() > 0;
        let passing = match passing {
            Passing::Later if has_rank => Passing::AtOnce,
            passing => passing,
        };
        // A reader that barges at once may hold what others wait for, so it does not delay. Others
        // read the clock only before they sleep.
        let mut barge_at = (passing == Passing::AtOnce).then(P::now);
        let mut backoff = BACKOFF_NS.iter();
        loop {
            let waited = barge_at.is_some_and(|end| P::now() >= end);
            let shut = match passing {
                Passing::AtOnce | Passing::Later if waited => WRITING,
                _ => SHUT,
            };
            let opens = |word: u32| {
                let is_free = word & (WRITING | READERS) == 0;
                word & shut == 0 || waited && word & shut == WRITING || has_rank && is_free
            };
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
                    return Ok(());
                }
                if !opens(before) {
                    self.back_out();
                } else if let Some(result) = self.wait_counted(until) {
                    return result;
                }
            }
            if is_over::<P>(until) {
                return Err(Refused::Late);
            }
            if let Some(&nanos) = backoff.next() {
                P::yield_slice(P::ticks());
                P::pause(Pause::Delay(nanos.min(time_left::<P>(until))));
            } else if seen & shut != 0 {
                let end = *barge_at.get_or_insert_with(|| P::now().plus_nanos(BARGE_DELAY_NS));
                let until = match passing {
                    Passing::Later if !waited => Some(Deadline::earlier::<P>(until, end).into()),
                    _ => until,
                };
                self.sleep(seen, OTHERS, until);
                backoff = BACKOFF_NS.iter();
            }
        }
    }

    /// Waits, counted behind a writer, until no writer is inside. `None` where a handler has
    /// jumped, and the thread is not counted any more.
    fn wait_counted(&self, until: Option<Deadline>) -> Option<Result<(), Refused>> {
        let share = self.noted(Noted::Share);
        P::begin_gate(share);
        while P::owns_gate(share) {
            // (1, n) -> (0, n) by the writer. RA: acquire, pairs with WU.
            match self.spin(Acquire, until, |word| word & WRITING == 0) {
                Ok(_) => return P::end_gate(share).then_some(Ok(())),
                Err(seen) if !is_over::<P>(until) => self.sleep(seen, OTHERS, until),
                Err(_) => {
                    if P::end_gate(share) {
                        self.leave();
                    }
                    return Some(Err(Refused::Late));
                }
            }
        }
        None
    }

    #[cold]
    pub(super) fn write_slow(&self, until: Option<Deadline>) -> bool {
        // The gate's owner may have lost its CPU.
        if P::rank() > 0 {
            return self.wait_at_word(Want::Ranked, until);
        }
        self.pass_gate(Want::Write, until, Self::try_write_if_free)
    }

    /// Tries and backs off a few times. A function of its own: the wait after it takes less stack.
    #[inline(never)]
    fn attempts(&self, until: Option<Deadline>, attempt: impl Fn(&Self) -> bool) -> bool {
        if time_left::<P>(until) <= MIN_BACKOFF_LIMIT_NS {
            return false;
        }
        BACKOFF_NS.iter().any(|&nanos| {
            P::yield_slice(P::ticks());
            P::pause(Pause::Delay(nanos));
            attempt(self)
        })
    }

    /// Tries and backs off a few times, then waits at the gate.
    pub(super) fn pass_gate(
        &self,
        want: Want,
        until: Option<Deadline>,
        attempt: impl Fn(&Self) -> bool,
    ) -> bool {
        if self.attempts(until, attempt) {
            return true;
        }
        match until {
            None => self.gate.lock(),
            Some(until) => {
                if self.gate.lock_until(until).is_none() {
                    return false;
                }
            }
        }
        let gate = self.noted(Noted::Gate);
        P::begin_gate(gate);
        let acquired = self.wait_at_word(want, until);
        if P::end_gate(gate) {
            // SAFETY: acquired a few lines above, and its token is ().
            unsafe { self.gate.unlock(()) };
        }
        acquired
    }

    /// The argument of [`begin_gate`](FutexPlatform::begin_gate) in a wait for this lock.
    fn noted(&self, what: Noted) -> usize {
        ptr::from_ref(self).expose_provenance() | what as usize
    }

    /// Waits for the lock as the gate's owner, or with a rank. Returns false at its limit.
    fn wait_at_word(&self, mut want: Want, until: Option<Deadline>) -> bool {
        let barge_at = P::now().plus_nanos(BARGE_DELAY_NS);
        loop {
            if want == Want::Write && !P::owns_gate(self.noted(Noted::Gate)) {
                want = Want::Ranked;
            }
            if want == Want::Ranked && !P::owns_gate(self.noted(Noted::Flags)) {
                P::begin_gate(self.noted(Noted::Flags));
            }
            // Relaxed: the exchange acquires.
            let polled = self.spin(Relaxed, until, |word| {
                want.is_free(word) || want.closes(word)
            });
            let seen = match polled {
                Ok(seen) if want.is_free(seen) => {
                    if self.take(want, seen) {
                        self.end_flags(want);
                        return true;
                    }
                    continue;
                }
                Ok(_) => {
                    self.word.fetch_or(CLOSED, Relaxed);
                    continue;
                }
                Err(seen) => seen,
            };
            if is_over::<P>(until) {
                self.give_up(want);
                self.end_flags(want);
                return false;
            }
            let flags = match want {
                Want::Ranked => OTHERS | CLOSED,
                _ if P::now() < barge_at => FIRST,
                // Readers do not keep it out, and it may depend on them: the upgradable reader that
                // is inside may wait for one.
                Want::Upgradable => FIRST | RESERVED,
                Want::Write => FIRST | CLOSED,
            };
            self.sleep(seen, flags, until);
        }
    }

    fn end_flags(&self, want: Want) {
        if want == Want::Ranked {
            P::end_gate(self.noted(Noted::Flags));
        }
    }

    /// Tries to take a lock that the gate's owner has found free for what it wants.
    fn take(&self, want: Want, seen: u32) -> bool {
        // (0, 0) -> (1, 0), or (0, n) -> (0, n + 1) U. WA: acquire, pairs with RU and WU.
        let taken = self
            .word
            .compare_exchange(seen, want.taken(seen), Acquire, Relaxed)
            .is_ok();
        if taken && want == Want::Upgradable && seen & OTHERS != 0 {
            // I3: readers slept because the lock was closed.
            kick_all::<P>(&self.word);
        }
        taken
    }

    /// Clears the flags of a thread that leaves without the lock. Without the gate, its owner may
    /// need them too.
    pub(super) fn give_up(&self, want: Want) {
        let others = match want {
            Want::Ranked => FIRST | OTHERS,
            _ => OTHERS,
        };
        // I2, I3
        let before = (self.word).fetch_and(!(CLOSED | RESERVED | FIRST | OTHERS), Relaxed);
        if before & others != 0 {
            kick_all::<P>(&self.word);
        }
    }
}
