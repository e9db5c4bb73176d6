//! The recommended mutex: `overlock::Mutex`, `ovl_mutex_t` and the drop-in's `pthread_mutex_t` are
//! made of it, and it is the gate of the reader-writer locks.
//!
//! Four bytes. The operating system's futex queue is the list of sleepers: no nodes, no tables, no
//! timers. Locking is a look and one compare-exchange of a byte. Unlocking is a restartable
//! sequence (rseq) of a look and a store, so it has no locked instruction; where there is none, it
//! is a compare-exchange.
//!
//! What it is built from:
//! - *Concurrency restriction* (Dice, "Malthusian Locks", EuroSys 2017): unlocks wake no sleeper
//!   while one that was woken is on its way, but for each that went to sleep meanwhile; and one
//!   that is awake may take the lock past those that sleep.
//! - *Handoff* (the kernel's mutex and reader-writer semaphore): a waiter that was passed for too
//!   long, the heir, is given the lock by the next unlock.
//! - *Asymmetric synchronisation* (Dekker's pattern with the fence on one side): a waiter that is
//!   about to sleep pays for a membarrier, so that the unlock pays for nothing.
//!
//! # Layout
//!
//! ```text
//!  31       11    10      9       8    7..4     3      2      1       0
//! +-----------+-------+-------+-------+------+------+------+------+--------+
//! | sleepers  | crowd | given | asked |      | calm | slow | wake | locked |
//! +-----------+-------+-------+-------+------+------+------+------+--------+
//!                                      byte 0
//! ```
//!
//! | bits | meaning; who writes them |
//! |---|---|
//! | locked | 1: somebody owns the lock, or it is given. Owners, and waiters that become owners |
//! | wake | an unlock wakes one sleeper. Set by waiters about to sleep and new owners; cleared by the unlock, and by the last counted one |
//! | slow | unlocks compare and exchange. Set with wake, cleared by an unlock that finds calm. A restartable unlock may take both away |
//! | calm | slow may be cleared: there are no sleepers. Set by the last of them, cleared by the next |
//! | asked | the heir wants the lock handed over. Set and cleared by the heir |
//! | given | the lock is handed over: with asked to the heir, else to any counted waiter. Set by the owner |
//! | crowd | newcomers sleep apart while the lock is given. Set by them, cleared by who takes it |
//! | sleepers | threads that sleep, are about to, or have slept and do not own the lock yet: the *counted* ones |
//!
//! The fast path and unlocks that wake nobody work on byte 0 alone: a processor holds up an access
//! of another size until the last one is through.
//!
//! # States
//!
//! ```text
//!          lock                 unlock, byte 0 is 1
//!   free --------> held ---------------------------------------------> free
//!                   |   unlock, wake: wakes one sleeper -------------> free
//!                   |   unlock, asked: wakes the heir ---> given ----> held, by the heir
//!                   '-- unlock_fair: wakes one sleeper --> given ----> held, by a counted waiter
//!
//!   a waiter:  spins --> counted, asleep --woken--> spins --in vain--> counted, asleep: wake is set
//!                 |           |                       |                     and asked, after PASSED
//!                 '-> owner   '-> gives up            '-> owner: wake is set if others are counted
//! ```
//!
//! # Invariants
//!
//! - I1: locked without given means that one thread owns the lock; with given, nobody does, and one
//!   of those that may take it will.
//! - I2: where sleepers is not 0, wake and slow are set, or a counted thread is awake, or will be
//!   by the kick of an unlock or an adopter under way. Each counted thread that is awake sets both
//!   again when it becomes the owner, sleeps, or leaves. Whoever sleeps as a waiter expects a word
//!   with wake.
//! - I3: asked belongs to one thread, the heir, until that one clears it. No other waiter takes a
//!   lock that is given while asked is set.
//! - I4: no counted thread goes to sleep on a word with given and without asked: it takes the lock.
//! - I5: the store or exchange by which an unlock releases or gives is its last access. Whoever
//!   owns the lock after that may free it; the kick that follows needs the address alone.
//!
//! # Why no wake-up is lost
//!
//! A waiter joins by an exchange that sets wake and slow, then sleeps on the value that it wrote.
//! An unlock by exchange comes before that (the join fails), between the two (the sleep fails), or
//! after the sleep (it sees wake, and kicks). An unlock by the restartable sequence may have looked
//! at byte 0 before the join and store after it: that store takes wake and slow with it. So who
//! sets slow calls [`Platform::restart_releases`] before it sleeps. Whoever was between look and
//! store has stored (the sleep fails) or looks again (it sees wake).
//!
//! Those that find slow set rely on who set it, until its call has returned. Then it finds the word
//! as it wrote it, or slow set by another one since, on whom all rely; or it finds the flags gone.
//! Then a waiter takes the lock or joins again, one that gives up sets them again before it leaves,
//! and an adopter kicks. Who takes a lock sets slow without the call: only owners release.
//!
//! A kick that finds nobody asleep was for a counted thread on its way to sleep: wake was cleared
//! since it joined, and it joined with wake set, so its sleep fails and it sets wake itself (I2).
//! That holds however slow it is, since a word that comes to be as it wrote it has wake. For the
//! same reason a joiner sets wake even where one that was woken is on its way: relying on that one,
//! it would expect a word without wake, and could sleep on such a word long after that one has come
//! and its kick has gone to nobody.
//!
//! A waiter that gives up takes the lock if it finds it free, and else sets wake for the others: so
//! no kick ends with it. A newcomer that sleeps apart and may have had a sleeper's kick, where
//! sleepers are not told apart or it can be cancelled, passes that on.
//!
//! # How long a waiter can wait
//!
//! The futex queue is first come, first served. A waiter that would sleep again and has waited for
//! PASSED asks; nobody but the present owner then has the lock before it. (Others may where a
//! thread is still restarting releases after all that time: until the flags that it sets have
//! outlived its call.) One waiter asks at a time, and an unlock that gives wakes nobody else. So
//! what can pass a sleeper are those before it in the queue, each once more after PASSED, and
//! those that run while it wakes up.
//!
//! # Orderings
//!
//! LA, acquire, at each acquisition pairs with UL, release, at each unlock: store, exchange, or
//! handoff. All other changes of the word are read-modify-writes, so release sequences do not
//! break. Joins and leaves are Relaxed: they publish nothing, and the futex orders its look at the
//! word against kicks.
//!
//! # More than 2,097,150 sleepers
//!
//! The count stays where it is then, for good: nobody is counted in or out, each waiter sets wake,
//! and the lock works as one without a count does, with a kick for nothing now and then.

