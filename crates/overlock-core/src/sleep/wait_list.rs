//! Shared parts of the sleeping locks: a list of waiters with its wait lock, and the sleep of a
//! waiter, which ends at a wake-up, a deadline or a cancellation.
//!
//! A waiter owns its node through a [`Waiter`]. Under the wait lock it [prepares](Waiter::prepare)
//! and joins the list; then it [sleeps](Waiter::sleep). A waker changes the node's `state` under
//! the wait lock ([`signal`]), releases that, and [kicks](kick).
//!
//! Only threads that are about to sleep, have just woken, or are about to wake another one take a
//! wait lock. Each holds it for a few dozen instructions.
//!
//! # States
//!
//! Of a waiter, from the time that it is prepared until its sleep ends:
//!
//! ```text
//! waiting    --halt-->    waiting     kicked, out of time, or a spurious wake-up: it checks again
//! waiting    --signal-->  signalled   by a waker, under the wait lock
//! signalled  --load-->    awake
//! waiting    --check-->   awake       its deadline has passed; it was cancelled; the condition of `sleep_until` holds
//! ```
//!
//! # Why no wake-up is lost
//!
//! A waiter halts on its node's count of kicks, which every kick raises and nobody sets back. It
//! reads the count (WC), then checks its state, its token and the clock, then halts if the count is
//! still the same. The waker writes the state or the token's flag first, then raises the count (WK,
//! release, pairs with WC, acquire), then kicks. So a waiter that checked too early finds the count
//! changed.
//!
//! The count goes up by [`KICK`], and its lowest bit, [`ASLEEP`], is the waiter's: it sets the bit
//! by a compare-exchange from the count that it has read, just before it halts, and clears it when
//! it is awake. So a kick that finds the bit clear comes before that exchange, which then fails:
//! the waiter, which may still spin, checks again, and the kick needs no system call.
//!
//! A kick may arrive after its waiter has left, when the node waits for something else. That is a
//! spurious wake-up, and each sleep checks again after one.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::links::{Links, backoff_sleep};
use crate::node::{Node, NodeGuard, NodeId};
use crate::platform::{
    Atomic, Deadline, FutexPlatform, Instant, Kick, Platform, Spin, sleep_until,
};
use crate::sleep::cancel::CancelToken;
use crate::stat::{self, Event, Latency};

/// The state of a waiter that is not signalled yet. Each lock defines its other states.
pub const WAITING: u32 = 0;

/// Length of a cancellable sleep on a word, where the platform cannot wait for two.
const POLL_NS: u64 = 1_000_000;

/// Polls of a wait lock before a waiter gives its CPU away: its holder has lost its own.
const POLLS: u32 = 1000;

const FREE: u8 = 0;
const HELD: u8 = 1;

/// In the count of kicks: its waiter sleeps, or is about to.
pub const ASLEEP: u32 = 1;
/// One kick more, in the count of a node that any lock may kick.
pub const KICK: u32 = 2;

/// A list of waiters, its wait lock, a byte, and a byte of the lock's own. 8 bytes.
#[derive(Debug)]
pub struct WaitList<P: Platform> {
    links: Links<P>,
    wait_lock: P::U8,
    /// For the lock whose list this is.
    pub own: P::U8,
}

/// The list of a [`WaitList`], with the wait lock held.
#[derive(Debug)]
pub struct Waiters<'a, P: Platform>(&'a WaitList<P>);

impl<P: Platform> WaitList<P> {
    pub const INIT: Self = Self::with(Atomic::ZERO);

    /// An empty list with this byte of the lock's own.
    pub const fn with(own: P::U8) -> Self {
        WaitList {
            links: Links::INIT,
            wait_lock: Atomic::ZERO,
            own,
        }
    }

    /// Acquires the wait lock. Backs off by sleeping when its holder has lost its CPU.
    pub fn lock(&self) -> Waiters<'_, P> {
        // free -> held. QA: acquire, pairs with QR.
        while self
            .wait_lock
            .compare_exchange(FREE, HELD, Acquire, Relaxed)
            .is_err()
        {
            let limit = Spin::Polls(POLLS);
            if P::wait_until(&self.wait_lock, Relaxed, limit, |held: u8| held == FREE).is_err() {
                backoff_sleep::<P>();
            }
        }
        Waiters(self)
    }

    /// After fork() in the child: forgets the waiters and the holder of the wait lock, which exist
    /// only in the parent.
    pub fn forget(&self) {
        self.links.forget();
        self.wait_lock.store(FREE, Relaxed);
    }

    /// Whether nobody waits. A snapshot.
    pub fn looks_empty(&self) -> bool {
        self.links.first().is_none()
    }

    /// Whether the wait lock is held. A snapshot.
    pub fn is_busy(&self) -> bool {
        self.wait_lock.load(Relaxed) != FREE
    }
}

