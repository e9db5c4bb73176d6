//! The recommended mutex. `overlock::Mutex`, `ovl_mutex_t` and the drop-in's `pthread_mutex_t` are
//! built on it, and it is the gate of the recommended reader-writer lock.
//!
//! The lock is one word of 32 bits. Sleepers wait in the operating system's futex queue, so there
//! are no nodes, no tables and no timers. A lock is a load and one compare-exchange of a byte. An
//! unlock is a load and a store in a restartable sequence (rseq), without a locked instruction.
//! Without rseq, the unlock is a compare-exchange.
//!
//! It combines three published ideas:
//! - *Concurrency restriction* (Dice, "Malthusian Locks", EuroSys 2017). Sleepers are the passive
//!   set, and running threads may barge past them. Unlocks wake nobody while one waiter, the
//!   *spinner*, polls the lock. Now and then a waiter changes places with the longest sleeper.
//! - *Handoff* (the kernel's mutex and reader-writer semaphore). A sleeper that was bypassed for
//!   too long becomes the *handoff target*: it requests the lock, and the next unlock hands it off.
//! - *Asymmetric synchronisation* (Dekker's pattern with the fence on one side). A waiter that is
//!   about to sleep pays for a membarrier, so that an unlock pays for nothing.
//!
//! # Layout
//!
//! ```text
//!  31     11    10      9        8      7,6     5        4        3       2      1       0
//! +---------+-------+--------+---------+-----+-------+---------+-------+------+------+--------+
//! |sleepers | apart | pickup | handoff |     | phase | spinner | empty | slow | wake | locked |
//! +---------+-------+--------+---------+-----+-------+---------+-------+------+------+--------+
//!                                      byte 0
//! ```
//!
//! | bits | meaning; who writes them |
//! |---|---|
//! | locked | the lock is owned, or handed off. Set by acquisitions, cleared by unlocks |
//! | wake | the next unlock wakes one sleeper, unless spinner is set and the unlock is not fair. Set by waiters about to sleep, by requests for a handoff, by `adopt`, and by counted threads that acquire or leave; cleared by that unlock, and by the last counted thread |
//! | slow | unlocks use a compare-exchange. Set together with wake; cleared by an unlock that finds empty. The store of a restartable unlock may erase both |
//! | empty | no thread is counted, so an unlock may clear slow. Set by the last counted thread as it leaves, cleared by the next one that joins, or together with slow |
//! | spinner | a waiter polls the lock while threads are counted, and unlocks wake nobody. Set by that waiter, the *spinner*, which clears it as it acquires, sleeps or leaves. Cleared too by a thread that goes to sleep and has not seen it become the spinner, by `adopt`, and by a request for a handoff. The store of a restartable unlock may erase it too |
//! | phase | flips with each new spinner. Set only with slow; what erases it leaves spinner clear |
//! | handoff | the handoff target requests the lock. Set and cleared by the target |
//! | pickup | the lock is handed off and not picked up yet: with handoff for the target, else for any counted thread. Set by the unlock, cleared by the thread that picks the lock up |
//! | apart | newcomers sleep apart until the lock is picked up. Set by them, cleared by the thread that picks the lock up |
//! | sleepers | the number of *counted* threads: about to sleep, asleep, or woken and not owner yet |
//!
//! Fast paths, and unlocks that wake nobody, use byte 0 alone. A processor delays an access that
//! overlaps an earlier one of another size until that one is done.
//!
//! # States
//!
//! ```text
//!          lock                  unlock, byte 0 is 1
//!   free --------> held ----------------------------------------------> free
//!                   |   unlock, wake: wakes one sleeper --------------> free
//!                   |   unlock, handoff: wakes the target ---> handed off ---> held, by the target
//!                   '-- unlock_fair: wakes one sleeper ------> handed off ---> held, by a counted thread
//!
//!   a waiter:  spins --> counted, asleep --woken--> spins --in vain--> counted, asleep: wake is set
//!                 |           |                       |                     (and handoff, after HANDOFF_NS)
//!                 '-> owner   '-> gives up            '-> owner: wake is set if others are counted
//!
//!   who spins while others sleep:  beside the spinner --> spinner --> owner, asleep, or gone
//!                                                    '--> asleep: a sleeper is woken instead
//! ```
//!
//! # Invariants
//!
//! - I1: with locked and without pickup, one thread owns the lock. With pickup nobody owns it, and
//!   one of the threads that may pick it up will do so.
//! - I2: while sleepers is not 0, one of three things holds: wake and slow are set, and an unlock
//!   wakes a sleeper or there is a spinner (I6); or a counted thread is awake; or a kick is under
//!   way, by an unlock or by `adopt`. A counted thread that is awake sets both bits again as it
//!   acquires, sleeps or leaves. Each counted thread sleeps on a word with wake.
//! - I3: handoff belongs to one thread, the target, until that thread clears it. No other waiter
//!   picks up a lock while handoff is set.
//! - I4: no counted thread sleeps on a word with pickup and without handoff: it picks the lock up.
//! - I5: the store or exchange by which an unlock releases or hands off is its last access. The
//!   next owner may free the lock after that. The kick that follows needs only the address.
//! - I6: while spinner is set, a thread that has set it is awake. It takes the lock if it is free,
//!   and otherwise clears spinner on a locked word as it sleeps or leaves. A thread that goes to
//!   sleep and leaves spinner set has polled, without a yield, since before the present spinner
//!   began. Handoff and spinner are not set together: unlocks look at byte 0 alone while spinner is
//!   set.
//!
//! # Orderings
//!
//! LA, acquire, at each acquisition pairs with UL, release, at each unlock: store, exchange, or
//! handoff. All other changes of the word are read-modify-writes, so release sequences do not
//! break. Joins and leaves are Relaxed: they publish nothing, and the futex orders its comparison
//! of the word against kicks.
//!
//! # Fast path
//!
//! `lock` loads byte 0 and sets locked by a compare-exchange, whatever the other flags are.
//! `unlock` stores 0 if byte 0 is just locked. Otherwise a compare-exchange releases the lock, and
//! a kick follows if wake was set.
//!
//! # Slow path
//!
//! 1. A waiter spins for `SPIN_NS`, and yields its CPU at the end of its time slice. While threads
//!    are counted it becomes the spinner, if there is none. Once it has seen another thread become
//!    the spinner it sleeps; until then it polls at distances that double from `BESIDE_NS`. One
//!    waiter in `ROTATION` does not become the spinner. It wakes the longest sleeper, and sleeps.
//! 2. It joins: one exchange counts it and sets wake and slow. The thread that sets slow calls
//!    [`FutexPlatform::restart_releases`] before it sleeps.
//! 3. It sleeps on the word that it wrote, until an unlock wakes it or the word has changed.
//! 4. A woken thread spins again. It stays counted until it owns the lock or gives up.
//! 5. Woken in vain, it sleeps again. After `HANDOFF_NS` it sets handoff, unless another thread
//!    has: while it spins beside a held lock, or as it sleeps.
//!
//! A newcomer that finds the lock handed off by a fair unlock sleeps apart, as a
//! [`WakeClass::Target`], until it is picked up.
//!
//! # Why no wake-up is lost
//!
//! A waiter joins by an exchange that sets wake and slow, then sleeps on the value that it wrote.
//! An unlock by exchange has three places. Before the join, it makes the join fail. Between join
//! and sleep, it makes the sleep fail. After the sleep began, it sees wake, and kicks.
//!
//! A restartable unlock may load byte 0 before the join and store after it. Its store erases wake
//! and slow. So the thread that sets slow calls [`FutexPlatform::restart_releases`] before it
//! sleeps. When that call returns, each unlock that was between load and store has either stored,
//! and the sleep fails, or begins again, and sees wake.
//!
//! A waiter that finds slow set relies on the thread that set it, until that thread's call returns.
//! That thread then finds the word unchanged, or slow set again by another thread, on which all
//! rely from then on, or the flags erased. Erased flags are repaired: a waiter takes the lock or
//! joins again, a thread that gives up sets them again before it leaves, and an adopter kicks. An
//! acquisition sets slow without the call: only owners run unlocks.
//!
//! The kick of an unlock may find nobody asleep. Then each counted thread is awake, since a waiter
//! made way or a signal came, or is on its way to sleep. Wake was cleared after that thread joined
//! with wake set. So its sleep fails, and it sets wake itself (I2). This
//! holds however slow the thread is, since each word that it may sleep on has wake. For the same
//! reason a joiner sets wake even while a woken thread is on its way. Otherwise it would expect a
//! word without wake. Such a word may come back after the woken thread is done and its kick is
//! lost, and the joiner would sleep on it for ever.
//!
//! An unlock that is not fair and finds spinner set leaves wake as it is, and kicks nobody. The
//! spinner is awake: it takes the lock, or clears spinner on a locked word. The next unlock then
//! wakes a sleeper, unless there is a spinner again. A thread may clear the spinner of another one.
//! Then an unlock kicks although a waiter polls.
//!
//! A spinner that was preempted or stopped holds up those that slept before, like a woken thread
//! that does not run. A thread that has not seen it become the spinner clears spinner as it goes to
//! sleep. So a spinner that was stopped earlier holds up neither that thread nor those before it.
//!
//! A counted waiter, or the spinner, that gives up takes the lock if it is free. Otherwise it sets
//! wake for the others, or clears spinner: no kick ends with it. A newcomer that sleeps apart may
//! receive the kick of a counted sleeper, where the platform does not tell them apart or the sleep
//! can be cancelled. It passes that kick on.
//!
//! # How long a waiter can wait
//!
//! The futex queue is first come, first served. A waiter that is counted and has waited for
//! `HANDOFF_NS` requests a handoff, and then only the present owner has the lock before it. While
//! one spinner follows another, unlocks wake nobody. Then only waiters that make way wake sleepers:
//! one in `ROTATION`, by chance. So the mean time until a sleeper is woken is in proportion to the
//! sleepers before it, and no bound holds for certain.
//!
//! There is one exception: a thread may still be in `restart_releases` after all that time. Then
//! restartable unlocks may erase flags until a thread's flags have outlived its call, and others
//! may barge meanwhile.
//!
//! One waiter requests at a time, and an unlock that hands off wakes nobody else. Until a
//! sleeper is woken, all that run bypass it. Then the threads before it in the queue do, each once
//! more after `HANDOFF_NS`, and threads that run while it wakes up.
//!
//! # More than 2,097,150 sleepers
//!
//! The count saturates, for good. Nobody is counted in or out any more, each waiter sets wake, and
//! some kicks find nobody. The lock then works as one without a count.
//!
//! # Where this deviates from the published forms
//!
//! - Malthusian locks keep the passive set in a list of their own, and the owner brings a thread
//!   back at random. Here the futex queue is the passive set. Each unlock that finds wake and no
//!   spinner brings a thread back, and at random a waiter does, in its own place. The handoff
//!   bounds the wait after that.
//! - The kernel's first waiter requests the handoff once it was woken in vain; here it waits for
//!   `HANDOFF_NS`. The kernel's owner word names the target; here the target knows itself.
//! - A futex mutex (Drepper, "Futexes Are Tricky", 2011) unlocks by an exchange, which tells
//!   whether a thread sleeps. Here a sleeper restarts the unlocks that could have missed it.