#[cfg(test)]
mod tests;

use core::any::TypeId;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::time::Duration;

use crate::diagram::{Diagram, HasDiagram, diagram};
use crate::facts::{Bound, Facts, HasFacts};
use crate::node::NodeId;
use crate::platform::{
    Atomic, ByteLanes, ConstPlatform, Deadline, Kick, Platform, Sleeper, Spin, Zero,
};
use crate::raw::{
    ConstLock, CreateError, RawCancelLock, RawFairLock, RawFork, RawLock, RawTimedLock,
};
use crate::sleep::cancel::CancelToken;
use crate::sleep::wait_list::{self, Limit};
use crate::stat::{self, Event};

const LOCKED: u32 = 1;
/// The unlocker wakes a sleeper.
const WAKE: u32 = 1 << 1;
/// Unlocks compare and exchange: there are sleepers, or were.
const SLOW: u32 = 1 << 2;
/// There are no sleepers any more: an unlock may clear SLOW.
const CALM: u32 = 1 << 3;
/// The heir, a waiter that was passed for too long, has asked for a handoff.
const ASKED: u32 = 1 << 8;
/// The lock is handed over, and stays locked: with ASKED for the heir, else for any counted waiter.
const GIVEN: u32 = 1 << 9;
/// Newcomers sleep apart until somebody has taken the lock that was given.
const CROWD: u32 = 1 << 10;
/// One thread that sleeps, is about to, or has slept and does not own the lock yet.
const SLEEPER: u32 = 1 << 11;
/// As many sleepers, or more: from then on nobody is counted any more, in or out.
const MANY: u32 = u32::MAX - (SLEEPER - 1);

