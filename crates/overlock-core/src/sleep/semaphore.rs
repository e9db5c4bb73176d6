//! A counting semaphore: permits, first come, first served; threads with a higher
//! [rank](Platform::rank) before others.
//!
//! The kernel's `up` hands its permit to the first sleeper and leaves the count alone, so that no
//! newcomer can take it on the way. There a spinlock protects count and list. Here one word holds
//! the count, whether threads wait, and the wait lock of their list. Without waiters, an
//! acquisition and a release are one exchange each. A release never waits, not even for the wait
//! lock. So any context may release, a signal handler too.
//!
//! # Layout
//!
//! ```text
//!  31                2       1         0
//! +-------------------+-----------+--------+
//! | permits - initial | wait lock | queued |      12 bytes with the two fields below
//! +-------------------+-----------+--------+
//! ```
//!
//! | field | who writes it, and when |
//! |---|---|
//! | `word` | all threads, by exchange, addition or subtraction: it is never just stored to |
//! | `waiters: 2 × u16` | the holder of the wait lock |
//! | `initial` | nobody after `new`: the word counts from here, as a `const` atomic is 0 |
//! | `Node::info` | the waiter, before it joins: permits wanted; the wait lock's holder: 0, granted |
//! | `Node::lock` | the waiter, before it joins: its rank |
//!
//! # States
//!
//! (permits, queued, wait lock):
//!
//! ```text
//! (p, 0, 0)  --acquire n, n <= p-->    (p - n, 0, 0)
//! (p, 0, 0)  --acquire n, n > p-->     (p, 1, 1)        joins the list, then serves
//! (p, 1, 0)  --acquire-->              (p, 1, 1)        joins the list, then serves
//! (p, *, 0)  --give up-->              (p, 1, 1)        leaves the list, unless it was granted just now, then serves
//! (p, 1, 1)  --acquire, give up-->     (p, *, 0)        waits until the wait lock is free
//! (p, 0, 0)  --release n-->            (p + n, 0, 0)
//! (p, 1, 0)  --release n-->            (p + n, 1, 1)    serves
//! (p, 1, 1)  --release n-->            (p + n, 1, 1)    no more: the holder of the wait lock serves
//!
//! serving:
//! (p, 1, 1)  --first wants n <= p-->   (p - n, 1, 1)    out of the list, into the batch of those granted; again
//! (p, 1, 1)  --first wants n > p-->    (p, 1, 0)        done
//! (p, 1, 1)  --nobody is left-->       (p, 0, 0)        done
//! (p, 1, 1)  --done-->                 (p + n, 1, 1)    not yet: there are more permits by now
//! done: the batch is signalled, one after another
//!
//! without a node: backs off between attempts
//! ```
//!
//! # Invariants
//!
//! - I1: the wait lock is never held without queued. Its holder releases it, and meanwhile others
//!   only add permits.
//! - I2: with queued, and the wait lock free: the list is not empty, and its first wants more
//!   permits than there are.
//! - I3: without the wait lock, permits are taken only where queued is clear. So nobody bypasses a
//!   waiter of the same or a higher rank, and permits under the wait lock are only for the first of
//!   the list.
//! - I4: a waiter leaves the list under the wait lock: by itself, or granted. A granted waiter
//!   stays until it is signalled: its node is the batch's.
//! - I5: an operation touches the semaphore for the last time before any thread can acquire by it:
//!   its exchange without waiters, else the exchange that releases the wait lock. Granted waiters
//!   are signalled after that. So the thread that acquires the last permit that will ever be
//!   released may free the semaphore at once.
//!
//! # Orderings
//!
//! - SR, release, adds permits; SA, acquire, takes them, for the caller or for the first of the
//!   list. Every change of the word is a read-modify-write, so release sequences never break: SA
//!   pairs with every SR before it.
//! - GA, acquire, takes the wait lock; GR, release, releases it. They order the list, whose
//!   accesses are Relaxed.
//! - WS of `sleep/wait_list.rs` signals a grant, after SA: so the waiter too sees all that the
//!   releasers did.
//!
//! # Why no wake-up is lost
//!
//! A waiter sets queued in the exchange that finds too few permits. A release before that exchange
//! makes it fail, or it finds the permits. A release after it sees queued, and takes the wait lock
//! and serves. If another thread holds the wait lock, that thread's exchange that releases it
//! fails, since it expects the permits that it saw last: it serves once more. So permits never lie
//! idle beside a waiter that could have them (I2).
//!
//! A waiter that gives up serves too: it may have been a first that wanted many, with enough
//! permits for the next. `sleep/wait_list.rs` explains how a signalled waiter wakes.
//!
//! # Where this deviates from the published form
//!
//! - The wait lock is a bit of the count's word, and a release does not wait for it.
//! - An acquisition may want several permits. It waits for all of them at the head of the list, and
//!   all behind it wait with it: that keeps it from starving.
//! - Granted waiters are signalled without the wait lock (I5). The kernel did this only later, and
//!   its semaphore may not be freed so.

