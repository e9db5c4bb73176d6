//! What the sleeping locks share: a guarded list of waiters, and the sleep of a waiter that can be
//! woken, can run out of time, and can be cancelled.
//!
//! A waiter owns its node through a [`Waiter`]. Under the list's guard it
//! [prepares](Waiter::prepare) and joins the list; then it [sleeps](Waiter::sleep). A waker changes
//! the node's `state` under the guard ([`tell`]), drops the guard, and [kicks](kick).
//!
//! # States
//!
//! Of a waiter, from when it is prepared until its sleep ends:
//!
//! ```text
//! waiting  --halt-->  waiting   kicked, out of time, or for no reason: it looks again
//! waiting  --tell-->  told      by a waker, under the guard
//! told     --look-->  awake
//! waiting  --look-->  awake     its deadline has passed; it was cancelled; what `sleep_until` waits for has come
//! ```
//!
//! # Why no wake-up is lost
//!
//! What a waiter halts on is the node's count of kicks, which every kick raises and nobody sets
//! back. The waiter reads the count (WC), then looks at its state, its token and the clock, then
//! halts if the count is still the same. The waker writes the state or the token's flag first, then
//! raises the count (WK, release, pairs with WC, acquire), then kicks. So a waiter that looked too
//! early finds the count changed. A kick that arrives after its waiter has left, for a node that
//! waits for something else by then, is a spurious wake-up, and each sleep looks again.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::diagram::diagram;
use crate::links::{Held, Links, WaitLock, backoff_sleep};
use crate::node::{Node, NodeGuard, NodeId};
use crate::platform::{Atomic, ConstPlatform, Deadline, Instant, Platform, Sleeper};
use crate::sleep::cancel::CancelToken;
use crate::stat::{self, Event, Latency};

diagram! {
    "wait_list" {
        Halt = "waiting -> waiting: halted, checks again",
        Signal = "waiting -> signalled",
        Signalled = "signalled -> awake",
        DeadlinePassed = "waiting -> awake: its deadline has passed",
        Cancelled = "waiting -> awake: cancelled",
        ConditionHolds = "waiting -> awake: its condition holds",
    }
}

/// The transitions that a lock cannot take that only [sleeps](Waiter::sleep) without a limit.
pub(crate) const WITHOUT_LIMIT: &[&str] = &[
    Step::DeadlinePassed.text(),
    Step::Cancelled.text(),
    Step::ConditionHolds.text(),
];

/// A waiter's state that no waker has changed yet. Others are the lock's to choose.
pub(crate) const WAITING: u32 = 0;

/// A guarded list of waiters. 6 bytes.
#[derive(Debug)]
pub(crate) struct WaitList<P: Platform> {
    links: Links<P>,
    wait_lock: WaitLock<P>,
}

impl<P: ConstPlatform> WaitList<P> {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new one, as intended
    pub(crate) const INIT: Self = WaitList {
        links: Links::INIT,
        wait_lock: WaitLock::INIT,
    };
}

/// The list of a [`WaitList`], guarded.
pub(crate) struct Waiters<'a, P: Platform> {
    links: &'a Links<P>,
    _guard: Held<'a, P>,
}

impl<P: Platform> WaitList<P> {
    pub(crate) fn new() -> Self {
        WaitList {
            links: Links::new(),
            wait_lock: WaitLock::new(),
        }
    }

    pub(crate) fn lock(&self) -> Waiters<'_, P> {
        Waiters {
            _guard: self.wait_lock.lock(),
            links: &self.links,
        }
    }

    /// Those that waited, or had the guard, are gone, by a fork.
    pub(crate) fn forget(&self) {
        self.links.forget();
        self.wait_lock.forget();
    }

    /// Whether nobody waits. A snapshot.
    pub(crate) fn looks_empty(&self) -> bool {
        self.links.first().is_none()
    }

    /// Whether somebody is at work on the list. A snapshot.
    pub(crate) fn is_busy(&self) -> bool {
        self.wait_lock.is_held()
    }
}

