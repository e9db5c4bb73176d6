//! One-time initialisation: the first caller does the work, the others sleep until it is done. If
//! the work panics the state is poisoned: from then on only forced calls try again.
//!
//! # Layout
//!
//! 8 bytes; `list.own` is written under the wait lock of `list`.
//!
//! | field | who writes it |
//! |---|---|
//! | `list.own: u8` | an [`OnceState`]; in progress, done and poisoned: the runner |
//! | `list` | threads that find it in progress, or wait for others to do it; the runner empties it |
//!
//! # States
//!
//! ```text
//!         first call                    returns
//!   new --------------> in progress ----------------> done        for good
//!                         |     ^
//!                  panics |     | forced call
//!                         v     |
//!                        poisoned
//! ```
//!
//! At the end of each run all sleepers are woken, and check the state again:
//!
//! | | new | in progress | poisoned | done |
//! |---|---|---|---|---|
//! | `call_once` | runs | sleeps | panics | returns |
//! | `call_once_force` | runs | sleeps | runs | returns |
//! | `wait` | sleeps | sleeps | panics | returns |
//! | `wait_force` | sleeps | sleeps | sleeps | returns |
//!
//! A thread without a node backs off where others sleep.
//!
//! # Invariants
//!
//! - O1: there is at most one runner.
//! - O2: a thread in the list sleeps on a state to which its row above says "sleeps".
//! - O3: "done" is for good, and "new" never comes back.
//!
//! # Orderings
//!
//! OR, the release store of the state at the end of a run, pairs with OA, the acquire load of
//! threads that need not wait. Sleepers have it by WS of `sleep/wait_list.rs` and the wait lock.
//!
//! # Why no wake-up is lost
//!
//! A waiter sees the state and joins the list under one hold of the wait lock. The runner changes
//! the state and empties the list under a later one. Only the change to "in progress" wakes nobody,
//! and nobody in the list waits for that.
//!
//! # Why all are woken where a run panics
//!
//! The list does not say which waiters would run and which only wait, and unforced ones have to
//! learn of the panic. Forced waiters then all wake up for one more runner; a panic is rare enough
//! for that.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::wait_list::{Batch, Limit, WaitList, Waiter, Waiters};
use crate::links::backoff_sleep;
use crate::platform::{Atomic, Platform};
use crate::stat::{self, Event};

/// One-time initialisation: see the [module's page](self). 8 bytes.
#[derive(Debug)]
pub struct Once<P: Platform> {
    list: WaitList<P>,
}

/// The state of a [`Once`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum OnceState {
    /// No run has begun.
    New = 0,
    /// The last run panicked, and no other has begun since.
    Poisoned = 1,
    /// A run is in progress.
    InProgress = 2,
    /// A run has returned.
    Done = 3,
}

impl OnceState {
    /// Whether the last run panicked.
    #[inline]
    pub const fn is_poisoned(self) -> bool {
        matches!(self, OnceState::Poisoned)
    }

    /// [`is_poisoned`](Self::is_poisoned), by the name that parking_lot had for it first.
    #[inline]
    pub const fn poisoned(self) -> bool {
        self.is_poisoned()
    }

    /// Whether a run has returned.
    #[inline]
    pub const fn is_completed(self) -> bool {
        matches!(self, OnceState::Done)
    }

    /// [`is_completed`](Self::is_completed), by the name that parking_lot had for it first.
    #[inline]
    pub const fn done(self) -> bool {
        self.is_completed()
    }

    #[inline]
    const fn of(state: u8) -> Self {
        match state {
            0 => OnceState::New,
            1 => OnceState::Poisoned,
            2 => OnceState::InProgress,
            _ => OnceState::Done,
        }
    }
}

/// `Node::state` of a signalled waiter: it checks again.
const WOKEN: u32 = 1;

/// The runner. Its drop ends the run with the state `end`.
struct Runner<'a, P: Platform> {
    once: &'a Once<P>,
    found: OnceState,
    end: OnceState,
}

impl<P: Platform> Default for Once<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> Once<P> {
    /// Returns a new `Once`, in the state "new".
    pub const fn new() -> Self {
        Self::with_state(Atomic::ZERO)
    }

    /// Returns a `Once` in this state, an [`OnceState`] as a number. In a `const` only the caller,
    /// who knows the platform, can build an atomic that is not 0. A `Once` that begins in progress
    /// stays so.
    pub const fn with_state(state: P::U8) -> Self {
        Once {
            list: WaitList::with(state),
        }
    }