/// Polls between two looks at the clock.
const POLLS: u32 = 16;
/// The spin before a sleep, in nanoseconds of [`Platform::ticks`], as all times here.
const SPIN: u64 = 5_000;
/// A waiter that has waited for so long, and was woken in vain, asks for a handoff.
const PASSED: u64 = 4_000_000;

diagram! {
    "overlock" {
        Take = "free -> held: at once",
        TakeSpinning = "free -> held: by a waiter that was not counted",
        TakeCounted = "free -> held: by a counted waiter",
        TakeGiven = "given -> held: by the heir, or a counted waiter",
        LetIn = "given -> held: and newcomers that slept apart are woken",
        Release = "held -> free: nothing is asked of the unlocker",
        ReleaseSlow = "held -> free: slow, nobody to wake",
        EndSlow = "held -> free: slow is cleared",
        ReleaseWaking = "held -> free: wake is cleared, a sleeper woken",
        GiveToHeir = "held -> given: the heir has asked",
        GiveToSleeper = "held -> given: a fair unlock, a sleeper woken",
        Count = "awake -> counted",
        BeginSlow = "counted: slow is set, releases are restarted",
        SleepAgain = "woken in vain -> asleep: wake is set",
        Ask = "woken in vain -> asleep: as the heir",
        Crowd = "awake -> asleep apart: the lock is given to another one",
        GiveUp = "counted -> gone: at its limit",
        GiveUpUncounted = "awake -> gone: at its limit",
        Adopt = "waits for a condition -> counted: the lock is held",
    }
}

/// The recommended mutex: see the [module's page](self). 4 bytes.
#[derive(Debug)]
pub struct Overlock<P: Platform> {
    word: P::U32,
}

impl<P: ConstPlatform> Overlock<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        Overlock { word: Zero::ZERO }
    }
}

impl<P: ConstPlatform> Default for Overlock<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: ConstPlatform> ConstLock for Overlock<P> {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new lock, as intended
    const INIT: Self = Self::new();
}

/// What a waiter knows of itself.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    /// When its wait began, by [`Platform::ticks`].
    since: u64,
    /// One of the word's sleepers is this thread.
    counted: bool,
    /// ASKED, if it is set, is this thread's.
    heir: bool,
}

impl Waiter {
    fn may_take(&self, word: u32) -> bool {
        match word & (LOCKED | ASKED | GIVEN) {
            free if free & LOCKED == 0 => true,
            given if given & GIVEN == 0 => false,
            given if given & ASKED == 0 => self.counted,
            _ => self.heir,
        }
    }

    /// The word without this thread among the sleepers. Whoever was counted and is awake sets WAKE
    /// for the others.
    fn leave(&self, mut word: u32) -> u32 {
        if word < MANY {
            word -= SLEEPER;
        }
        if self.heir {
            word &= !ASKED;
        }
        if word < SLEEPER {
            word & !WAKE | CALM
        } else {
            word | WAKE | SLOW
        }
    }

    /// The word with this thread among the sleepers, about to sleep. One that was counted before
    /// asks after PASSED, unless another one has.
    fn join<P: Platform>(&self, word: u32) -> u32 {
        if !self.counted {
            return add_sleeper(word);
        }
        let asks = P::ticks().wrapping_sub(self.since) > PASSED;
        word | WAKE | SLOW | if asks { ASKED } else { 0 }
    }
}

/// One more sleeper. It sets WAKE even where another one is on its way: see the page on waiters
/// that are slow to sleep.
fn add_sleeper(word: u32) -> u32 {
    let counted = if word < MANY { word + SLEEPER } else { word };
    (counted | WAKE | SLOW) & !CALM
}

impl<P: Platform> Overlock<P> {
    #[inline(always)]
    fn take(&self) -> bool {
        let seen = self.word.byte0_load_to_change();
        let locked = seen | LOCKED as u8;
        let taken = seen != locked
            && self
                .word
                .byte0_compare_exchange(seen, locked, Acquire)
                .is_ok();
        if taken {
            Step::Take.taken::<P>();
        }
        taken
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, counted: bool, limit: &Limit<'_, P>) -> bool {
        let mut waiter = Waiter {
            since: P::ticks(),
            counted,
            heir: false,
        };
        loop {
            if self.spin(&waiter) {
                return true;
            }
            if let Some(acquired) = self.sleep(&mut waiter, limit) {
                return acquired;
            }
        }
    }

