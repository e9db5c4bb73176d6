//! The recommended mutex. `overlock::Mutex`, `ovl_mutex_t` and the drop-in's `pthread_mutex_t` are
//! built on it, and it is the gate of the recommended reader-writer lock.
//!
//! The lock is one word of 32 bits. Sleepers wait in the operating system's futex queue, so there
//! are no nodes and no tables. A lock is a compare-exchange of one byte, an unlock another.
//!
//! It is a futex mutex (Drepper, "Futexes Are Tricky", 2011) with two more published ideas:
//! - *Concurrency restriction* (Dice, "Malthusian Locks", EuroSys 2017). Sleepers are the passive
//!   set, and running threads may barge past them. Unlocks wake nobody while a thread that was
//!   woken is on its way.
//! - *Handoff* (the kernel's mutex and reader-writer semaphore). A sleeper that was bypassed for
//!   too long requests a handoff, and the next unlock hands the lock off to the sleepers.
//!
//! # Layout
//!
//! ```text
//!  31      10     9       8     7..3      2       1      0
//! +----------+--------+-------+------+---------+------+--------+
//! | sleepers | parity | tight | mark | handoff | wake | locked |
//! +----------+--------+-------+------+---------+------+--------+
//!                              byte 0
//! ```
//!
//! - *locked*: a thread owns the lock. Set by acquisitions, cleared by unlocks.
//! - *wake*: the next unlock wakes one sleeper. Set by waiters about to sleep, by `adopt`, by
//!   counted threads that acquire or leave, and by a newcomer that takes a handoff back; cleared by
//!   that unlock, and by the last counted thread.
//! - *handoff*: with locked, a request; without, the lock is *handed off* to the counted threads.
//!   Set by a waiter about to sleep and by a fair unlock; cleared by the counted thread that picks
//!   the lock up, and by the last one that leaves.
//! - *mark*: the fast paths above fail, so that a library which inlines them in programs sees each
//!   call. Set by that library, and kept by all others.
//! - *tight*: a hint: waiters leave a free lock to its owner for a turn. Set and cleared by
//!   waiters.
//! - *parity*: flips with each acquisition by a waiter.
//! - *sleepers*: the number of *counted* threads: about to sleep, asleep, or woken and not owner
//!   yet. As many bits as Linux has for the numbers of threads.
//!
//! Fast paths use byte 0 alone.
//!
//! # States
//!
//! ```text
//!          lock                  unlock, byte 0 is 1
//!   free --------> held ---------------------------------> free
//!                   |   unlock, wake: wakes one sleeper --> free
//!                   '-- unlock, a request; unlock_fair: --> handed off
//!                       wakes one sleeper
//!
//!   handed off --> held, by a counted thread; or by a newcomer, after PATIENCE looks
//!
//!   a waiter:  spins --> counted, asleep --woken--> spins --in vain--> counted, asleep: wake is set
//!                 |           |                       |                     (and handoff, after HANDOFF_NS)
//!                 '-> owner   '-> gives up            '-> owner: wake is set if others are counted
//! ```
//!
//! # Invariants
//!
//! - I1: while locked is set, one thread owns the lock; else nobody does.
//! - I2: while sleepers is not 0, one of three things holds: wake is set; or a counted thread is
//!   awake; or a kick is under way, by an unlock or by `adopt`. A counted thread that is awake sets
//!   wake again as it acquires, sleeps or leaves.
//! - I3: byte 0 of a free lock is 0, and that of a lock that is handed off is handoff alone; mark
//!   may be added to both.
//!   Counted threads sleep on words with locked and wake, so none sleeps on a lock that it may
//!   take. A lock is handed off only while threads are counted.
//! - I4: the exchange by which an unlock releases or hands off is its last access. The next owner
//!   may free the lock after that. The kick that follows needs only the address.
//!
//! # Orderings
//!
//! LA, acquire, at each acquisition pairs with UL, release, at each unlock. All changes of the word
//! are read-modify-writes, so release sequences do not break. Joins and leaves publish nothing, and
//! the futex orders its comparison of the word against kicks.
//!
//! # Slow path
//!
//! 1. A waiter spins for about as long as a wake-up costs, and for less where that has been in vain
//!    lately: [`FutexPlatform::spin_before_sleep`]. It yields its CPU at the end of its time slice.
//! 2. It joins: one exchange counts it and sets wake. Then it sleeps on the word that it wrote,
//!    until an unlock wakes it or the word has changed.
//!    Hundreds of threads change the word faster than the kernel compares it, so their sleeps are
//!    refused. From the second time on the waiter naps: it gives its CPU away for longer and
//!    longer, at most for 16 times `BACKOFF_SLEEP_NS`, since all those calls wait for one bucket
//!    in the kernel. A napper counts as awake (I2): its nap ends by itself.
//! 3. A woken thread spins again. It stays counted until it owns the lock or gives up.
//! 4. Woken in vain, it sleeps again. After `HANDOFF_NS` it sets handoff with that.
//!
//! A newcomer that finds the lock handed off gives up its CPU for about as long as a wake-up takes,
//! and looks again. Perhaps the thread that was woken has no CPU. So after `PATIENCE` looks the
//! newcomer takes the lock, and has another sleeper woken; a real-time thread, which may be what
//! keeps the other from its CPU, at once. It does not sleep until it is kicked: an owner that kicks
//! delays all others where many threads are in the kernel for this lock.
//!
//! A lock is *tight* where its owner comes back before the cache line could get to a waiter: one
//! thread alone is faster than two. A waiter sees that now and then, and sets tight. Waiters then
//! leave even the free lock alone, for `TURN_NS` or until the owner stays away.
//!
//! # Why no wake-up is lost
//!
//! A waiter joins by an exchange that sets wake, then sleeps on the value that it wrote. An unlock
//! before the join makes the join fail. An unlock between join and sleep makes the sleep fail. An
//! unlock after the sleep began sees wake, and kicks.
//!
//! The kick of an unlock may find nobody asleep. Then each counted thread is awake, since a signal
//! came, or is on its way to sleep. Wake was cleared after that thread joined with wake set. So its
//! sleep fails, and it takes the lock, or sets wake itself (I2). This holds however slow the thread
//! is, since each word that it may sleep on has locked and wake. For the same reason a joiner sets
//! wake even while a woken thread is on its way. Otherwise it would expect a word without wake.
//! Such a word may come back after the woken thread is done and its kick is lost, and the joiner
//! would sleep on it for ever.
//!
//! A counted waiter that gives up takes the lock if it is free or handed off. Otherwise it sets
//! wake for the others: no kick ends with it.
//!
//! # How long a waiter can wait
//!
//! The futex queue is first come, first served; on Linux real-time threads come before others. A
//! waiter that is counted, goes to sleep again (woken in vain, or by a signal), and has waited for
//! `HANDOFF_NS` requests a handoff: one counted thread has the lock next. That is the thread that
//! is woken, the longest sleeper, or a counted one that is awake. So while a waiter sleeps, those
//! before it are woken one after the other, and each is the owner next or goes to the end of the
//! queue. There are as many handoffs as such waiters are woken in vain; which of them has one
//! depends on chance, and no bound holds for certain. A newcomer may come first where a handoff is
//! not picked up for `PATIENCE` looks of the newcomer.
//!
//! A lock that is held or handed off depends on nobody who sleeps: an unlock wakes a sleeper
//! whoever spins, and a handoff can be taken back. While a thread that was woken for a free lock
//! has no CPU, those that slept before wait for it, or for a newcomer.
//!
//! # Where this deviates from the published forms
//!
//! - Malthusian locks keep the passive set in a list of their own, and the owner brings a thread
//!   back at random. Here the futex queue is the passive set, and each unlock that finds wake
//!   brings a thread back.
//! - The kernel's first waiter requests the handoff once it was woken in vain; here it waits for
//!   `HANDOFF_NS`. The kernel's owner word names the thread that the lock is handed off to; here it
//!   is for all that are counted, and the kernel's cannot be taken back.
//! - Drepper's mutex wakes a sleeper at each unlock while there may be one.