impl<P: Platform> Waiters<'_, P> {
    /// Adds a waiter behind those of its rank, and in front of those of lower ones. Until it is
    /// taken out, `Node::info` holds the rank, or more than any rank.
    pub fn push_ranked(&self, id: NodeId, rank: u32) {
        let rank_of = |id: NodeId| &id.node::<P>().info;
        rank_of(id).store(rank, Relaxed);
        self.0
            .links
            .push_ranked(id, rank, |other| rank_of(other).load(Relaxed));
    }
}

impl<P: Platform> core::ops::Deref for Waiters<'_, P> {
    type Target = Links<P>;

    fn deref(&self) -> &Links<P> {
        &self.0.links
    }
}

impl<P: Platform> Drop for Waiters<'_, P> {
    fn drop(&mut self) {
        // held -> free. QR: release, pairs with QA.
        self.0.wait_lock.store(FREE, Release);
    }
}

/// Waiters that are woken after the wait lock of their list is released.
///
/// A batch never touches the lock that its waiters waited for: the first one that is signalled may
/// free it. Each waiter stays in the batch until it is signalled, and its node's links are the
/// batch's until then. A waiter that can give up learns of this from its node's `info`, which the
/// lock sets under the wait lock.
#[derive(Debug)]
pub struct Batch<P: Platform>(Links<P>);

impl<P: Platform> Default for Batch<P> {
    fn default() -> Self {
        Batch(Links::INIT)
    }
}

impl<P: Platform> Batch<P> {
    /// Adds a waiter, which is in no list.
    pub fn push(&self, id: NodeId) {
        self.0.push_back(id);
    }

    /// Moves all of `waiters` here. The caller holds their wait lock.
    pub fn take_all(&self, waiters: &Links<P>) {
        for id in waiters.ids() {
            waiters.unlink(id);
            self.push(id);
        }
    }

    /// Signals `state` to all of them and wakes them, in order.
    pub fn wake(self, state: u32) {
        for id in self.0.ids() {
            // Before the signal: after it the waiter may be gone, and its node in use elsewhere.
            self.0.unlink(id);
            signal::<P>(id, state);
            kick::<P>(id);
        }
    }
}

/// Sets a waiter's state. The caller holds the wait lock of the list that the node is in, or was
/// until now, and [kicks](kick) the waiter afterwards, best without the wait lock.
pub fn signal<P: Platform>(id: NodeId, state: u32) {
    let node = id.node::<P>();
    stamp(node);
    // WS: release, pairs with the acquire in `sleep`: the waiter sees all that the waker did.
    node.state.store(state, Release);
}

/// Records the time of a signal, for the statistics.
pub fn stamp<P: Platform>(node: &Node<P>) {
    if stat::is_on() {
        node.kicked_at.store(P::now().as_nanos() as usize, Relaxed);
    }
}

/// Counts a wake-up by the last [stamp], for the statistics.
pub fn count_wake<P: Platform>(node: &Node<P>) {
    let stamped = node.kicked_at.swap(0, Relaxed);
    // Counting may have begun since.
    if stamped != 0 {
        let now = P::now().as_nanos() as usize;
        stat::record::<P>(Latency::PvLatencyWake, now.wrapping_sub(stamped) as u64);
        stat::count::<P>(Event::PvKickWake);
    }
}

/// Wakes a [signalled](signal) waiter.
pub fn kick<P: Platform>(id: NodeId) {
    kick_node::<P>(id.node());
}

/// Wakes the waiter of a node, or keeps it from sleeping.
pub fn kick_node<P: Platform>(node: &Node<P>) {
    if announce_kick::<P>(node) {
        stat::count::<P>(Event::PvKickUnlock);
        stat::timed::<P, ()>(Latency::PvLatencyKick, || P::kick(&node.kicks, Kick::One));
    }
}

/// Raises the count of kicks. Returns whether the waiter sleeps; else it finds the count changed
/// before it does.
fn announce_kick<P: Platform>(node: &Node<P>) -> bool {
    // WK: release, pairs with WC.
    node.kicks.fetch_add(KICK, Release) & ASLEEP != 0
}