impl<P: Platform> core::ops::Deref for Waiters<'_, P> {
    type Target = Links<P>;

    fn deref(&self) -> &Links<P> {
        self.links
    }
}

/// Changes a waiter's state, for its next look. The caller holds the guard of the list that the
/// node is in, or was until now, and [kicks](kick) the waiter afterwards, best without the guard.
pub(crate) fn signal<P: Platform>(id: NodeId, state: u32) {
    let node = id.node::<P>();
    stamp(node);
    // WS: release, pairs with the acquire in `sleep`: what the waker did is seen by who it wakes.
    node.state.store(state, Release);
    Step::Signal.taken::<P>();
}

/// A waker is about to tell the node's waiter something.
pub(crate) fn stamp<P: Platform>(node: &Node<P>) {
    if cfg!(feature = "stat") {
        node.kicked_at.store(P::now().as_nanos(), Relaxed);
    }
}

/// Wakes the waiter that was [told](signal) something.
pub(crate) fn kick<P: Platform>(id: NodeId) {
    let node = id.node::<P>();
    // WK: release, pairs with WC.
    node.kicks.fetch_add(1, Release);
    stat::count::<P>(Event::PvKickUnlock);
    stat::timed::<P, ()>(Latency::PvLatencyKick, || P::kick(&node.kicks));
}

/// Moves the waiter that was [told](signal) something to the sleepers of `word`, or wakes it where
/// the platform cannot do that. The waiter has to be there: later its node may be in use for
/// something else.
pub(crate) fn requeue<P: Platform>(id: NodeId, word: &P::U32) {
    let node = id.node::<P>();
    // WK: release, pairs with WC. Who is about to halt does not.
    node.kicks.fetch_add(1, Release);
    if !P::requeue(&node.kicks, word) {
        P::kick(&node.kicks);
    }
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A waker has set this state.
    Signalled(u32),
    Deadline,
    Cancelled,
}

impl End {
    /// The transition by which a sleep ends so.
    fn step(self) -> Step {
        match self {
            End::Signalled(_) => Step::Signalled,
            End::Deadline => Step::DeadlinePassed,
            End::Cancelled => Step::Cancelled,
        }
    }
}

/// How long to wait: for ever, up to a moment, until cancelled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit<'a, P: Platform> {
    pub(crate) deadline: Option<Deadline>,
    pub(crate) cancel: Option<&'a CancelToken<P>>,
}

impl<P: Platform> Limit<'_, P> {
    pub(crate) const NONE: Self = Limit {
        deadline: None,
        cancel: None,
    };

    pub(crate) fn until(deadline: impl Into<Deadline>) -> Self {
        Limit {
            deadline: Some(deadline.into()),
            cancel: None,
        }
    }

    /// Whether nothing ends the wait but what it is for.
    pub(crate) fn is_for_ever(&self) -> bool {
        self.deadline.is_none() && self.cancel.is_none()
    }

    /// `end`, or the deadline where that is earlier.
    pub(crate) fn earlier(&self, end: Instant) -> Instant {
        Deadline::earlier::<P>(self.deadline, end)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(CancelToken::is_cancelled)
    }

    /// Halts on `word` as a thread without a node of its own there, until the deadline, or the
    /// cancellation, or for no reason. Whether it may have been kicked.
    pub(crate) fn halt(&self, sleeper: Sleeper, word: &P::U32, expected: u32) -> bool {
        match self.cancel {
            None => P::halt_as(sleeper, word, expected, self.deadline),
            Some(token) => self.halt_cancellable(token, word, expected),
        }
    }

    #[cold]
    fn halt_cancellable(&self, token: &CancelToken<P>, word: &P::U32, expected: u32) -> bool {
        let Some(waiter) = Waiter::<P>::new() else {
            backoff_sleep::<P>();
            return true;
        };
        let node = waiter.node();
        let _watched = token.watch(node);
        // WC: acquire, pairs with WK.
        let kicks = node.kicks.load(Acquire);
        if !token.is_cancelled() {
            P::halt_either((word, expected), (&node.kicks, kicks), self.deadline);
        }
        true
    }

    /// Why a waiter has to give up, if it has to.
    pub(crate) fn reached(&self) -> Option<End> {
        if self.is_cancelled() {
            Some(End::Cancelled)
        } else if self.deadline.is_some_and(Deadline::is_over::<P>) {
            Some(End::Deadline)
        } else {
            None
        }
    }
}