#[cfg(test)]
mod tests;

use core::any::TypeId;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::time::Duration;

use crate::facts::{Bound, Facts, HasFacts};
use crate::node::NodeId;
use crate::platform::{
    Atomic, ByteLanes, Deadline, FutexPlatform, Kick, Pause, Platform, Spin, WakeClass,
};
use crate::raw::{ConstLock, RawCancelLock, RawFairLock, RawFork, RawLock, RawTimedLock};
use crate::sleep::cancel::CancelToken;
use crate::sleep::wait_list::{self, Limit};
use crate::stat::{self, Event};

/// The lock is owned, or handed off.
#[doc(hidden)]
pub const LOCKED: u32 = 1;
/// The next unlock wakes a sleeper.
#[doc(hidden)]
pub const WAKE: u32 = 1 << 1;
/// Unlocks use a compare-exchange: threads are counted, or were.
#[doc(hidden)]
pub const SLOW: u32 = 1 << 2;
/// No thread is counted: an unlock may clear SLOW.
const EMPTY: u32 = 1 << 3;
/// A waiter polls the lock, and unlocks wake nobody.
const SPINNER: u32 = 1 << 4;
/// Flips with each new spinner: a waiter that has seen two phases in a spin knows that the present
/// spinner, if there is one, has begun since its first look.
const PHASE: u32 = 1 << 5;
/// The handoff target requests the lock.
#[doc(hidden)]
pub const HANDOFF: u32 = 1 << 8;
/// The lock is handed off, and stays locked: with HANDOFF for the target, else for any counted
/// thread.
#[doc(hidden)]
pub const PICKUP: u32 = 1 << 9;
/// Newcomers sleep apart until the lock is picked up.
const APART: u32 = 1 << 10;
/// One counted thread: about to sleep, asleep, or woken and not owner yet.
const SLEEPER: u32 = 1 << 11;
/// From this value on the count is saturated: nobody is counted in or out any more.
const MANY: u32 = u32::MAX - (SLEEPER - 1);