#[cfg(test)]
mod tests;

use core::any::TypeId;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::facts::{Bound, Facts, HasFacts};
use crate::links::BACKOFF_SLEEP_NS;
use crate::node::NodeId;
use crate::platform::{
    Atomic, ByteLanes, Deadline, FutexPlatform, Kick, Pause, Platform, Spin, spread,
};
use crate::raw::{ConstLock, RawCancelLock, RawFairLock, RawFork, RawLock, RawTimedLock};
use crate::sleep::cancel::CancelToken;
use crate::sleep::wait_list::{self, Limit};
use crate::stat::{self, Event};

/// A thread owns the lock.
#[doc(hidden)]
pub const LOCKED: u32 = 1;
/// The next unlock wakes a sleeper.
#[doc(hidden)]
pub const WAKE: u32 = 1 << 1;
/// Beside LOCKED, a request: the next unlock hands the lock off. Without LOCKED the lock is handed
/// off to the counted threads.
#[doc(hidden)]
pub const HANDOFF: u32 = 1 << 2;
/// The lock is [marked](Overlock::mark).
const MARK: u32 = 1 << 3;
/// Owners come back before the cache line could get to a waiter: waiters give them a turn.
const TIGHT: u32 = 1 << 8;
/// Flips with each acquisition by a waiter: a waiter that sees the lock released and taken again
/// knows whether another waiter took it.
const PARITY: u32 = 1 << 9;
/// One counted thread: about to sleep, asleep, or woken and not owner yet. The count has as many
/// bits as Linux has for the numbers of threads.
#[doc(hidden)]
pub const SLEEPER: u32 = 1 << 10;

