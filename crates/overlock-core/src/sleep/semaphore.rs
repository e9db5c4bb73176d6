//! A counting semaphore: permits, first come, first served.
//!
//! As the kernel's, whose `up` gives its permit to the first sleeper and leaves the count alone, so
//! that no newcomer can take it on the way. There a spinlock guards count and list. Here count,
//! "somebody waits" and "somebody is at work on the list" are one word: without waiters acquiring
//! and releasing are one exchange each, and a release never waits, not even for that guard. So any
//! context may release, a signal handler too.
//!
//! # Layout
//!
//! ```text
//!  31                2     1          0
//! +-------------------+---------+--------+
//! | permits - initial | guarded | queued |      12 bytes with the two fields below
//! +-------------------+---------+--------+
//! ```
//!
//! | field | who writes it, and when |
//! |---|---|
//! | `word` | everybody, by exchange, addition or subtraction: it is never just stored to |
//! | `waiters: 2 × u16` | who has set guarded, until it clears it |
//! | `initial` | nobody after `new`: atomics of a platform can be built in a `const` only as 0, so the word counts from here |
//! | `Node::info` | the waiter, before it joins: how many permits it wants; who has the guard: 0, they are granted |
//!
//! # States
//!
//! (permits, queued, guarded):
//!
//! ```text
//! (p, 0, 0)  --acquire n, n <= p-->    (p - n, 0, 0)
//! (p, 0, 0)  --acquire n, n > p-->     (p, 1, 1)        joins the list, then serves
//! (p, 1, 0)  --acquire-->              (p, 1, 1)        joins the list, then serves
//! (p, *, 0)  --give up-->              (p, 1, 1)        leaves the list, unless it was granted just now, then serves
//! (p, 1, 1)  --acquire, give up-->     (p, *, 0)        waits until the guard is free
//! (p, 0, 0)  --release n-->            (p + n, 0, 0)
//! (p, 1, 0)  --release n-->            (p + n, 1, 1)    serves
//! (p, 1, 1)  --release n-->            (p + n, 1, 1)    no more: who has the guard serves
//!
//! serving:
//! (p, 1, 1)  --first wants n <= p-->   (p - n, 1, 1)    out of the list, into the batch of those granted; again
//! (p, 1, 1)  --first wants n > p-->    (p, 1, 0)        done
//! (p, 1, 1)  --nobody is left-->       (p, 0, 0)        done
//! (p, 1, 1)  --done-->                 (p + n, 1, 1)    not yet: there are more permits by now
//! done: the batch is told, one after another
//!
//! without a node: backs off between attempts
//! ```
//!
//! # Invariants
//!
//! - I1: guarded is never set without queued. Who has set it clears it, and meanwhile others only
//!   add permits.
//! - I2: queued without guarded: the list is not empty, and its first wants more permits than there
//!   are.
//! - I3: without the guard, permits are taken only where queued is clear. So nobody passes a
//!   waiter, and the permits under the guard are spoken for by the first of the list alone.
//! - I4: a waiter leaves the list under the guard: by itself, or granted. Granted, it stays until
//!   it was told: its node is the batch's.
//! - I5: an operation touches the semaphore for the last time before anybody can acquire by it: its
//!   exchange without waiters, else the exchange that drops the guard. Those granted are told after
//!   that. So who acquires the last permit that will ever be released may free the semaphore at
//!   once.
//!
//! # Orderings
//!
//! - SR, release, adds permits; SA, acquire, takes them, for oneself or for the first of the list.
//!   Every change of the word is a read-modify-write, so release sequences never break: SA pairs
//!   with every SR before it.
//! - GA, acquire, sets guarded; GR, release, clears it: they order the list, whose accesses are
//!   Relaxed.
//! - What is granted is told by WS of `sleep/wait_list.rs`, after SA: so the waiter too has all
//!   that the releasers did.
//!
//! # Why no wake-up is lost
//!
//! A waiter sets queued in the exchange that finds too few permits. A release comes before that
//! exchange, which then fails or finds its permits; or after it, and sees queued. Then it takes the
//! guard and serves; or somebody has the guard, and its exchange that drops it fails, since it
//! expects the permits that it has last looked at: it serves once more. So permits never lie idle
//! beside a waiter that could have them (I2). A waiter that gives up serves too: it may have been a
//! first that wanted many, with enough permits for the next. How a told waiter wakes is in
//! `sleep/wait_list.rs`.
//!
//! # Where this deviates from the published form
//!
//! - The guard is a bit of the count's word, and a release does not wait for it.
//! - An acquisition may ask for several permits. It waits for all of them at the head of the list,
//!   and all behind it wait with it: that is what keeps it from starving.
//! - Those granted are told outside the guard (I5); the kernel did this only later, and its
//!   semaphore may not be freed so.