/// Polls of a spin's first look, before it reads the clock. A waiter that is about to become the
/// spinner has one.
const POLLS: u32 = 24;
/// The distance of polls is a quarter of the age of the spin, and this at most.
const POLL_NS: u64 = 150;
/// Beside a spinner the distance is the age of the spin, and this at least.
const BESIDE_NS: u64 = 400;
/// The spin before a sleep, by [`Platform::ticks`].
const SPIN_NS: u64 = 5_000;
/// The age of a wait at which a counted waiter requests a handoff.
const HANDOFF_NS: u64 = 4_000_000;
/// One look in so many at which a newcomer could become the spinner ends otherwise: it wakes the
/// longest sleeper, and sleeps. A power of two.
const ROTATION: u64 = 32;

/// The recommended mutex: see the [module's page](self). 4 bytes.
#[derive(Debug)]
pub struct Overlock<P: Platform> {
    word: P::U32,
}

impl<P: Platform> Overlock<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        Overlock { word: Atomic::ZERO }
    }
}

impl<P: Platform> Default for Overlock<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> ConstLock for Overlock<P> {
    const INIT: Self = Self::new();
}

/// A thread that contends for the lock: its own state.
#[derive(Clone, Copy, Debug, Default)]
struct Contender {
    /// The start of its wait, by [`Platform::ticks`].
    since: u64,
    /// This thread is one of the word's sleepers.
    counted: bool,
    /// This thread is the handoff target: it has set HANDOFF.
    target: bool,
    /// This thread is the spinner: it has set SPINNER.
    spinner: bool,
    /// In this spin it has seen the lock without a spinner, or in two phases. If there is a spinner
    /// now, it has begun since, and runs.
    knows_spinner: bool,
}