    /// Takes the lock if it is there to take, as `word` says.
    fn attempt(&self, word: u32, waiter: &Waiter) -> bool {
        if !waiter.may_take(word) {
            return false;
        }
        let mut new = (word | LOCKED) & !(GIVEN | CROWD);
        if waiter.counted {
            new = waiter.leave(new);
        }
        // LA: acquire, pairs with UL.
        let taken = self
            .word
            .compare_exchange(word, new, Acquire, Relaxed)
            .is_ok();
        if taken {
            match (word & GIVEN, waiter.counted) {
                (0, false) => {
                    stat::count::<P>(Event::MutexOptLock);
                    Step::TakeSpinning.taken::<P>();
                }
                (0, true) => Step::TakeCounted.taken::<P>(),
                _ => Step::TakeGiven.taken::<P>(),
            }
            if word & CROWD != 0 {
                Step::LetIn.taken::<P>();
                P::kick_at(ptr::from_ref(&self.word), Kick::Apart);
            }
        }
        taken
    }

    /// Polls the lock for a while; whether the caller owns it now.
    fn spin(&self, waiter: &Waiter) -> bool {
        let mut start = P::ticks();
        if P::yield_slice(start) {
            start = P::ticks();
        }
        loop {
            let ends = |word: u32| word & LOCKED == 0 || word & GIVEN != 0;
            // Relaxed: the attempt acquires.
            let polled = P::wait_until(&self.word, Relaxed, Spin::Polls(POLLS), ends);
            let (Ok(word) | Err(word)) = polled;
            if self.attempt(word, waiter) {
                return true;
            }
            let now = P::ticks();
            let age = now.wrapping_sub(start);
            if age > SPIN || word & GIVEN != 0 {
                return false;
            }
            if P::yield_slice(now) {
                start = P::ticks();
            } else {
                // The longer the section, the rarer the polls: each takes the cache line from the
                // owner.
                P::spin(age / 4);
            }
        }
    }

    /// Sleeps until there may be something to take. `Some` where the wait is over: whether the
    /// caller owns the lock.
    fn sleep(&self, waiter: &mut Waiter, limit: &Limit<'_, P>) -> Option<bool> {
        loop {
            let word = self.word.load(Relaxed);
            if waiter.may_take(word) {
                return None;
            }
            if limit.reached().is_some() {
                return Some(self.give_up(waiter));
            }
            if !waiter.counted && word & (ASKED | GIVEN) == GIVEN {
                self.crowd(word, limit);
                continue;
            }
            let asleep = waiter.join::<P>(word);
            if asleep != word {
                if !self.announce(word, asleep) {
                    continue;
                }
                if asleep & !word & ASKED != 0 {
                    waiter.heir = true;
                    Step::Ask.taken::<P>();
                } else if waiter.counted {
                    Step::SleepAgain.taken::<P>();
                } else {
                    Step::Count.taken::<P>();
                }
                waiter.counted = true;
            }
            let sleeper = if waiter.heir {
                Sleeper::Apart
            } else {
                Sleeper::Waiter
            };
            stat::count::<P>(Event::MutexSleep);
            if limit.halt(sleeper, &self.word, asleep) {
                return None;
            }
        }
    }

    /// Changes `word` to `joined`, which has WAKE and SLOW. Whether it was still there. Where SLOW
    /// is new, releases are restarted.
    fn announce(&self, word: u32, joined: u32) -> bool {
        // Relaxed: the halt looks at the word, and by whom SLOW was set is ordered before the
        // releases to come, by `restart_releases`.
        let changed = self.word.compare_exchange(word, joined, Relaxed, Relaxed);
        if changed.is_ok() && word & SLOW == 0 {
            Step::BeginSlow.taken::<P>();
            if !P::restart_releases() {
                // Those that found SLOW set may sleep without an end.
                P::kick_at(ptr::from_ref(&self.word), Kick::All);
            }
        }
        changed.is_ok()
    }