/// A thread that waits in a list.
#[derive(Debug)]
pub(crate) struct Waiter<P: Platform> {
    guard: NodeGuard<P>,
}

impl<P: Platform> Waiter<P> {
    /// Claims a node of the calling thread; `None` where it has none left.
    pub(crate) fn new() -> Option<Self> {
        NodeGuard::new().map(|guard| Waiter { guard })
    }

    pub(crate) fn id(&self) -> NodeId {
        self.guard.id()
    }

    pub(crate) fn node(&self) -> &'static Node<P> {
        self.guard.node()
    }

    /// Sets the state back: before joining a list, or to be told something once more. In a list:
    /// under its guard.
    pub(crate) fn prepare(&self) {
        self.node().state.store(WAITING, Relaxed);
    }

    /// What the waiter has been told. Acquire, pairs with WS.
    pub(crate) fn state(&self) -> u32 {
        self.node().state.load(Acquire)
    }

    /// Sleeps until `done`, of which those that make it true give word by a [kick]. False once
    /// `limit` is reached. A waiter in a list looks again under the guard.
    pub(crate) fn sleep_until(&self, limit: &Limit<'_, P>, done: impl Fn() -> bool) -> bool {
        let node = self.node();
        let _watched = limit.cancel.map(|token| token.watch(node));
        loop {
            // WC: acquire, pairs with WK.
            let kicks = node.kicks.load(Acquire);
            if done() {
                Step::ConditionHolds.taken::<P>();
                return true;
            }
            if let Some(end) = limit.reached() {
                end.step().taken::<P>();
                return false;
            }
            Self::halt(node, kicks, limit);
        }
    }

    #[inline(always)]
    fn halt(node: &Node<P>, kicks: u32, limit: &Limit<'_, P>) {
        stat::timed::<P, ()>(Latency::TimeBlocked, || {
            P::halt(&node.kicks, kicks, limit.deadline);
        });
        Step::Halt.taken::<P>();
    }

    /// Sleeps until told something, or until `limit` is reached. The waiter may still be in its
    /// list after that, and whoever gives up has to look under the guard whether it was told
    /// after all.
    pub(crate) fn sleep(&self, limit: &Limit<'_, P>) -> End {
        let node = self.node();
        let token = limit.cancel.map(|token| token.watch(node));
        let end = loop {
            // WC: acquire, pairs with WK.
            let kicks = node.kicks.load(Acquire);
            // Acquire, pairs with WS.
            let state = node.state.load(Acquire);
            if state != WAITING {
                break End::Signalled(state);
            }
            if let Some(end) = limit.reached() {
                break end;
            }
            Self::halt(node, kicks, limit);
        };
        end.step().taken::<P>();
        drop(token);
        if cfg!(feature = "stat") && matches!(end, End::Signalled(_)) {
            let kicked = Instant::from_nanos(node.kicked_at.load(Relaxed));
            stat::record::<P>(Latency::PvLatencyWake, P::now().nanos_since(kicked));
            stat::count::<P>(Event::PvKickWake);
        }
        end
    }
}

/// A node's registration with a token, until dropped.
pub(crate) struct Watched<P: Platform>(&'static Node<P>);

impl<P: Platform> Watched<P> {
    /// `SeqCst`: CW, against the canceller's look at the node; see [`CancelToken::cancel`].
    pub(super) fn new(node: &'static Node<P>, token: usize) -> Self {
        node.cancel.store(token, SeqCst);
        Watched(node)
    }
}

impl<P: Platform> Drop for Watched<P> {
    fn drop(&mut self) {
        self.0.cancel.store(0, Relaxed);
    }
}