impl Contender {
    /// Whether the lock is free, or handed off to this thread.
    fn may_take(&self, word: u32) -> bool {
        match word & (LOCKED | HANDOFF | PICKUP) {
            free if free & LOCKED == 0 => true,
            locked if locked & PICKUP == 0 => false,
            locked if locked & HANDOFF == 0 => self.counted,
            _ => self.target,
        }
    }

    /// Returns the word without this thread: not the spinner, nor the target, nor counted. WAKE is
    /// there for the others (I2).
    fn leave(&self, word: u32) -> u32 {
        let mut word = self.stop_spinning(word);
        if !self.counted {
            return word;
        }
        if word < MANY {
            word -= SLEEPER;
        }
        if self.target {
            word &= !HANDOFF;
        }
        if word < SLEEPER {
            word & !WAKE | EMPTY
        } else {
            word | WAKE | SLOW
        }
    }

    /// Returns the word on which this thread is about to sleep, counted. A thread that was counted
    /// before requests a handoff once it is old.
    fn join<P: FutexPlatform>(&self, word: u32) -> u32 {
        let word = match self.knows_spinner {
            true => self.stop_spinning(word),
            false => word & !SPINNER,
        };
        if !self.counted {
            add_sleeper(word)
        } else if self.is_old(P::ticks()) {
            request(word)
        } else {
            word | WAKE | SLOW
        }
    }