    /// A newcomer that finds the lock given to another one sleeps until that one has taken it. (It
    /// is not counted: whoever is may take the lock, and nobody who may take it sleeps.)
    fn crowd(&self, word: u32, limit: &Limit<'_, P>) {
        let asleep = word | CROWD;
        // Relaxed: the halt looks at the word.
        let joined = asleep == word
            || self
                .word
                .compare_exchange(word, asleep, Relaxed, Relaxed)
                .is_ok();
        if joined {
            Step::Crowd.taken::<P>();
            let woken = limit.halt(Sleeper::Apart, &self.word, asleep);
            let word = self.word.load(Relaxed);
            if woken && word >= SLEEPER && word & (WAKE | GIVEN) != WAKE {
                // The kick may have been meant for one that is counted.
                P::kick_at(ptr::from_ref(&self.word), Kick::One);
            }
        }
    }

    /// Makes a thread that sleeps by its node a sleeper of the lock, if that is held: an unlock
    /// wakes it. `counted` runs in between; from then on the thread may be awake, and on its
    /// way to [`lock_adopted`](RawLock::lock_adopted). The lock must not go before this has
    /// returned.
    pub(crate) fn adopt(&self, sleeper: NodeId, counted: impl FnOnce()) -> bool {
        loop {
            let word = self.word.load(Relaxed);
            if word & LOCKED == 0 {
                return false;
            }
            if !self.announce(word, add_sleeper(word)) {
                continue;
            }
            Step::Adopt.taken::<P>();
            counted();
            wait_list::requeue::<P>(sleeper, &self.word);
            // An unlock may have come before the requeue and found nobody asleep, or have taken the
            // flags away. A fair one has given the lock, and WAKE says nothing then. A change of
            // nothing: it has the newest value.
            let now = self.word.fetch_or(0, Relaxed);
            if now & (LOCKED | WAKE | GIVEN) != LOCKED | WAKE {
                P::kick_at(&self.word, Kick::One);
            }
            return true;
        }
    }