mod states;
#[cfg(test)]
mod tests;

use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use super::batch::Batch;
use super::cancel::CancelToken;
use super::wait_list::{End, Limit, Waiter};
use crate::links::{Links, backoff_sleep};
use crate::node::NodeId;
use crate::platform::{Atomic, ConstPlatform, Deadline, Platform, Spin, Zero};
use crate::raw::RawFork;
use crate::stat::{self, Event};
use states::Step;

/// A counting semaphore: see the [module's page](self). 12 bytes.
pub struct Semaphore<P: Platform> {
    word: P::U32,
    waiters: Links<P>,
    initial: Fixed,
}

/// The most permits that a semaphore can have.
pub const MAX_PERMITS: u32 = u32::MAX >> SHIFT;

const QUEUED: u32 = 1;
const WAIT_LOCK: u32 = 2;
const SHIFT: u32 = 2;

/// What a waiter's `Node::info` holds once its permits are its own.
const GRANTED: u32 = 0;
/// What a granted waiter is told.
const WOKEN: u32 = 1;

/// More permits than there can be.
const NEVER: u32 = u32::MAX;

/// Looks at the guard before a waiter for it gives its CPU away: the holder has lost its own.
const POLLS: u32 = 1000;

const fn permits(state: u32) -> u32 {
    state >> SHIFT
}

/// The state that the word counts from. It is never written, and in a cell all the same: a
/// reference to memory outside of cells promises that this lives as long as the reference, which
/// that of a release that is about to return may not (I5).
struct Fixed(UnsafeCell<u32>);

// SAFETY: it is never written.
unsafe impl Sync for Fixed {}

impl Fixed {
    const fn new(permits: u32) -> Self {
        assert!(
            permits <= MAX_PERMITS,
            "more permits than a semaphore holds"
        );
        Fixed(UnsafeCell::new(permits << SHIFT))
    }

    #[inline]
    const fn get(&self) -> u32 {
        // SAFETY: it is never written.
        unsafe { *self.0.get() }
    }
}

impl<P: ConstPlatform> Semaphore<P> {
    /// A new semaphore with this many permits.
    ///
    /// # Panics
    ///
    /// Where that is more than [`MAX_PERMITS`].
    pub const fn new(permits: u32) -> Self {
        Semaphore {
            word: Zero::ZERO,
            waiters: Links::INIT,
            initial: Fixed::new(permits),
        }
    }
}

impl<P: Platform> Semaphore<P> {
    /// As `new`, for platforms whose atomics cannot be built in a `const`.
    ///
    /// # Panics
    ///
    /// Where that is more than [`MAX_PERMITS`].
    pub fn create(permits: u32) -> Self {
        Semaphore {
            word: P::U32::new(0),
            waiters: Links::new(),
            initial: Fixed::new(permits),
        }
    }

    /// Takes one permit, waiting for as long as it takes.
    #[inline]
    pub fn acquire(&self) {
        self.acquire_many(1);
    }