    /// SPINNER may have been erased or cleared, and set by another waiter, since this one last
    /// looked. That waiter then sets it again.
    fn stop_spinning(&self, word: u32) -> u32 {
        if self.spinner { word & !SPINNER } else { word }
    }

    /// Whether this thread may request a handoff: it is counted, and has waited for
    /// [`HANDOFF_NS`].
    fn is_old(&self, now: u64) -> bool {
        self.counted && now.wrapping_sub(self.since) > HANDOFF_NS
    }
}

/// Requests a handoff. Without SPINNER, since unlocks look at byte 0 alone while it is set (I6).
fn request(word: u32) -> u32 {
    word & !SPINNER | WAKE | SLOW | HANDOFF
}

/// Whether threads are counted, and no waiter polls the lock for them.
fn lacks_spinner(word: u32) -> bool {
    word & (SLOW | EMPTY | SPINNER) == SLOW
}

/// Whether the waiter that polls at this time is the one in [`ROTATION`]. The clock's last digits
/// are as good as random here.
fn is_chosen(now: u64) -> bool {
    // Fibonacci hashing: the upper bits depend on all lower ones.
    (now.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).is_multiple_of(ROTATION)
}

/// Counts one more thread. WAKE is set even while a woken thread is on its way: see "Why no wake-up
/// is lost" on waiters that are slow to sleep.
fn add_sleeper(word: u32) -> u32 {
    let counted = if word < MANY { word + SLEEPER } else { word };
    (counted | WAKE | SLOW) & !EMPTY
}

impl<P: FutexPlatform> Overlock<P> {
    /// The fast path: sets locked, and leaves all flags as they are.
    #[inline(always)]
    fn take(&self) -> bool {
        let seen = self.word.byte0_load_to_change();
        let locked = seen | LOCKED as u8;
        seen != locked
            && self
                .word
                .byte0_compare_exchange(seen, locked, Acquire)
                .is_ok()
    }

    /// Alternates spins and sleeps. Returns whether the caller owns the lock; false once `limit` is
    /// reached.
    #[cold]
    #[inline(never)]
    fn lock_slow(&self, counted: bool, limit: &Limit<'_, P>) -> bool {
        let mut waiter = Contender {
            since: P::ticks(),
            counted,
            ..Contender::default()
        };
        loop {
            if self.spin(&mut waiter) {
                return true;
            }
            if let Some(acquired) = self.sleep(&mut waiter, limit) {
                return acquired;
            }
        }
    }

    /// Acquires, where the waiter may take what `word` says. One try.
    fn attempt(&self, word: u32, waiter: &Contender) -> bool {
        if !waiter.may_take(word) {
            return false;
        }
        let new = waiter.leave((word | LOCKED) & !(PICKUP | APART));
        // LA: acquire, pairs with UL.
        let taken = self
            .word
            .compare_exchange(word, new, Acquire, Relaxed)
            .is_ok();
        if taken {
            if word & PICKUP == 0 && !waiter.counted {
                stat::count::<P>(Event::MutexOptLock);
            }
            if word & APART != 0 {
                P::kick(ptr::from_ref(&self.word), Kick::Target);
            }
        }
        taken
    }