/// Polls of a spin's first look, before it reads the clock.
const POLLS: u32 = 24;
/// The distance of polls is a quarter of the age of the spin, and this at most; in a turn, that.
const POLL_NS: u64 = 150;
const TURN_POLL_NS: u64 = 1_000;
/// Two polls so far apart were interrupted: the waiter is in somebody's way.
const GAP_NS: u64 = 1_500;
/// The age of a wait at which a counted waiter requests a handoff.
const HANDOFF_NS: u64 = 4_000_000;
/// How often a newcomer leaves a lock alone that is handed off, for `BACKOFF_SLEEP_NS` each time or
/// until a signal comes, before it takes it all the same: about 1 ms with Linux's timer slack.
const PATIENCE: u32 = 10;
/// A waiter whose sleeps are refused naps for `BACKOFF_SLEEP_NS`, doubled this many times at most.
const DOUBLINGS: u32 = 4;

/// One wait in so many looks whether the lock is tight. A power of two.
const PROBES: u32 = 32;
/// So many looks in a row change what the waiters think of it.
const LOOKS: u32 = 2;
/// An owner that has a free lock again within this time is soon back.
const SOON_NS: u64 = 30;
/// The turn of an owner where the lock is tight, and the age at which a waiter looks whether it
/// still is: then at twice that age, and so on.
const TURN_NS: u64 = 50_000;
const CHECK_NS: u64 = 3_000;

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
#[derive(Clone, Copy, Debug)]
struct Contender {
    /// The start of its wait, by [`Platform::ticks`].
    since: u64,
    /// This thread is one of the word's sleepers.
    counted: bool,
}

impl Contender {
    /// Whether the lock is free for this thread, or handed off to it.
    fn may_take(&self, word: u32) -> bool {
        word & LOCKED == 0 && (word & HANDOFF == 0 || self.counted)
    }

    /// Returns the word with this thread as the owner.
    fn own(&self, word: u32) -> u32 {
        let word = (word | LOCKED) ^ PARITY;
        if self.counted {
            self.leave(word & !HANDOFF)
        } else {
            word
        }
    }

    /// Returns the word without this thread, which is counted. WAKE is there for the others (I2).
    fn leave(&self, word: u32) -> u32 {
        match word - SLEEPER {
            none if none < SLEEPER => none & !(WAKE | HANDOFF),
            others => others | WAKE,
        }
    }