    /// Calls `work`, unless a run has returned; waits for a run in progress. The run's effects are
    /// visible afterwards. Panics if `work` panics. `work` must not call this again: it would wait
    /// for itself.
    ///
    /// # Panics
    ///
    /// If an earlier run panicked, also during this call's wait, and none has returned since.
    #[inline]
    #[track_caller]
    pub fn call_once(&self, work: impl FnOnce()) {
        if self.is_done() {
            return;
        }
        if let Some(mut runner) = self.become_runner(false) {
            work();
            runner.end = OnceState::Done;
        }
    }

    /// As [`call_once`](Self::call_once), but runs again where earlier runs have panicked. `work`
    /// receives the state before: [`New`](OnceState::New) or
    /// [`Poisoned`](OnceState::Poisoned).
    #[inline]
    pub fn call_once_force(&self, work: impl FnOnce(OnceState)) {
        if self.is_done() {
            return;
        }
        if let Some(mut runner) = self.become_runner(true) {
            work(runner.found);
            runner.end = OnceState::Done;
        }
    }

    /// Waits until a run by another thread has returned; its effects are visible.
    ///
    /// # Panics
    ///
    /// If a run has panicked, before or during the wait, and none has returned since.
    #[inline]
    #[track_caller]
    pub fn wait(&self) {
        if !self.is_done() {
            self.wait_slow(false);
        }
    }

    /// As [`wait`](Self::wait), but waits on where runs panic.
    #[inline]
    pub fn wait_force(&self) {
        if !self.is_done() {
            self.wait_slow(true);
        }
    }

    /// Whether a run has returned. If so, its effects are visible.
    #[inline]
    pub fn is_done(&self) -> bool {
        // OA: acquire, pairs with OR.
        self.list.own.load(Acquire) == OnceState::Done as u8
    }

    /// The state. A snapshot, but "done" is for good. If a run has ended, and none is in progress,
    /// its effects are visible.
    #[inline]
    pub fn state(&self) -> OnceState {
        // OA: acquire, pairs with OR.
        OnceState::of(self.list.own.load(Acquire))
    }

    /// Waits for a run in progress, and then begins one. `None` once it is done. Panics on
    /// "poisoned" unless `force`.
    #[cold]
    #[track_caller]
    fn become_runner(&self, force: bool) -> Option<Runner<'_, P>> {
        let (found, waiters) = self.sleep_while(|state| state == OnceState::InProgress);
        if found == OnceState::Done {
            return None;
        }
        if found == OnceState::Poisoned && !force {
            drop(waiters);
            poisoned();
        }
        // new -> in progress, poisoned -> in progress
        self.list.own.store(OnceState::InProgress as u8, Relaxed);
        Some(Runner {
            once: self,
            found,
            end: OnceState::Poisoned,
        })
    }

    /// Waits until it is done. Panics on "poisoned" unless `force`.
    #[cold]
    #[track_caller]
    fn wait_slow(&self, force: bool) {
        let (found, waiters) =
            self.sleep_while(|state| !state.is_completed() && (force || !state.is_poisoned()));
        drop(waiters);
        if found == OnceState::Poisoned {
            poisoned();
        }
    }

    /// Sleeps while `sleeps_on` holds for the state. Returns the state for which it does not, and
    /// the list, locked since the state was seen.
    fn sleep_while(&self, sleeps_on: impl Fn(OnceState) -> bool) -> (OnceState, Waiters<'_, P>) {
        loop {
            let waiters = self.list.lock();
            let state = OnceState::of(self.list.own.load(Relaxed));
            if !sleeps_on(state) {
                return (state, waiters);
            }
            if let Some(waiter) = Waiter::<P>::new(self) {
                waiter.prepare();
                waiters.push_back(waiter.id());
                drop(waiters);
                waiter.sleep(&Limit::NONE);
            } else {
                drop(waiters);
                stat::count::<P>(Event::LockNoNode);
                backoff_sleep::<P>();
            }
        }
    }
}

#[cold]
#[track_caller]
fn poisoned() -> ! {
    panic!("an earlier call of this Once has panicked");
}

impl<P: Platform> Drop for Runner<'_, P> {
    fn drop(&mut self) {
        let woken = Batch::<P>::default();
        let waiters = self.once.list.lock();
        // in progress -> done, in progress -> poisoned. OR: release, pairs with OA.
        self.once.list.own.store(self.end as u8, Release);
        woken.take_all(&waiters);
        drop(waiters);
        woken.wake(WOKEN);
    }
}

#[cfg(test)]
mod tests;