    /// The limit of a waiter is reached. True where it owns the lock after all: it may have been
    /// woken for it.
    fn give_up(&self, waiter: &Waiter) -> bool {
        if !waiter.counted {
            Step::GiveUpUncounted.taken::<P>();
            return false;
        }
        loop {
            let word = self.word.load(Relaxed);
            if waiter.may_take(word) {
                if self.attempt(word, waiter) {
                    return true;
                }
                continue;
            }
            if word & SLOW == 0 {
                // Once it has gone it cannot answer for a release that takes the flags away.
                self.announce(word, word | WAKE | SLOW);
                continue;
            }
            // Relaxed: it publishes nothing.
            let left = self
                .word
                .compare_exchange(word, waiter.leave(word), Relaxed, Relaxed);
            if left.is_ok() {
                Step::GiveUp.taken::<P>();
                return false;
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn unlock_slow(&self) {
        let mut seen = self.word.byte0_load(Relaxed);
        // Byte by byte, as acquisitions are: a processor holds up accesses of another size until
        // the last one is through.
        while u32::from(seen) & WAKE == 0 {
            let ends = u32::from(seen) & CALM != 0 && P::restart_is_affordable();
            let (new, step) = match ends {
                true => (0, Step::EndSlow),
                false => (seen & !(LOCKED as u8), Step::ReleaseSlow),
            };
            // UL: release, pairs with LA. From here on the lock may be gone.
            match self.word.byte0_compare_exchange(seen, new, Release) {
                Ok(_) => return step.taken::<P>(),
                Err(now) => seen = now,
            }
        }
        self.unlock_waking();
    }

    #[cold]
    #[inline(never)]
    fn unlock_waking(&self) {
        let address = ptr::from_ref(&self.word);
        let mut word = self.word.load(Relaxed);
        loop {
            let (new, whom, step) = if word & ASKED != 0 {
                (word | GIVEN, Some(Kick::Apart), Step::GiveToHeir)
            } else if word & WAKE != 0 {
                (
                    word & !(LOCKED | WAKE),
                    Some(Kick::One),
                    Step::ReleaseWaking,
                )
            } else {
                (word & !LOCKED, None, Step::ReleaseSlow)
            };
            // UL: release, pairs with LA. From here on the lock may be gone.
            match self.word.compare_exchange_weak(word, new, Release, Relaxed) {
                Ok(_) => {
                    step.taken::<P>();
                    if let Some(whom) = whom {
                        stat::count::<P>(match whom {
                            Kick::Apart => Event::MutexHandoff,
                            _ => Event::PvKickUnlock,
                        });
                        P::kick_at(address, whom);
                    }
                    return;
                }
                Err(now) => word = now,
            }
        }
    }
}

// SAFETY: an acquisition is a compare-exchange that finds LOCKED clear and sets it, or finds GIVEN
// and clears it, and only one thread may do the latter; LOCKED is cleared, and GIVEN set, by the
// owner alone.
unsafe impl<P: Platform> RawLock for Overlock<P> {
    type Token = ();

    const NAME: &'static str = "overlock";

    fn create() -> Result<Self, CreateError> {
        Ok(Overlock {
            word: P::U32::new(0),
        })
    }

    #[inline(always)]
    fn lock(&self) {
        if !self.take() {
            self.lock_slow(false, &Limit::NONE);
        }
    }

    #[inline(always)]
    fn try_lock(&self) -> Option<()> {
        self.take().then_some(())
    }

    #[inline(always)]
    unsafe fn unlock(&self, (): ()) {
        crate::check!(self.is_locked(), "unlock of a lock that is free");
        // UL: release, pairs with LA.
        if P::release(&self.word) {
            Step::Release.taken::<P>();
        } else {
            self.unlock_slow();
        }
    }

    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & LOCKED != 0
    }

    /// Those that still spin do not show.
    fn is_contended(&self) -> bool {
        self.word.load(Relaxed) >= SLEEPER
    }

    fn is_overlock<Q: Platform>(&self) -> bool {
        TypeId::of::<P>() == TypeId::of::<Q>()
    }

    #[cold]
    fn lock_adopted(&self) {
        self.lock_slow(true, &Limit::NONE);
    }
}

// SAFETY: as above; who gives up has not acquired it.
unsafe impl<P: Platform> RawTimedLock for Overlock<P> {
    #[inline]
    fn lock_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        (self.take() || self.lock_slow(false, &Limit::until(deadline))).then_some(())
    }
}

// SAFETY: as above.
unsafe impl<P: Platform> RawCancelLock<P> for Overlock<P> {
    fn lock_cancellable(&self, cancel: &CancelToken<P>, deadline: Option<Deadline>) -> Option<()> {
        let limit = Limit {
            deadline,
            cancel: Some(cancel),
        };
        (self.take() || self.lock_slow(false, &limit)).then_some(())
    }
}

// SAFETY: as above.
unsafe impl<P: Platform> RawFairLock for Overlock<P> {
    unsafe fn unlock_fair(&self, (): ()) {
        crate::check!(self.is_locked(), "unlock of a lock that is free");
        let address = ptr::from_ref(&self.word);
        let word = self.word.load(Relaxed);
        // UL: release, pairs with LA. From here on the lock may be gone.
        // Where nobody is counted any more there may be nobody to take it.
        let given = word & (WAKE | ASKED) == WAKE
            && word < MANY
            && self
                .word
                .compare_exchange(word, word & !WAKE | GIVEN, Release, Relaxed)
                .is_ok();
        if given {
            Step::GiveToSleeper.taken::<P>();
            P::kick_at(address, Kick::One);
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.unlock(()) };
        }
    }
}

// SAFETY: nothing refers to nodes.
unsafe impl<P: Platform> RawFork for Overlock<P> {
    unsafe fn forget_waiters(&self) {
        let word = self.word.load(Relaxed);
        let held = word & LOCKED != 0 && word & GIVEN == 0;
        self.word.store(u32::from(held), Relaxed);
    }
}

impl<P: Platform> HasFacts for Overlock<P> {
    const FACTS: Facts = Facts {
        about: "the one we recommend",
        bound: Bound::Each(Duration::from_nanos(PASSED)),
        freed_by_last_user: true,
        tried_in_handlers: true,
        compared: true,
        ..Facts::SLEEPING
    };
}

impl<P: Platform> HasDiagram for Overlock<P> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&DIAGRAM];
}