    /// Returns the word on which this thread is about to sleep, counted. WAKE is set even while a
    /// woken thread is on its way: see "Why no wake-up is lost" on waiters that are slow to sleep.
    fn join<P: Platform>(&self, word: u32) -> u32 {
        let word = if self.counted { word } else { word + SLEEPER };
        let is_old = self.counted && P::ticks().wrapping_sub(self.since) > HANDOFF_NS;
        word | WAKE | if is_old { HANDOFF } else { 0 }
    }
}

impl<P: FutexPlatform> Overlock<P> {
    /// The fast path. Byte 0 of a free lock is 0 (I3).
    #[inline(always)]
    fn take(&self) -> bool {
        let taken = self.word.byte0_compare_exchange(0, LOCKED as u8, Acquire);
        taken.is_ok()
    }

    /// Marks the lock: [`try_lock`](RawLock::try_lock) fails from now on, and
    /// [`try_lock_marked`](Self::try_lock_marked) stands in for it. The other operations work as
    /// before, on their slow paths.
    #[doc(hidden)]
    pub fn mark(&self) {
        // Relaxed: a flag of its own.
        self.word.fetch_or(MARK, Relaxed);
    }

    /// Whether it is marked.
    #[doc(hidden)]
    #[inline]
    pub fn is_marked(&self) -> bool {
        // Relaxed: as above.
        self.word.byte0_load(Relaxed) & MARK as u8 != 0
    }

    /// Acquires a marked lock if it is free.
    #[doc(hidden)]
    #[inline]
    pub fn try_lock_marked(&self) -> bool {
        // LA: acquire, pairs with UL.
        let (free, held) = (MARK as u8, (MARK | LOCKED) as u8);
        self.word
            .byte0_compare_exchange(free, held, Acquire)
            .is_ok()
    }

    /// Alternates spins and sleeps. Returns whether the caller owns the lock; false once `limit` is
    /// reached.
    #[cold]
    #[inline(never)]
    fn lock_slow(&self, counted: bool, limit: &Limit<'_, P>) -> bool {
        let since = P::ticks();
        let waiter = Contender { since, counted };
        self.spin(&waiter) || self.sleep_and_spin(waiter, limit)
    }

    /// The same after a spin in vain.
    #[inline(always)]
    fn sleep_and_spin(&self, mut waiter: Contender, limit: &Limit<'_, P>) -> bool {
        loop {
            if let Some(acquired) = self.sleep(&mut waiter, limit) {
                return acquired;
            }
            if self.spin(&waiter) {
                return true;
            }
        }
    }

    /// [`lock`](RawLock::lock) of a lock that was not free, and `before_sleep` is called in the
    /// middle of it where it takes long enough to sleep.
    #[doc(hidden)]
    #[inline]
    pub fn lock_watched(&self, before_sleep: impl FnOnce()) {
        let waiter = Contender {
            since: P::ticks(),
            counted: false,
        };
        if !self.spin(&waiter) {
            before_sleep();
            self.sleep_and_spin(waiter, &Limit::NONE);
        }
    }

    /// Changes `word`, or fails where it is not `word` any more.
    fn change(&self, word: u32, new: u32) -> bool {
        // LA: acquire, pairs with UL; joins and leaves need no order.
        let changed = self.word.compare_exchange(word, new, Acquire, Relaxed);
        changed.is_ok()
    }

