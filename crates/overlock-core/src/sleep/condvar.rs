//! A condition variable, for any lock of this crate.
//!
//! `notify_one` wakes a waiter. Whoever notifies all does not set a herd on the lock: the notified waiters stay asleep, but for the first: it wakes,
//! acquires the lock, and then has the next of them woken: as soon as it has released the lock, where that lock
//! [can do so](RawLock::kick_after_unlock), else before its `wait` returns. So at most one
//! of them contends for the lock at a time. Mutexes of futexes and of parking lots get there by a *requeue*: the notifier
//! moves the waiters from the condition's queue to the lock's, each waiter being woken by an unlock. That needs a lock whose
//! queue is known, and known to be the only one. Here the waiters queue up in front of the lock instead of in it, which is the same
//! to them, and works with every lock: a ticket, a queue node, a mutex that steals.
//!
//! # Layout
//!
//! 16 bytes. One list holds those that nobody has notified, in the order in which they came, and before them those
//! that are notified and were not called yet:
//!
//! ```text
//! list:   N1 --> N2 --> N3 --> W4 --> W5        N notified, W not; N1 is the next to be called
//!                              ^ fresh
//! ```
//!
//! | field | who writes it: under the guard of `list` |
//! |---|---|
//! | `list` | waiters, joining and giving up; who calls the first takes it out |
//! | `fresh: u16` | the first that is not notified; 0 for none |
//! | `waiting: u16` | how many those are |
//! | `called: u16` | top bit: set from the call of a waiter in the chain until it, owner of the lock again, has called the next. The rest: how many were called by `notify_one`, and are not the owner again |
//! | `epoch: u32` | `notify_all`, where somebody is not notified: one more |
//! | `Node::info` | the waiter: the epoch in which it joined; `notify_one`: the epoch before the current one |
//! | `Node::lock` | the waiter: the address of its lock |
//!
//! # States
//!
//! ```text
//!              join              notify_all               call                  has the lock
//!   owner --------------> waiting --------> notified ---------------> called --------------> owner: calls the next
//!     lock released after   |  |               |  gives up:             ^
//!     it has joined         |  |               |  waits for its call    |
//!              gives up     |  |               '------------------------'
//!   owner <-----------------'  |               called at once where nobody else of the chain is
//!                              |  notify_one                 has the lock
//!                              '-------------> called alone --------------> owner
//!
//!   a notification that finds nobody under the guard: the last one has just given up, or was notified
//!   without a node: waits for a moment, and is the owner again for no reason
//! ```
//!
//! # Invariants
//!
//! - I1: a waiter is in the list before it releases the lock.
//! - I2: a waiter in the list is notified where its `info` is not `epoch`. Notified ones leave only from the front, by a call, and the
//!   called one is not the owner before them. (So `epoch` cannot come round to a notified waiter's `info`: each step
//!   notifies at least one more, which stays behind it with a node of its own, and there are fewer nodes than epochs.)
//! - I3: `fresh` and those behind it are not notified, those before it are. `waiting` counts the former.
//! - I4: while a notified waiter is in the list, some other waiter of the chain is called, and not the owner of the lock yet.
//! - I5: at most one waiter of the chain is called at a time.
//! - I6: a waiter that has been notified tells so, whatever its deadline and its token say; one that gave up first was out of the
//!   list. So each notification is one waiter's.
//!
//! # Orderings
//!
//! The guard orders the list; accesses under it are Relaxed. A waiter has what its notifier did by WS of
//! `sleep/wait_list.rs`. The look at `fresh` without the guard is Relaxed: what counts, a waiter that joined
//! before the notifier's change of the condition, happened before it by the lock (I1).
//!
//! # Why no wake-up is lost
//!
//! A condition changes under the lock. The waiter found it false as the owner, and joined before it released the lock. So
//! whoever made it true after that, and notifies, with the lock or later without it, finds the waiter in the list. A notified waiter is
//! called at once, or there is a called one in the chain (I4). That one acquires the lock, since it has no limit any more, and calls the next.
//! Whose kick may wait for the caller's unlock: before that it could not get on.
//! How it wakes is in `sleep/wait_list.rs`.
//!
//! # Who touches it last
//!
//! A waiter takes the guard once more after it was told: to call the next, or to say that it is back. So a condition variable may go when the last
//! `wait` has returned, not when the last waiter has been notified. In Rust the borrow says so. Notifiers touch it no
//! more once they have dropped the guard, and a waiter cannot return before that: the last waiter to return may free it, whatever the
//! notifiers are at. Who has no borrow to rely on asks [`Condvar::is_in_use`],
//! or waits by [`Condvar::drain`].