    /// Takes one permit if there is one and nobody waits. A failure orders nothing. Safe to call
    /// from a signal handler.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        self.try_acquire_many(1)
    }

    /// Takes one permit unless `deadline` passes first. Tries at least once; never gives up before
    /// it.
    #[inline]
    pub fn acquire_until(&self, deadline: impl Into<Deadline>) -> bool {
        self.acquire_many_limited(1, Some(deadline.into()), None)
    }

    /// Takes one permit unless `cancel` is cancelled first, or `deadline` passes. Tries at least
    /// once.
    #[inline]
    pub fn acquire_cancellable(&self, cancel: &CancelToken<P>, deadline: Option<Deadline>) -> bool {
        self.acquire_many_limited(1, deadline, Some(cancel))
    }

    /// Takes `n` permits, all at once, waiting for as long as it takes; and those that come later
    /// wait behind it. For none it never waits; for more than [`MAX_PERMITS`] it would for
    /// ever, and the `checked` feature panics.
    #[inline]
    pub fn acquire_many(&self, n: u32) {
        self.acquire_many_limited(n, None, None);
    }

    /// Takes `n` permits if there are so many and nobody waits. A failure orders nothing. Safe to
    /// call from a signal handler.
    #[inline]
    pub fn try_acquire_many(&self, n: u32) -> bool {
        let mut seen = self.state();
        while seen & QUEUED == 0 && permits(seen) >= n {
            // (p, 0, 0) -> (p - n, 0, 0). SA: acquire, pairs with SR.
            match self.exchange(seen, seen - (n << SHIFT), Acquire, Relaxed) {
                Ok(()) => {
                    Step::Take.taken::<P>();
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        n == 0
    }

    /// Takes `n` permits unless `cancel` is cancelled first, or `deadline` passes:
    /// [`acquire_many`](Self::acquire_many) and
    /// [`acquire_cancellable`](Self::acquire_cancellable) in one.
    #[inline]
    pub fn acquire_many_limited(
        &self,
        n: u32,
        deadline: Option<Deadline>,
        cancel: Option<&CancelToken<P>>,
    ) -> bool {
        self.try_acquire_many(n) || self.acquire_slow(n, &Limit { deadline, cancel })
    }

    /// Gives one permit back, or a new one: whoever releases need not have acquired. Never waits;
    /// safe to call from a signal handler.
    #[inline]
    pub fn release(&self) {
        self.release_many(1);
    }

    /// As [`release`](Self::release), with `n` permits. Those beyond [`MAX_PERMITS`] are lost, and
    /// debug builds and the `checked` feature panic.
    #[inline]
    pub fn release_many(&self, n: u32) {
        let seen = self.state();
        // (p, 0, 0) -> (p + n, 0, 0). SR: release, pairs with SA.
        if seen & QUEUED == 0 && self.exchange(seen, plus(seen, n), Release, Relaxed).is_ok() {
            Step::Release.taken::<P>();
        } else {
            self.release_slow(n);
        }
    }

    /// How many permits there are. A snapshot: it may be stale when it arrives.
    pub fn available(&self) -> u32 {
        permits(self.state())
    }

    /// Whether somebody waits. A snapshot.
    pub fn is_contended(&self) -> bool {
        self.state() & QUEUED != 0
    }

    #[cold]
    fn acquire_slow(&self, n: u32, limit: &Limit<'_, P>) -> bool {
        crate::check!(n <= MAX_PERMITS, "more permits than a semaphore holds");
        let Some(waiter) = Waiter::<P>::new() else {
            return self.acquire_without_node(n, limit);
        };
        waiter.prepare();
        waiter.node().info.store(n, Relaxed);
        if self.take_or_lock_list(n) {
            return true;
        }
        stat::count::<P>(Event::LockSlowpath);
        self.waiters.push_back(waiter.id());
        Step::Join.taken::<P>();
        self.serve();
        matches!(waiter.sleep(limit), End::Signalled(_)) || self.give_up(&waiter)
    }

    /// Leaves the list; true where the permits were granted first.
    #[cold]
    fn give_up(&self, waiter: &Waiter<P>) -> bool {
        self.take_or_lock_list(NEVER);
        let granted = waiter.node().info.load(Relaxed) == GRANTED;
        if granted {
            Step::GrantedAtLimit.taken::<P>();
        } else {
            self.waiters.unlink(waiter.id());
            Step::GiveUp.taken::<P>();
        }
        self.serve();
        if granted {
            // Who granted them is about to say so (I4).
            waiter.sleep(&Limit::NONE);
        }
        granted
    }

    /// Takes `n` permits where nobody waits and there are enough (true), else the guard.
    fn take_or_lock_list(&self, n: u32) -> bool {
        let mut seen = self.state();
        loop {
            let enough = seen & QUEUED == 0 && permits(seen) >= n;
            let next = match seen & WAIT_LOCK {
                // (p, 0, 0) -> (p - n, 0, 0)
                0 if enough => seen - (n << SHIFT),
                // (p, *, 0) -> (p, 1, 1)
                0 => seen | QUEUED | WAIT_LOCK,
                _ => {
                    self.wait_for_list();
                    seen = self.state();
                    continue;
                }
            };
            // SA, GA: acquire, pairs with SR and GR.
            match self.exchange(seen, next, Acquire, Relaxed) {
                Ok(()) => {
                    Step::of_taking(seen, enough).taken::<P>();
                    return enough;
                }
                Err(now) => seen = now,
            }
        }
    }

    fn wait_for_list(&self) {
        let polls = Spin::Polls(POLLS);
        // Relaxed: the exchange that follows acquires.
        let free = P::wait_until(&self.word, Relaxed, polls, |word: u32| {
            word & WAIT_LOCK == 0
        });
        Step::AwaitList.taken::<P>();
        if free.is_err() {
            backoff_sleep::<P>();
        }
    }

    /// Grants permits to the first of the list for as long as there are enough, drops the guard,
    /// and wakes them.
    fn serve(&self) {
        let granted = Batch::<P>::new();
        // SA, of those that have added permits since the guard was taken, and GA, for who took it
        // to release: acquire, pairs with SR and GR.
        let mut seen = self.word.load(Acquire).wrapping_add(self.initial.get());
        loop {
            match self.waiters.first() {
                Some(id) if wants::<P>(id) <= permits(seen) => {
                    let n = wants::<P>(id) << SHIFT;
                    // (p, 1, 1) -> (p - n, 1, 1). Subtracted, since others may add meanwhile. SA:
                    // acquire, pairs with SR.
                    let before = self.word.fetch_sub(n, Acquire);
                    Step::Grant.taken::<P>();
                    seen = before.wrapping_add(self.initial.get()) - n;
                    self.waiters.unlink(id);
                    id.node::<P>().info.store(GRANTED, Relaxed);
                    granted.push(id);
                }
                first => {
                    let queued = first.map_or(0, |_| QUEUED);
                    let next = seen & !(QUEUED | WAIT_LOCK) | queued;
                    // (p, 1, 1) -> (p, q, 0). GR: release, pairs with GA. It fails where permits
                    // have come meanwhile; SA then: acquire, pairs with SR.
                    match self.exchange(seen, next, Release, Acquire) {
                        Ok(()) => {
                            Step::of_serving(queued).taken::<P>();
                            break;
                        }
                        Err(now) => {
                            Step::ServeAgain.taken::<P>();
                            seen = now;
                        }
                    }
                }
            }
        }
        // I5: from here on the semaphore may be gone.
        granted.wake(WOKEN);
    }

    #[cold]
    fn release_slow(&self, n: u32) {
        let mut seen = self.state();
        loop {
            // (p, 0, 0) -> (p + n, 0, 0), (p, 1, *) -> (p + n, 1, 1)
            let serves = seen & (QUEUED | WAIT_LOCK) == QUEUED;
            let wait_lock = if serves { WAIT_LOCK } else { 0 };
            // SR: release, pairs with SA. GA is the first look of `serve`.
            match self.exchange(seen, plus(seen, n) | wait_lock, Release, Relaxed) {
                Ok(()) => {
                    Step::of_releasing(seen).taken::<P>();
                    if serves {
                        self.serve();
                    }
                    return;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Naps and tries in turn: for threads beyond the slots, and for a fifth context. It has no
    /// place in the list, so it gets permits only at a moment when nobody waits.
    #[cold]
    fn acquire_without_node(&self, n: u32, limit: &Limit<'_, P>) -> bool {
        stat::count::<P>(Event::LockNoNode);
        loop {
            if self.try_acquire_many(n) {
                return true;
            }
            if limit.reached().is_some() {
                return false;
            }
            backoff_sleep::<P>();
            Step::BackoffSleep.taken::<P>();
        }
    }

    /// The word, counted from 0. The flags are the word's own: `initial` has zeros there.
    #[inline]
    fn state(&self) -> u32 {
        self.word.load(Relaxed).wrapping_add(self.initial.get())
    }

    /// A compare-exchange of the [`state`](Self::state).
    #[inline]
    fn exchange(
        &self,
        seen: u32,
        next: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<(), u32> {
        // Once: after the exchange the semaphore may be gone (I5).
        let initial = self.initial.get();
        let [seen, next] = [seen, next].map(|state| state.wrapping_sub(initial));
        match self.word.compare_exchange(seen, next, success, failure) {
            Ok(_) => Ok(()),
            Err(now) => Err(now.wrapping_add(initial)),
        }
    }
}

/// How many permits a waiter in the list wants.
fn wants<P: Platform>(id: NodeId) -> u32 {
    id.node::<P>().info.load(Relaxed)
}

/// The state with `n` more permits, as far as there is room for them.
#[inline]
fn plus(state: u32, n: u32) -> u32 {
    let room = MAX_PERMITS - permits(state);
    crate::check!(n <= room, "more permits released than a semaphore holds");
    state + (n.min(room) << SHIFT)
}

impl<P: Platform> fmt::Debug for Semaphore<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available", &self.available())
            .field("is_contended", &self.is_contended())
            .finish_non_exhaustive()
    }
}

// SAFETY: the list is all that names a node.
unsafe impl<P: Platform> RawFork for Semaphore<P> {
    /// Permits that were granted to a waiter are lost.
    unsafe fn forget_waiters(&self) {
        self.word.fetch_and(!(QUEUED | WAIT_LOCK), Relaxed);
        self.waiters.forget();
    }
}