    /// Polls the lock for about as long as a wake-up takes. Returns whether the caller owns it now.
    fn spin(&self, waiter: &Contender) -> bool {
        let limit = P::spin_before_sleep(&self.word);
        let mut start = P::ticks();
        if P::yield_slice(start) {
            start = P::ticks();
        }
        // The clock's last digits are as good as random.
        let mut probes = spread(start as usize) % PROBES == 0;
        let (mut surprises, mut check) = (0, CHECK_NS);
        // The first look takes long where PAUSE does.
        let mut last = None;
        let mut polls = if limit == 0 { 1 } else { POLLS };
        loop {
            // Relaxed: an acquisition is a compare-exchange of its own.
            let polled = P::wait_until(&self.word, Relaxed, Spin::Polls(polls), |word| {
                word & (LOCKED | TIGHT) != LOCKED
            });
            let (Ok(word) | Err(word)) = polled;
            let now = P::ticks();
            let age = now.wrapping_sub(start);
            let is_tight = limit > 0 && word & TIGHT != 0;
            let looks = if is_tight { age > check } else { probes };
            if looks && word & (LOCKED | HANDOFF) == 0 {
                let is_soon_back = self.is_soon_back(word);
                surprises = u32::from(is_soon_back != is_tight) * (surprises + 1);
                if surprises == LOOKS {
                    // Relaxed: a hint.
                    match is_soon_back {
                        true => self.word.fetch_or(TIGHT, Relaxed),
                        false => self.word.fetch_and(!TIGHT, Relaxed),
                    };
                }
                if surprises % LOOKS == 0 {
                    (surprises, probes, check) = (0, false, 2 * age.max(CHECK_NS));
                }
                (last, polls) = (None, 1);
                continue;
            }
            let spun = age.saturating_sub(if is_tight { TURN_NS } else { 0 });
            let ends = spun > limit || last.is_some_and(|last| now.wrapping_sub(last) > GAP_NS);
            let waits = is_tight && !ends && word & HANDOFF == 0 && age < TURN_NS;
            if !waits && waiter.may_take(word) && self.change(word, waiter.own(word)) {
                if !waiter.counted {
                    stat::count::<P>(Event::MutexOptLock);
                }
                P::learn_spin(&self.word, age, true);
                return true;
            }
            if ends {
                P::learn_spin(&self.word, limit, false);
            }
            if ends || word & (LOCKED | HANDOFF) == HANDOFF {
                return false;
            }
            (last, polls) = (Some(now), 1);
            if P::yield_slice(now) {
                (start, last) = (P::ticks(), None);
            } else {
                // Each poll takes the cache line from the owner.
                let is_far = is_tight && !looks;
                let most = if is_far { TURN_POLL_NS } else { POLL_NS };
                P::pause(Pause::Nanos((age / 4).min(most)));
            }
        }
    }

    /// Whether the lock, which was free, is taken again about as soon as its cache line could come
    /// here: by its owner, and not by another waiter.
    fn is_soon_back(&self, word: u32) -> bool {
        // It changes nothing, and takes the line as an acquisition would.
        let taken = self.word.compare_exchange(word, word, Relaxed, Relaxed);
        let (Ok(mut now) | Err(mut now)) = taken;
        let start = P::ticks();
        while now & LOCKED == 0 {
            if P::ticks().wrapping_sub(start) > SOON_NS {
                return false;
            }
            P::pause(Pause::Iterations(1));
            now = self.word.load(Relaxed);
        }
        (now ^ word) & PARITY == 0
    }

    /// Sleeps until the lock may be taken, and returns `None`. Returns `Some` where the wait is
    /// over, with whether the caller owns the lock: the kick that it may have had must not end with
    /// it.
    fn sleep(&self, waiter: &mut Contender, limit: &Limit<'_, P>) -> Option<bool> {
        let (mut patience, mut refusals) = (PATIENCE, 0);
        loop {
            let word = self.word.load(Relaxed);
            let is_over = limit.is_reached();
            if waiter.may_take(word) {
                if !is_over {
                    return None;
                }
                if self.change(word, waiter.own(word)) {
                    return Some(true);
                }
            } else if is_over {
                if !waiter.counted || self.change(word, waiter.leave(word)) {
                    return Some(false);
                }
            } else if word & LOCKED == 0 {
                // Handed off, and this newcomer is not counted: a counted thread picks it up (I3).
                if patience > 0 && !P::is_realtime() {
                    patience -= 1;
                    limit.nap(BACKOFF_SLEEP_NS);
                } else if self.change(word, waiter.own(word) | WAKE) {
                    // The counted threads that are awake have no CPU: another one is woken (I2).
                    return Some(true);
                }
            } else {
                patience = PATIENCE;
                let asleep = waiter.join::<P>(word);
                if asleep != word && !self.change(word, asleep) {
                    continue;
                }
                waiter.counted = true;
                stat::count::<P>(Event::MutexSleep);
                if limit.halt(&self.word, asleep) {
                    return None;
                }
                refusals += 1;
                let is_held = self.word.load(Relaxed) & (LOCKED | HANDOFF) == LOCKED;
                if is_held && refusals > 1 && !P::is_realtime() {
                    limit.nap(BACKOFF_SLEEP_NS << (refusals - 2).min(DOUBLINGS));
                }
            }
        }
    }