    /// Polls the lock for [`SPIN_NS`]. Returns whether the caller owns it now.
    fn spin(&self, waiter: &mut Contender) -> bool {
        let mut start = P::ticks();
        if P::yield_slice(start) {
            start = P::ticks();
        }
        // While there is no spinner, an unlock wakes a sleeper in vain.
        let mut polls = match lacks_spinner(self.word.byte0_load(Relaxed).into()) {
            true => 1,
            false => POLLS,
        };
        let mut phase = None;
        waiter.knows_spinner = false;
        loop {
            let changes = |word: u32| word & LOCKED == 0 || word & PICKUP != 0;
            // Relaxed: the attempt acquires.
            let polled = P::wait_until(&self.word, Relaxed, Spin::Polls(polls), changes);
            let (Ok(word) | Err(word)) = polled;
            if self.attempt(word, waiter) {
                return true;
            }
            let first_phase = *phase.get_or_insert(word & PHASE);
            waiter.knows_spinner |= word & SPINNER == 0 || word & PHASE != first_phase;
            // Once cleared, it is another thread's, or this one sets it anew.
            waiter.spinner &= word & SPINNER != 0;
            let now = P::ticks();
            let age = now.wrapping_sub(start);
            if age > SPIN_NS || word & PICKUP != 0 || self.makes_way(word, now, waiter) {
                return false;
            }
            if P::yield_slice(now) {
                start = P::ticks();
                (phase, waiter.knows_spinner) = (None, false);
                continue;
            }
            // Each poll takes the cache line from the owner.
            polls = 1;
            let beside = word & SPINNER != 0 && !waiter.spinner;
            P::pause(Pause::Nanos(match beside {
                true => age.max(BESIDE_NS),
                false => (age / 4).min(POLL_NS),
            }));
        }
    }

    /// While threads are counted, makes the waiter the handoff target if it is old, and otherwise
    /// the spinner if there is none. Returns true where it shall sleep at once: a newcomer that has
    /// seen another thread become the spinner, and one in [`ROTATION`] others, which has woken the
    /// longest sleeper in its place.
    fn makes_way(&self, word: u32, now: u64, waiter: &mut Contender) -> bool {
        if word & (LOCKED | SLOW | HANDOFF | EMPTY) != LOCKED | SLOW {
            return false;
        }
        let old = waiter.is_old(now);
        if !old && word & SPINNER != 0 {
            return !waiter.spinner && !waiter.counted && waiter.knows_spinner;
        }
        if !waiter.counted && is_chosen(now) {
            P::kick(ptr::from_ref(&self.word), Kick::One);
            return true;
        }
        let new = match old {
            true => request(word),
            false => (word | SPINNER) ^ PHASE,
        };
        // Relaxed: it publishes nothing.
        let changed = self.word.compare_exchange(word, new, Relaxed, Relaxed);
        if changed.is_ok() {
            (waiter.target, waiter.spinner) = (old, !old);
        }
        false
    }

    /// Sleeps until the lock may be taken, and returns `None`. Returns `Some` where the wait is
    /// over, with whether the caller owns the lock.
    fn sleep(&self, waiter: &mut Contender, limit: &Limit<'_, P>) -> Option<bool> {
        loop {
            let word = self.word.load(Relaxed);
            if waiter.may_take(word) {
                return None;
            }
            if limit.is_reached() {
                return Some(self.give_up(waiter));
            }
            if !waiter.counted && word & (HANDOFF | PICKUP) == PICKUP {
                self.sleep_apart(word, waiter, limit);
                continue;
            }
            let asleep = waiter.join::<P>(word);
            if asleep != word {
                if !self.announce(word, asleep) {
                    continue;
                }
                if asleep & !word & HANDOFF != 0 {
                    waiter.target = true;
                }
                waiter.counted = true;
            }
            waiter.spinner = false;
            let class = if waiter.target {
                WakeClass::Target
            } else {
                WakeClass::Waiter
            };
            stat::count::<P>(Event::MutexSleep);
            let begun = P::ticks();
            if limit.halt(class, &self.word, asleep) {
                return None;
            }
            // A signal may have ended a long sleep.
            waiter.knows_spinner &= P::ticks().wrapping_sub(begun) <= SPIN_NS;
        }
    }

    /// Changes `word` to `joined`, which has WAKE and SLOW, and restarts releases where SLOW is
    /// new. Fails where the word is not `word` any more.
    fn announce(&self, word: u32, joined: u32) -> bool {
        // Relaxed: the halt compares the word, and `restart_releases` orders the change before the
        // releases to come.
        let changed = self.word.compare_exchange(word, joined, Relaxed, Relaxed);
        if changed.is_ok() && word & SLOW == 0 && !P::restart_releases() {
            // Waiters that found SLOW set relied on this call, and may sleep for ever.
            P::kick(ptr::from_ref(&self.word), Kick::All);
        }
        changed.is_ok()
    }