/// Halts until the node has been kicked more often than `kicks` times; may return spuriously.
pub fn halt<P: Platform>(node: &Node<P>, kicks: u32, until: Option<Deadline>) {
    let asleep = kicks | ASLEEP;
    // A kick before this makes it fail, and one after it wakes the caller. Relaxed: it publishes
    // nothing else.
    let sleeps = node.kicks.compare_exchange(kicks, asleep, Relaxed, Relaxed);
    if sleeps.is_ok() {
        stat::timed::<P, _>(Latency::TimeBlocked, || P::halt(&node.kicks, asleep, until));
        node.kicks.fetch_and(!ASLEEP, Relaxed);
    }
}

/// Moves a [signalled](signal) waiter to the sleepers of `word`, or wakes it where the platform
/// cannot do that. The waiter must still be waiting: later its node may be in use elsewhere.
pub fn requeue<P: FutexPlatform>(id: NodeId, word: &P::U32) {
    let node = id.node::<P>();
    // A waiter that is about to halt does not.
    if announce_kick::<P>(node) && !P::requeue(&node.kicks, word) {
        P::kick(&node.kicks, Kick::One);
    }
}

/// The limit of a wait: none, a deadline, a cancellation, or both.
#[derive(Clone, Copy, Debug)]
pub struct Limit<'a, P: Platform> {
    pub deadline: Option<Deadline>,
    pub cancel: Option<&'a CancelToken<P>>,
}

impl<'a, P: Platform> Limit<'a, P> {
    pub const NONE: Self = Limit {
        deadline: None,
        cancel: None,
    };

    pub fn until(deadline: impl Into<Deadline>) -> Self {
        Limit {
            deadline: Some(deadline.into()),
            cancel: None,
        }
    }

    pub fn cancellable(cancel: &'a CancelToken<P>, deadline: Option<Deadline>) -> Self {
        Limit {
            deadline,
            cancel: Some(cancel),
        }
    }

    /// Whether there is no limit.
    pub fn is_for_ever(&self) -> bool {
        self.deadline.is_none() && self.cancel.is_none()
    }

    /// Returns the earlier one of `end` and the deadline.
    pub fn earlier(&self, end: Instant) -> Instant {
        Deadline::earlier::<P>(self.deadline, end)
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(CancelToken::is_cancelled)
    }

    pub fn is_reached(&self) -> bool {
        self.is_cancelled() || self.deadline.is_some_and(Deadline::is_over::<P>)
    }

    /// Waits without a node, for threads beyond the slots and for a fifth context: attempts, with a
    /// back-off in between, since nobody can wake this thread or hand off to it. Returns false once
    /// the limit is reached.
    #[cold]
    pub fn wait_without_node(&self, attempt: impl Fn() -> bool) -> bool {
        stat::count::<P>(Event::LockNoNode);
        while !attempt() {
            if self.is_reached() {
                return false;
            }
            backoff_sleep::<P>();
        }
        true
    }
}

impl<P: FutexPlatform> Limit<'_, P> {
    /// Halts on `word`, which is not a node's, until the deadline, the cancellation, or a kick;
    /// spurious wake-ups happen. Returns whether there may have been a kick.
    pub fn halt(&self, word: &P::U32, expected: u32) -> bool {
        match self.cancel {
            None => {
                let woken = P::halt(word, expected, self.deadline);
                P::begin_slice();
                woken
            }
            Some(token) => self.halt_cancellable(token, word, expected),
        }
    }

    /// Gives the CPU away for so many nanoseconds, or until the deadline. Out of line: the frame of
    /// a wait is small.
    #[cold]
    #[inline(never)]
    pub fn nap(&self, nanos: u64) {
        let end = self.earlier(P::now().plus_nanos(nanos));
        sleep_until::<P>(end.into());
        P::begin_slice();
    }

    #[cold]
    fn halt_cancellable(&self, token: &CancelToken<P>, word: &P::U32, expected: u32) -> bool {
        let Some(waiter) = Waiter::<P>::new(word) else {
            backoff_sleep::<P>();
            return true;
        };
        let node = waiter.node();
        let _watched = token.watch(node);
        // WC: acquire, pairs with WK.
        let kicks = node.kicks.fetch_or(ASLEEP, Acquire) | ASLEEP;
        let halted = token.is_cancelled()
            || P::halt_either((word, expected), (&node.kicks, kicks), self.deadline);
        if !halted {
            let soon = P::now().plus_nanos(POLL_NS);
            if node.kicks.load(Relaxed) == kicks {
                let until = self.earlier(soon).into();
                P::halt(word, expected, Some(until));
            }
        }
        node.kicks.fetch_and(!ASLEEP, Relaxed);
        true
    }
}