mod states;
#[cfg(test)]
mod tests;

use core::sync::atomic::Ordering::Relaxed;

use super::cancel::CancelToken;
use super::wait_list::{End, Limit, WAITING, WaitList, Waiter, Waiters, kick, tell};
use crate::links::nap;
use crate::node::NodeId;
use crate::platform::{Atomic, ConstPlatform, Instant, Platform, Zero};
use crate::raw::{RawFork, RawLock};
use crate::stat::{self, Event};
use states::Step;

/// A condition variable: see the [module's page](self). 16 bytes.
///
/// All that wait at a time, those notified and not back included, use one lock. With several the `checked` feature
/// panics; without it, waiters of one lock may have to wait for one of another.
#[derive(Debug)]
pub struct Condvar<P: Platform> {
    list: WaitList<P>,
    fresh: P::U16,
    waiting: P::U16,
    called: P::U16,
    epoch: P::U32,
}

/// What a waiter of the chain is told when it is called.
const CALLED: u32 = 1;
/// What a waiter is told that `notify_one` calls.
const CALLED_ALONE: u32 = 2;

/// In `called`: one of the chain is.
const CHAIN: u16 = 1 << 15;

/// For those that notify without knowing what they own.
fn not_owned(_lock: usize) -> Option<fn(NodeId) -> bool> {
    None
}

/// Kicks a called waiter, unless that is done `later`.
fn kick_unless<P: Platform, F: FnOnce(NodeId) -> bool>(later: Option<F>, id: NodeId) {
    if !later.is_some_and(|later| later(id)) {
        kick::<P>(id);
    }
}

impl<P: ConstPlatform> Condvar<P> {
    /// A new condition variable that nobody waits for.
    pub const fn new() -> Self {
        Condvar {
            list: WaitList::INIT,
            fresh: Zero::ZERO,
            waiting: Zero::ZERO,
            called: Zero::ZERO,
            epoch: Zero::ZERO,
        }
    }
}

impl<P: ConstPlatform> Default for Condvar<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> Condvar<P> {
    /// As `new`, for platforms whose atomics cannot be built in a `const`.
    pub fn create() -> Self {
        Condvar {
            list: WaitList::new(),
            fresh: P::U16::new(0),
            waiting: P::U16::new(0),
            called: P::U16::new(0),
            epoch: P::U32::new(0),
        }
    }

    /// Releases the lock, waits until notified, and acquires the lock again. A thread that has no queue node left wakes
    /// without being notified, as any thread may from most condition variables: look at the condition again.
    ///
    /// # Safety
    ///
    /// As for [`RawLock::unlock`].
    pub unsafe fn wait<L: RawLock>(&self, lock: &L, token: L::Token) -> L::Token {
        // SAFETY: the caller's promise.
        unsafe { self.wait_limited(lock, token, None, None) }.0
    }

    /// As [`wait`](Self::wait), unless `deadline` passes first or `cancel` is cancelled; whether it was notified. It has the lock
    /// again in every case, however long that takes. One that was notified in time says so, even if the lock came
    /// late.
    ///
    /// # Safety
    ///
    /// As for [`RawLock::unlock`].
    pub unsafe fn wait_limited<L: RawLock>(
        &self,
        lock: &L,
        token: L::Token,
        deadline: Option<Instant>,
        cancel: Option<&CancelToken<P>>,
    ) -> (L::Token, bool) {
        let limit = Limit { deadline, cancel };
        let Some(waiter) = Waiter::new() else {
            // SAFETY: the caller's promise.
            return unsafe { Self::wait_without_node(lock, token, &limit) };
        };
        // I1: before the lock is released.
        self.join(&waiter, core::ptr::from_ref(lock).addr());
        // SAFETY: the caller's promise.
        unsafe { lock.unlock(token) };
        let told = self.sleep(&waiter, &limit);
        // Its node is free for the wait for the lock.
        drop(waiter);
        let token = lock.lock();
        if told != WAITING {
            self.come_back(told, lock);
        }
        (token, told != WAITING)
    }