    /// Sleeps apart until the lock, handed off to another thread, is picked up. The newcomer is not
    /// counted: counted threads may pick the lock up, so they must not sleep (I4).
    fn sleep_apart(&self, word: u32, waiter: &mut Contender, limit: &Limit<'_, P>) {
        let asleep = waiter.stop_spinning(word) | APART;
        // Relaxed: the halt compares the word.
        let joined = asleep == word
            || self
                .word
                .compare_exchange(word, asleep, Relaxed, Relaxed)
                .is_ok();
        if joined {
            waiter.spinner = false;
            let woken = limit.halt(WakeClass::Target, &self.word, asleep);
            waiter.knows_spinner = false;
            let word = self.word.load(Relaxed);
            if woken && word >= SLEEPER && word & (WAKE | PICKUP) != WAKE {
                // The kick may have been meant for a counted thread.
                P::kick(ptr::from_ref(&self.word), Kick::One);
            }
        }
    }

    /// As after a sleeper that gave up.
    #[cfg(test)]
    pub(crate) fn pretend_sleepers(&self) {
        self.word.fetch_or(SLOW | EMPTY, Relaxed);
    }

    /// Whether the lock is held, and [`adopt`](Self::adopt) makes no system call but the requeue.
    pub(crate) fn adopts_at_once(&self) -> bool {
        let held = u32::from(self.word.byte0_load(Relaxed)) & (LOCKED | SLOW);
        held == LOCKED | SLOW
    }

    /// Moves a thread that sleeps on its node to the sleepers of the lock, so that an unlock wakes
    /// it. Fails where the lock is free.
    ///
    /// Calls `counted` once the thread is counted. From then on it may be awake, and on its way to
    /// [`lock_adopted`](RawLock::lock_adopted). The lock must not be freed before this returns.
    pub(crate) fn adopt(&self, sleeper: NodeId, counted: impl FnOnce()) -> bool {
        loop {
            let word = self.word.load(Relaxed);
            if word & LOCKED == 0 {
                return false;
            }
            // Its spinner may have lost its CPU.
            if !self.announce(word, add_sleeper(word & !SPINNER)) {
                continue;
            }
            counted();
            wait_list::requeue::<P>(sleeper, &self.word);
            // An unlock may have come before the requeue and found nobody asleep, or have erased
            // the flags. A fair one has handed the lock off, and then WAKE says nothing. The
            // exchange changes nothing: it reads the newest value.
            let now = self.word.fetch_or(0, Relaxed);
            if now & (LOCKED | WAKE | PICKUP) != LOCKED | WAKE {
                P::kick(&self.word, Kick::One);
            }
            return true;
        }
    }

    /// Ends the wait at its limit. Returns true where the caller owns the lock after all: the kick
    /// that it may have had must not end with it.
    fn give_up(&self, waiter: &Contender) -> bool {
        loop {
            let word = self.word.load(Relaxed);
            let spins = waiter.spinner && word & SPINNER != 0;
            if !waiter.counted && !spins {
                return false;
            }
            if waiter.may_take(word) {
                if self.attempt(word, waiter) {
                    return true;
                }
                continue;
            }
            if waiter.counted && word & SLOW == 0 {
                // Once it has gone it cannot repair flags that a release erases.
                self.announce(word, word | WAKE | SLOW);
                continue;
            }
            // Relaxed: it publishes nothing.
            let left = self
                .word
                .compare_exchange(word, waiter.leave(word), Relaxed, Relaxed);
            if left.is_ok() {
                return false;
            }
        }
    }