    /// Counts so many threads more.
    #[cfg(test)]
    pub(crate) fn pretend_sleepers(&self, more: i32) {
        self.word
            .fetch_add((more as u32).wrapping_mul(SLEEPER), Relaxed);
    }

    /// Moves a thread that sleeps on its node to the sleepers of the lock, so that an unlock wakes
    /// it. Fails where nobody owns the lock.
    ///
    /// Calls `counted` once the thread is counted. From then on it may be awake, and on its way to
    /// [`lock_adopted`](RawLock::lock_adopted). The lock must not be freed before this returns.
    pub(crate) fn adopt(&self, sleeper: NodeId, counted: impl FnOnce()) -> bool {
        loop {
            let word = self.word.load(Relaxed);
            if word & LOCKED == 0 {
                return false;
            }
            if self.change(word, (word + SLEEPER) | WAKE) {
                break;
            }
        }
        counted();
        wait_list::requeue::<P>(sleeper, &self.word);
        // An unlock may have come before the requeue and found nobody asleep. The exchange changes
        // nothing: it reads the newest value.
        let now = self.word.fetch_or(0, Relaxed);
        if now & (LOCKED | WAKE) != LOCKED | WAKE {
            P::kick(&self.word, Kick::One);
        }
        true
    }

    /// Unlocks, and wakes a sleeper if WAKE is set. The lock is handed off to the counted threads
    /// where one has requested it, or `fairly`, if there are any.
    #[cold]
    #[inline(never)]
    fn unlock_slow(&self, fairly: bool) {
        let address = ptr::from_ref(&self.word);
        loop {
            let word = self.word.load(Relaxed);
            let hands = fairly && word >= SLEEPER;
            let new = word & !(LOCKED | WAKE) | if hands { HANDOFF } else { 0 };
            // UL: release, pairs with LA. The lock may be freed from here on (I4).
            let released = self.word.compare_exchange_weak(word, new, Release, Relaxed);
            if released.is_err() {
                continue;
            }
            if new & HANDOFF != 0 {
                stat::count::<P>(Event::MutexHandoff);
            }
            if word & WAKE != 0 {
                stat::count::<P>(Event::PvKickUnlock);
                P::kick(address, Kick::One);
            }
            return;
        }
    }
}

// SAFETY: an acquisition is a compare-exchange that sets a clear LOCKED, which succeeds for one
// thread. Only the owner clears LOCKED.
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
        let released = self.word.byte0_compare_exchange(LOCKED as u8, 0, Release);
        if released.is_err() {
            self.unlock_slow(false);
        }
    }

    /// Of byte 0: a load of the word would wait for a store to that byte.
    fn is_locked(&self) -> bool {
        self.word.byte0_load(Relaxed) & LOCKED as u8 != 0
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
        let limit = Limit::cancellable(cancel, deadline);
        (self.take() || self.lock_slow(false, &limit)).then_some(())
    }
}

// SAFETY: as above.
unsafe impl<P: FutexPlatform> RawFairLock for Overlock<P> {
    unsafe fn unlock_fair(&self, (): ()) {
        crate::check!(self.is_locked(), "unlock of a lock that is free");
        self.unlock_slow(true);
    }
}

// SAFETY: the word names no nodes.
unsafe impl<P: FutexPlatform> RawFork for Overlock<P> {
    unsafe fn forget_waiters(&self) {
        // One access: another thread of the child may take the free lock meanwhile.
        self.word.fetch_and(LOCKED, Relaxed);
    }
}

impl<P: Platform> HasFacts for Overlock<P> {
    const FACTS: Facts = Facts {
        about: "the one we recommend",
        bound: Bound::Finite,
        freed_by_last_user: true,
        tried_in_handlers: true,
        compared: true,
        ..Facts::SLEEPING
    };
}