    /// Notifies the waiter that has waited longest; whether there was one. The caller need not have the lock. Not for signal
    /// handlers.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.notify_one_from(not_owned)
    }

    /// As [`notify_one`](Self::notify_one), for callers that know which locks they own: a waiter that wakes while its lock is held, and perhaps
    /// takes its owner's CPU, does so for nothing. `owned` is given the address of the waiter's lock, which is in use at that time. If
    /// the caller owns that lock, it returns what has the waiter kicked after its release:
    /// [`RawLock::kick_after_unlock`].
    #[inline]
    pub fn notify_one_from<F>(&self, owned: impl FnOnce(usize) -> Option<F>) -> bool
    where
        F: FnOnce(NodeId) -> bool,
    {
        self.looks_waited_for() && self.notify_first(owned)
    }

    /// Notifies all waiters; how many there were. Takes no longer for many than for one: each wakes its successor.
    /// The caller need not have the lock. Not for signal handlers.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.notify_all_from(not_owned)
    }

    /// As [`notify_all`](Self::notify_all), with `owned` as in [`notify_one_from`](Self::notify_one_from).
    #[inline]
    pub fn notify_all_from<F>(&self, owned: impl FnOnce(usize) -> Option<F>) -> usize
    where
        F: FnOnce(NodeId) -> bool,
    {
        if self.looks_waited_for() {
            self.notify_each(owned)
        } else {
            0
        }
    }

    /// Whether anybody waits, or was notified and is not back yet. Takes the guard: once nobody does, and nobody can come, no
    /// other thread touches the condition variable any more.
    pub fn is_in_use(&self) -> bool {
        let waiters = self.list.lock();
        waiters.first().is_some() || self.called.load(Relaxed) != 0
    }

    /// Waits until nobody [uses it](Self::is_in_use): then its memory may go. Nobody wakes the caller, which naps between two looks, since
    /// waiters leave within microseconds. Without end while a waiter has not been notified.
    pub fn drain(&self) {
        while self.is_in_use() {
            nap::<P>();
        }
    }

    /// Whether somebody has not been notified yet.
    #[inline]
    fn looks_waited_for(&self) -> bool {
        // Relaxed: see the module's page.
        self.fresh.load(Relaxed) != 0
    }

    fn join(&self, waiter: &Waiter<P>, lock: usize) {
        let (id, node) = (waiter.id(), waiter.node());
        let waiters = self.list.lock();
        crate::check!(
            waiters
                .last()
                .is_none_or(|last| last.node::<P>().lock.load(Relaxed) == lock),
            "a condition variable is used with two locks at a time"
        );
        waiter.prepare();
        node.lock.store(lock, Relaxed);
        node.info.store(self.epoch.load(Relaxed), Relaxed);
        waiters.push_back(id);
        if self.fresh.load(Relaxed) == 0 {
            self.fresh.store(id.bits(), Relaxed);
        }
        self.waiting.fetch_add(1, Relaxed);
        Step::Join.taken::<P>();
    }

    /// Sleeps until called, and returns what it was told; WAITING where `limit` came before any notification.
    fn sleep(&self, waiter: &Waiter<P>, limit: &Limit<'_, P>) -> u32 {
        let mut end = waiter.sleep(limit);
        if !matches!(end, End::Told(_)) && !self.leave(waiter.id()) {
            // I6. It keeps its place: the lock will take it as long there as it would here.
            end = waiter.sleep(&Limit::NONE);
        }
        match end {
            End::Told(told) => told,
            _ => WAITING,
        }
    }

    /// A called waiter owns the lock again. The next of the chain wakes when this one has released it: not before, lest it
    /// take this one's CPU and wait for it.
    fn come_back<L: RawLock>(&self, told: u32, lock: &L) {
        let waiters = self.list.lock();
        if told == CALLED {
            let next = self.call_first(waiters);
            Step::of_coming_back(next).taken::<P>();
            if let Some(next) = next
                && !lock.kick_after_unlock(next)
            {
                kick::<P>(next);
            }
        } else {
            self.called.fetch_sub(1, Relaxed);
            Step::ComeBackAlone.taken::<P>();
        }
    }

    /// Leaves the list; false for a waiter that was notified, which must not.
    #[cold]
    fn leave(&self, id: NodeId) -> bool {
        let waiters = self.list.lock();
        let waits = id.node::<P>().info.load(Relaxed) == self.epoch.load(Relaxed);
        if waits {
            self.pass_fresh(&waiters, id);
            waiters.unlink(id);
            Step::GiveUp.taken::<P>();
        } else {
            Step::NotifiedAtLimit.taken::<P>();
        }
        waits
    }

    /// One waiter less that is not notified: `id`, which is still in the list.
    fn pass_fresh(&self, waiters: &Waiters<'_, P>, id: NodeId) {
        if self.fresh.load(Relaxed) == id.bits() {
            let next = waiters.after(id).map_or(0, NodeId::bits);
            self.fresh.store(next, Relaxed);
        }
        self.waiting.fetch_sub(1, Relaxed);
    }

    #[cold]
    fn notify_first<F>(&self, owned: impl FnOnce(usize) -> Option<F>) -> bool
    where
        F: FnOnce(NodeId) -> bool,
    {
        let waiters = self.list.lock();
        let Some(id) = NodeId::from_bits(self.fresh.load(Relaxed)) else {
            Step::NotifyNobody.taken::<P>();
            return false;
        };
        self.pass_fresh(&waiters, id);
        // As if it had joined before the latest `notify_all`: if it gives up now it must not leave (I6).
        let before = self.epoch.load(Relaxed).wrapping_sub(1);
        id.node::<P>().info.store(before, Relaxed);
        self.called.fetch_add(1, Relaxed);
        Step::NotifyOne.taken::<P>();
        // While it cannot return: its lock is still there.
        let later = owned(id.node::<P>().lock.load(Relaxed));
        Self::call(waiters, id, CALLED_ALONE);
        kick_unless::<P, F>(later, id);
        true
    }

    #[cold]
    fn notify_each<F>(&self, owned: impl FnOnce(usize) -> Option<F>) -> usize
    where
        F: FnOnce(NodeId) -> bool,
    {
        let waiters = self.list.lock();
        let waiting = self.waiting.load(Relaxed);
        if waiting == 0 {
            Step::NotifyNobody.taken::<P>();
        } else {
            self.epoch.fetch_add(1, Relaxed);
            self.fresh.store(0, Relaxed);
            self.waiting.store(0, Relaxed);
            Step::NotifyAll.taken::<P>();
            // I4, for those that were just notified.
            if self.called.load(Relaxed) & CHAIN == 0 {
                // While none of them can return: their lock is still there.
                let lock = waiters
                    .first()
                    .map(|first| first.node::<P>().lock.load(Relaxed));
                let later = lock.and_then(owned);
                if let Some(first) = self.call_first(waiters) {
                    Step::CallFirst.taken::<P>();
                    kick_unless::<P, F>(later, first);
                }
            }
        }
        waiting.into()
    }

    /// Calls the first of those notified, for the caller to kick. The caller has just notified it, or was called itself and has
    /// the lock now (I5).
    fn call_first(&self, waiters: Waiters<'_, P>) -> Option<NodeId> {
        let fresh = self.fresh.load(Relaxed);
        let first = waiters.first().filter(|first| first.bits() != fresh);
        match first {
            Some(id) => {
                self.called.fetch_or(CHAIN, Relaxed);
                Self::call(waiters, id, CALLED);
            }
            None => _ = self.called.fetch_and(!CHAIN, Relaxed),
        }
        first
    }

    /// Takes `id` out of the list, and drops the guard; the kick is to follow.
    fn call(waiters: Waiters<'_, P>, id: NodeId, what: u32) {
        waiters.unlink(id);
        tell::<P>(id, what);
    }

    /// A wake-up for no reason, some time later.
    ///
    /// # Safety
    ///
    /// As for [`RawLock::unlock`].
    #[cold]
    unsafe fn wait_without_node<L: RawLock>(
        lock: &L,
        token: L::Token,
        limit: &Limit<'_, P>,
    ) -> (L::Token, bool) {
        stat::count::<P>(Event::LockNoNode);
        // SAFETY: the caller's promise.
        unsafe { lock.unlock(token) };
        nap::<P>();
        Step::Nap.taken::<P>();
        let notified = limit.reached().is_none();
        (lock.lock(), notified)
    }
}

// SAFETY: `list` and `fresh` are all that names a node.
unsafe impl<P: Platform> RawFork for Condvar<P> {
    unsafe fn forget_waiters(&self) {
        self.list.forget();
        self.fresh.store(0, Relaxed);
        self.waiting.store(0, Relaxed);
        self.called.store(0, Relaxed);
    }
}