/// A thread that waits in a list.
#[derive(Debug)]
pub struct Waiter<P: Platform> {
    guard: NodeGuard<P>,
    /// The address of what it waits for: the platform learns for each whether spins are worth it.
    object: usize,
    is_new: bool,
}

impl<P: Platform> Waiter<P> {
    /// Acquires a node of the calling thread, to wait for `object`. `None` where it has none left.
    pub fn new<T>(object: &T) -> Option<Self> {
        NodeGuard::for_list().map(|guard| Waiter::with(guard, object))
    }

    /// The same with a node whose name the lock's word has room for.
    pub fn in_word<T>(object: &T) -> Option<Self> {
        NodeGuard::new().map(|guard| Waiter::with(guard, object))
    }

    fn with<T>(guard: NodeGuard<P>, object: &T) -> Self {
        Waiter {
            guard,
            object: core::ptr::from_ref(object).addr(),
            is_new: false,
        }
    }

    /// The same, where it says whether nobody has waited for the object before.
    pub fn of_new(self, is_new: bool) -> Self {
        Waiter { is_new, ..self }
    }

    pub fn id(&self) -> NodeId {
        self.guard.id()
    }

    pub fn node(&self) -> &'static Node<P> {
        self.guard.node()
    }

    /// Sets the state back to waiting: before joining a list, or to be signalled once more. In a
    /// list: under its wait lock.
    pub fn prepare(&self) {
        self.node().state.store(WAITING, Relaxed);
    }

    /// The state that a waker has signalled. Acquire, pairs with WS.
    pub fn state(&self) -> u32 {
        self.node().state.load(Acquire)
    }

    /// Sleeps until `done` holds; threads that make it true [kick] the waiter. Returns false once
    /// `limit` is reached. A waiter in a list then checks again under the wait lock.
    pub fn sleep_until(&self, limit: &Limit<'_, P>, done: impl Fn() -> bool) -> bool {
        let node = self.node();
        let _watched = limit.cancel.map(|token| token.watch(node));
        loop {
            // WC: acquire, pairs with WK.
            let kicks = node.kicks.load(Acquire);
            if done() {
                return true;
            }
            if limit.is_reached() {
                return false;
            }
            self.halt(kicks, limit);
        }
    }

    #[inline(always)]
    fn halt(&self, kicks: u32, limit: &Limit<'_, P>) {
        let spins = limit.deadline.is_none_or(Deadline::is_far::<P>)
            && P::spin_first(self.object, self.is_new, &self.node().kicks, kicks);
        if !spins {
            halt(self.node(), kicks, limit.deadline);
        }
    }

    /// Sleeps until signalled, and returns the state, or until `limit` is reached. The waiter may
    /// still be in its list then. Before it gives up, it must check under the wait lock that it was
    /// not signalled after all.
    pub fn sleep(&self, limit: &Limit<'_, P>) -> Option<u32> {
        let node = self.node();
        let token = limit.cancel.map(|token| token.watch(node));
        let signalled = loop {
            // WC: acquire, pairs with WK.
            let kicks = node.kicks.load(Acquire);
            // Acquire, pairs with WS.
            let state = node.state.load(Acquire);
            if state != WAITING {
                break Some(state);
            }
            if limit.is_reached() {
                break None;
            }
            self.halt(kicks, limit);
        };
        drop(token);
        if stat::is_on() && signalled.is_some() {
            count_wake(node);
        }
        signalled
    }
}

/// A node's registration with a token, until dropped.
#[derive(Debug)]
pub struct Watched<P: Platform>(&'static Node<P>);

impl<P: Platform> Watched<P> {
    /// `SeqCst`: CW, against the canceller's load of the node; see [`CancelToken::cancel`].
    pub fn new(node: &'static Node<P>, token: usize) -> Self {
        node.cancel.store(token, SeqCst);
        Watched(node)
    }
}

impl<P: Platform> Drop for Watched<P> {
    fn drop(&mut self) {
        self.0.cancel.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::{Point, Toy, at, halts, left};

    /// Fails without the back-off in `lock`: the waiter polls for ever.
    #[test]
    fn a_waiter_gives_its_cpu_to_the_holder_of_a_wait_lock() {
        static LIST: WaitList<Toy> = WaitList::INIT;
        core::mem::forget(LIST.lock());
        at(Point::Halt, || drop(Waiters(&LIST)));
        drop(LIST.lock());
        assert!(!LIST.is_busy());
        assert_eq!((left(), halts()), (0, 1));
    }
}