#[cfg(test)]
mod tests;

use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use super::cancel::CancelToken;
use super::wait_list::{Batch, Limit, Waiter};
use crate::links::{Links, backoff_sleep};
use crate::node::NodeId;
use crate::platform::{Atomic, Deadline, FutexPlatform, Platform, Spin};
use crate::raw::RawFork;
use crate::stat::{self, Event};

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

/// `Node::info` of a granted waiter.
const GRANTED: u32 = 0;
/// `Node::state` of a signalled waiter.
const WOKEN: u32 = 1;

/// More permits than there can be.
const NEVER: u32 = u32::MAX;

/// Polls of the wait lock before a waiter for it gives its CPU away: the holder has lost its own.
const POLLS: u32 = 1000;

const fn permits(state: u32) -> u32 {
    state >> SHIFT
}

/// The state that the word counts from. It is never written, but is in a cell: a reference to
/// memory outside of cells promises that the memory lives as long as the reference. In a release
/// that is about to return it may not (I5).
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

impl<P: Platform> Semaphore<P> {
    /// Returns a new semaphore with this many permits.
    ///
    /// # Panics
    ///
    /// If that is more than [`MAX_PERMITS`].
    pub const fn new(permits: u32) -> Self {
        Semaphore {
            word: Atomic::ZERO,
            waiters: Links::INIT,
            initial: Fixed::new(permits),
        }
    }
}

impl<P: FutexPlatform> Semaphore<P> {
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

    /// Takes `n` permits, all at once, waiting for as long as it takes. Later acquisitions wait
    /// behind it. With 0 it never waits. With more than [`MAX_PERMITS`] it would wait for ever, and
    /// the `checked` feature panics.
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
                Ok(()) => return true,
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