    /// Unlocks by compare-exchange.
    #[cold]
    #[inline(never)]
    fn unlock_slow(&self) {
        let mut seen = self.word.byte0_load(Relaxed);
        // Byte 0 alone, as in acquisitions: a processor delays an access that overlaps an earlier
        // one of another size.
        while u32::from(seen) & (WAKE | SPINNER) != WAKE {
            let ends = u32::from(seen) & EMPTY != 0 && P::restart_is_affordable();
            let new = match ends {
                true => 0,
                false => seen & !(LOCKED as u8),
            };
            // UL: release, pairs with LA. The lock may be freed from here on (I5).
            match self.word.byte0_compare_exchange(seen, new, Release) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
        self.unlock_waking();
    }

    /// Unlocks and wakes a sleeper, or hands off to the target.
    #[cold]
    #[inline(never)]
    fn unlock_waking(&self) {
        let address = ptr::from_ref(&self.word);
        let mut word = self.word.load(Relaxed);
        loop {
            let (new, whom) = if word & HANDOFF != 0 {
                (word | PICKUP, Some(Kick::Target))
            } else if word & (WAKE | SPINNER) == WAKE {
                (word & !(LOCKED | WAKE), Some(Kick::One))
            } else {
                (word & !LOCKED, None)
            };
            // UL: release, pairs with LA. The lock may be freed from here on (I5).
            match self.word.compare_exchange_weak(word, new, Release, Relaxed) {
                Ok(_) => {
                    if let Some(whom) = whom {
                        stat::count::<P>(match whom {
                            Kick::Target => Event::MutexHandoff,
                            _ => Event::PvKickUnlock,
                        });
                        P::kick(address, whom);
                    }
                    return;
                }
                Err(now) => word = now,
            }
        }
    }
}

// SAFETY: an acquisition is a compare-exchange that sets a clear LOCKED, or clears a set PICKUP,
// and each succeeds for one thread. Only the owner clears LOCKED or sets PICKUP.
unsafe impl<P: FutexPlatform> RawLock for Overlock<P> {
    type Token = ();

    const NAME: &'static str = "overlock";

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
        if !P::release(&self.word) {
            self.unlock_slow();
        }
    }

    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & LOCKED != 0
    }

    /// Misses waiters that still spin.
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

// SAFETY: as above; a waiter that gives up has not acquired the lock.
unsafe impl<P: FutexPlatform> RawTimedLock for Overlock<P> {
    #[inline]
    fn lock_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        (self.take() || self.lock_slow(false, &Limit::until(deadline))).then_some(())
    }
}

// SAFETY: as above.
unsafe impl<P: FutexPlatform> RawCancelLock<P> for Overlock<P> {
    fn lock_cancellable(&self, cancel: &CancelToken<P>, deadline: Option<Deadline>) -> Option<()> {
        let limit = Limit {
            deadline,
            cancel: Some(cancel),
        };
        (self.take() || self.lock_slow(false, &limit)).then_some(())
    }
}

// SAFETY: as above.
unsafe impl<P: FutexPlatform> RawFairLock for Overlock<P> {
    unsafe fn unlock_fair(&self, (): ()) {
        crate::check!(self.is_locked(), "unlock of a lock that is free");
        let address = ptr::from_ref(&self.word);
        let mut word = self.word.load(Relaxed);
        // With a saturated count there may be nobody to pick it up.
        while word & (WAKE | HANDOFF) == WAKE && word < MANY {
            // UL: release, pairs with LA. The lock may be freed from here on (I5).
            let given = word & !WAKE | PICKUP;
            match self
                .word
                .compare_exchange_weak(word, given, Release, Relaxed)
            {
                Ok(_) => return P::kick(address, Kick::One),
                Err(now) => word = now,
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.unlock(()) }
    }
}

// SAFETY: the word names no nodes.
unsafe impl<P: FutexPlatform> RawFork for Overlock<P> {
    unsafe fn forget_waiters(&self) {
        let word = self.word.load(Relaxed);
        let held = word & LOCKED != 0 && word & PICKUP == 0;
        self.word.store(u32::from(held), Relaxed);
    }
}

impl<P: Platform> HasFacts for Overlock<P> {
    const FACTS: Facts = Facts {
        about: "the one we recommend",
        bound: Bound::Each(Duration::from_nanos(HANDOFF_NS)),
        freed_by_last_user: true,
        tried_in_handlers: true,
        compared: true,
        ..Facts::SLEEPING
    };
}