    /// Gives one permit back, or adds one: the caller need not have acquired any. Never waits; safe
    /// to call from a signal handler.
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
        if seen & QUEUED != 0
            || self
                .exchange(seen, plus(seen, n), Release, Relaxed)
                .is_err()
        {
            self.release_slow(n);
        }
    }

    /// The number of permits. A snapshot.
    pub fn available(&self) -> u32 {
        permits(self.state())
    }

    /// Whether a thread waits. A snapshot.
    pub fn is_contended(&self) -> bool {
        self.state() & QUEUED != 0
    }

    #[cold]
    fn acquire_slow(&self, n: u32, limit: &Limit<'_, P>) -> bool {
        crate::check!(n <= MAX_PERMITS, "more permits than a semaphore holds");
        let Some(waiter) = Waiter::<P>::new(self) else {
            // Without a place in the list it gets permits only at a moment when nobody waits.
            return limit.wait_without_node(|| self.try_acquire_many(n));
        };
        waiter.prepare();
        let rank_of = |id: NodeId| &id.node::<P>().lock;
        let rank = P::rank();
        waiter.node().info.store(n, Relaxed);
        rank_of(waiter.id()).store(rank as usize, Relaxed);
        if self.take_or_lock_list(n) {
            return true;
        }
        stat::count::<P>(Event::LockSlowpath);
        self.waiters.push_ranked(waiter.id(), rank, |other| {
            rank_of(other).load(Relaxed) as u32
        });
        self.serve();
        waiter.sleep(limit).is_some() || self.give_up(&waiter)
    }

    /// Leaves the list. Returns true where the permits were granted first.
    #[cold]
    fn give_up(&self, waiter: &Waiter<P>) -> bool {
        self.take_or_lock_list(NEVER);
        let granted = waiter.node().info.load(Relaxed) == GRANTED;
        if !granted {
            self.waiters.unlink(waiter.id());
        }
        self.serve();
        if granted {
            // The signal is still to come (I4).
            waiter.sleep(&Limit::NONE);
        }
        granted
    }

    /// Takes `n` permits where nobody waits and there are enough, and returns true. Otherwise takes
    /// the wait lock.
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
                Ok(()) => return enough,
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
        if free.is_err() {
            backoff_sleep::<P>();
        }
    }

    /// Grants permits to the first of the list as long as there are enough, releases the wait lock,
    /// and wakes the granted waiters.
    fn serve(&self) {
        let granted = Batch::<P>::default();
        // SA, for permits added since the wait lock was taken, and GA, where a release took it:
        // acquire, pairs with SR and GR. From here on `seen` is what this thread has acquired:
        // permits that come meanwhile are for the next round.
        let mut seen = self.word.load(Acquire).wrapping_add(self.initial.get());
        loop {
            match self.waiters.first() {
                Some(id) if wants::<P>(id) <= permits(seen) => {
                    let n = wants::<P>(id) << SHIFT;
                    // (p, 1, 1) -> (p - n, 1, 1). Subtracted, since others may add meanwhile.
                    // Relaxed: it takes what `seen` has, and SA was before.
                    self.word.fetch_sub(n, Relaxed);
                    seen -= n;
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
                        Ok(()) => break,
                        Err(now) => {
                            seen = now;
                        }
                    }
                }
            }
        }
        // I5: the semaphore may be freed from here on.
        granted.wake(WOKEN);
    }

    #[cold]
    fn release_slow(&self, n: u32) {
        let mut seen = self.state();
        loop {
            // (p, 0, 0) -> (p + n, 0, 0), (p, 1, *) -> (p + n, 1, 1)
            let serves = seen & (QUEUED | WAIT_LOCK) == QUEUED;
            let wait_lock = if serves { WAIT_LOCK } else { 0 };
            // SR: release, pairs with SA. GA is the first load of `serve`.
            match self.exchange(seen, plus(seen, n) | wait_lock, Release, Relaxed) {
                Ok(()) => {
                    if serves {
                        self.serve();
                    }
                    return;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// The word, counted from 0. The flags are the word's own: `initial` has zeros there.
    #[inline]
    fn state(&self) -> u32 {
        self.word.load(Relaxed).wrapping_add(self.initial.get())
    }

    /// A compare-exchange of the [`state`](Self::state).
    #[inline]
    #[track_caller]
    fn exchange(
        &self,
        seen: u32,
        next: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<(), u32> {
        // Loaded once: the semaphore may be freed after the exchange (I5).
        let initial = self.initial.get();
        let [seen, next] = [seen, next].map(|state| state.wrapping_sub(initial));
        match self.word.compare_exchange(seen, next, success, failure) {
            Ok(_) => Ok(()),
            Err(now) => Err(now.wrapping_add(initial)),
        }
    }
}

/// Returns how many permits a waiter in the list wants.
fn wants<P: FutexPlatform>(id: NodeId) -> u32 {
    id.node::<P>().info.load(Relaxed)
}

/// Returns the state with `n` more permits, or as many as there is room for.
#[inline]
fn plus(state: u32, n: u32) -> u32 {
    let room = MAX_PERMITS - permits(state);
    crate::check!(n <= room, "more permits released than a semaphore holds");
    state + (n.min(room) << SHIFT)
}

impl<P: FutexPlatform> fmt::Debug for Semaphore<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available", &self.available())
            .field("is_contended", &self.is_contended())
            .finish_non_exhaustive()
    }
}

// SAFETY: only the list names a node.
unsafe impl<P: FutexPlatform> RawFork for Semaphore<P> {
    /// Permits that were granted to a waiter are lost.
    unsafe fn forget_waiters(&self) {
        self.word.fetch_and(!(QUEUED | WAIT_LOCK), Relaxed);
        self.waiters.forget();
    }
}
