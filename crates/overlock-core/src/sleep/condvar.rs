//! A condition variable, for any lock of this crate.
//!
//! `notify_one` wakes the thread that has waited longest, of those with the highest
//! [rank](Platform::rank). `notify_all` wakes two, and each woken thread wakes two others: a binary
//! tree. (If each woke one, a CPU would fall idle before its next thread is woken, and to wake an
//! idle CPU takes long.) If any of them has a rank, it wakes all, in order: a thread may wait
//! long for its CPU, and then those behind it would too.
//!
//! If the thread's lock is an [`Overlock`] that is held, the wake-up is a *requeue*: the thread is
//! moved, asleep, from the condition variable to the lock, and an unlock wakes it. So there is no
//! thundering herd. One thread is no herd: it is requeued only if the lock has sleepers. Otherwise
//! it is woken, which is one system call and not two. With any other lock a thread acquires it
//! before it wakes others, and then wakes one. A lock that a [validator
//! watches](RawLock::is_watched) takes no part in this: all are woken.
//!
//! A wait spins and then blocks (Karlin, Li, Manasse, Owicki, "Empirical studies of competitive
//! spinning for a shared-memory multiprocessor", SOSP 1991), for as long as the
//! [platform](Platform::spin_first) finds that worth it for this condition variable. A thread that
//! wakes a spinner makes no system call.
//!
//! # Layout
//!
//! 8 bytes: a list of waiters, its wait lock, and whether it is new. The rest is in the threads'
//! nodes.
//!
//! | field | who writes it |
//! |---|---|
//! | `list` | waiters that join or give up, and notifiers, under its wait lock |
//! | `list.own` | waiters that join, under the wait lock: 1, somebody has waited before |
//! | `Node::info` | the waiter's rank, then by one compare-exchange LEAVING or NOTIFIED, with its successor |
//! | `Node::state` | the state that the waiter waits for: its waker; AWAKE, and those of a jump: the waiter itself |
//! | `Node::lock` | the waiter: the address of its lock, 0 where that is no `Overlock` |
//!
//! # States
//!
//! ```text
//!            join              a notification           lock free: woken
//!   owner ----------> waiting ---------------> notified ----------------> woken: wakes its
//!     lock released      |                        |                          ^       chain -> owner
//!     after it           | its limit              | lock held:               |
//!                        v                        v counted by it, then      | requeued
//!                     leaving                  requeued ---------------------+
//!                        | unlinks itself         | wakes early              |
//!                        v                        v                          | signalled again
//!                      gone                     awake -----------------------'
//! ```
//!
//! A waiter that does not sleep yet is woken without a system call, and is not requeued.
//!
//! Before a waker uses a waiter's lock it claims the waiter: `waiting -> claimed`. A handler that
//! jumps out of the wait changes the state by a compare-exchange, too. So a waker finds that a
//! waiter has left, and passes it by: those behind it in the chain are woken in its place. Or the
//! jump finds the waiter claimed, and the handler waits until its waker is done; or woken, and the
//! handler wakes the chain.
//!
//! ```text
//! waiting, not notified  --jump-->  leaving, jumped  --a notifier takes it out-->  removed
//! waiting, notified      --jump-->  left  --its waker passes it by-->  passed
//! claimed, requeued, awake          the jump waits for its waker
//! woken, adopted         --jump-->  the same, without its chain
//! ```
//!
//! The waiters of one notification form a chain in order of arrival, with the successor in `info`.
//! A thread that wakes a chain splits it into two, alternately, and wakes the heads of both. The
//! rest of each belongs to its head.
//!
//! # Invariants
//!
//! - I1: a waiter is in the list before it releases the lock.
//! - I2: a waiter is notified or leaves, never both. A notified one waits to be woken without a
//!   limit, so each notification reaches one waiter. One that leaves is in the list until it has
//!   unlinked itself, and notifications skip it.
//! - I3: a notified waiter does not touch the condition variable any more, nor does its notifier
//!   once it wakes.
//! - I4: a waiter does not return before its waker is done with it. Until then its lock exists, and
//!   the requeue concerns this sleep, not a later one by the same node.
//!
//! # Orderings
//!
//! The wait lock orders the list, `info` and `lock`; accesses under it are Relaxed. By WS of
//! `sleep/wait_list.rs` a woken waiter sees all that its waker did, and so all that the notifier
//! did: also its own successor and that one's `lock`. The load of the list's head without the wait
//! lock is Relaxed: a waiter that joined before the notifier changed the condition did so under the
//! lock (I1). A chain belongs to one thread at a time, so its links are Relaxed too.
//!
//! # Why no wake-up is lost
//!
//! A condition changes under the lock. The waiter found it false as the owner and joined before it
//! released the lock, so a notification after the change finds it in the list. Each notified waiter
//! is woken by the notifier, or by a waiter that was woken before. No wait on that path has a
//! limit.
//!
//! `sleep/wait_list.rs` explains the wake-up itself. A requeued waiter was counted by the lock
//! while that was held, so an unlock wakes a sleeper. If the unlock comes before the requeue and
//! finds nobody, `Overlock::adopt` sees that afterwards and wakes one itself.
//!
//! # Lifetime
//!
//! A notifier releases the wait lock and then wakes, so a woken waiter may free the condition
//! variable. By I3 a thread that has notified all waiters may free it after [`Condvar::drain`],
//! also while it owns the lock. That waits only for waiters that leave, and for the wait lock.

#[cfg(test)]
mod tests;

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::cancel::CancelToken;
use super::overlock::Overlock;
use super::wait_list::{ASLEEP, Limit, WAITING, WaitList, Waiter, Waiters, kick, signal, stamp};
use crate::links::backoff_sleep;
use crate::node::{NAME_BITS, NodeId};
use crate::platform::{Atomic, Deadline, FutexPlatform, Platform};
use crate::raw::{RawFork, RawLock};
use crate::stat::{self, Event};

/// A condition variable: see the [module's page](self). 8 bytes.
///
/// Threads that wait at the same time may do so with different locks.
#[derive(Debug)]
pub struct Condvar<P: Platform> {
    list: WaitList<P>,
}

/// `Node::state`: its waker is about to requeue it.
const REQUEUED: u32 = 1;
/// `Node::state`: it has woken before the requeue.
const AWAKE: u32 = 2;
/// `Node::state`: woken, and a sleeper of its lock.
const ADOPTED: u32 = 3;
/// `Node::state`: woken, and awake.
const WOKEN: u32 = 4;
/// `Node::state`: not notified; a signal handler of its thread has jumped, perhaps out of the wait.
const JUMPED: u32 = 5;
/// `Node::state`: the same after a notification, which its waker does not know yet.
const LEFT: u32 = 6;
/// `Node::state`: its waker has passed its chain on.
const PASSED: u32 = 7;
/// `Node::state`: its waker uses its lock, or a thread takes it out of the list, and is done soon.
const CLAIMED: u32 = 8;
/// `Node::state`: it has jumped, and is in no list any more.
const REMOVED: u32 = 9;

/// `Node::info`: its limit was reached. More than any rank.
const LEAVING: u32 = 1 << NAME_BITS;
/// `Node::info`: notified. The bits below hold the successor, 0 for none.
const NOTIFIED: u32 = LEAVING << 1;

/// Wakes a notified waiter, or requeues it if its lock is held. With `is_alone` it is the only one:
/// then it is woken where the lock has no sleepers, by one system call instead of two. One that has
/// jumped is not woken, but those behind it.
fn wake<P: FutexPlatform>(id: NodeId, is_alone: bool) {
    let mut next = Some(id);
    while let Some(id) = next {
        if wake_one::<P>(id, is_alone) {
            break;
        }
        next = pass_by::<P>(id);
    }
}

/// In a waiter's address of its lock, which is aligned: the lock takes no sleepers, since a
/// validator [watches](RawLock::is_watched) it.
const WATCHED: usize = 1;

/// Returns false for a waiter that has jumped.
fn wake_one<P: FutexPlatform>(id: NodeId, is_alone: bool) -> bool {
    let node = id.node::<P>();
    stamp(node);
    // A snapshot: one that is about to sleep may be woken too.
    let sleeps = node.kicks.load(Relaxed) & ASLEEP != 0;
    let lock = node.lock.load(Relaxed);
    if !sleeps || lock == 0 || lock & WATCHED != 0 {
        // waiting -> woken. Release: WS.
        let woken = (node.state).compare_exchange(WAITING, WOKEN, Release, Relaxed);
        if woken.is_ok() {
            kick::<P>(id);
        }
        return woken.is_ok();
    }
    // waiting -> claimed. Relaxed: it publishes nothing.
    let claimed = (node.state).compare_exchange(WAITING, CLAIMED, Relaxed, Relaxed);
    if claimed.is_err() {
        return false;
    }
    // SAFETY: the lock of a waiter that does not leave before it is woken, as it is claimed (I4).
    let lock = unsafe { &*ptr::with_exposed_provenance::<Overlock<P>>(lock) };
    let moves = (!is_alone || lock.is_contended()) && lock.adopt(id, || signal::<P>(id, REQUEUED));
    if moves {
        // requeued, awake -> woken. Release: WS, once more.
        if node.state.swap(ADOPTED, Release) == AWAKE {
            kick::<P>(id);
        }
    } else {
        signal::<P>(id, WOKEN);
        kick::<P>(id);
    }
    true
}

/// Lets a waiter that has jumped do without its chain, which is the caller's. Returns its head.
#[cold]
fn pass_by<P: FutexPlatform>(id: NodeId) -> Option<NodeId> {
    let chain = successor::<P>(id);
    id.node::<P>().info.store(NOTIFIED, Relaxed);
    // left -> passed
    signal::<P>(id, PASSED);
    kick::<P>(id);
    chain
}

/// Wakes all of a chain, in order.
#[cold]
fn wake_in_order<P: FutexPlatform>(head: NodeId) {
    let mut next = Some(head);
    while let Some(id) = next {
        next = successor::<P>(id);
        id.node::<P>().info.store(NOTIFIED, Relaxed);
        wake::<P>(id, false);
    }
}

/// Splits a chain into two, alternately, and wakes the heads of both.
fn wake_chain<P: FutexPlatform>(head: NodeId) {
    let second = split::<P>(head);
    wake::<P>(head, false);
    if let Some(second) = second {
        wake::<P>(second, false);
    }
}

/// Leaves every other waiter in the chain. Returns the head of a chain of the rest, if there is
/// one.
fn split<P: FutexPlatform>(head: NodeId) -> Option<NodeId> {
    let second = successor::<P>(head)?;
    let mut tails = [head, second];
    let mut next = successor::<P>(second);
    while let Some(id) = next {
        next = successor::<P>(id);
        link::<P>(tails[0], id);
        tails = [tails[1], id];
    }
    for tail in tails {
        tail.node::<P>().info.store(NOTIFIED, Relaxed);
    }
    Some(second)
}

/// Makes `next` the successor of a notified waiter.
fn link<P: FutexPlatform>(id: NodeId, next: NodeId) {
    let info = NOTIFIED | next.name();
    id.node::<P>().info.store(info, Relaxed);
}

/// Returns the next waiter of a notified waiter's chain.
fn successor<P: FutexPlatform>(id: NodeId) -> Option<NodeId> {
    NodeId::from_name(id.node::<P>().info.load(Relaxed) & (LEAVING - 1))
}

/// Takes the chain of the calling thread's woken waiter: from here on a jump does not pass it on.
fn take_chain<P: FutexPlatform>(id: NodeId) -> Option<NodeId> {
    let node = id.node::<P>();
    // One access: a handler that comes in between finds the chain taken.
    let info = node.info.swap(NOTIFIED, Relaxed);
    node.jumps.store(0, Relaxed);
    NodeId::from_name(info & (LEAVING - 1))
}

/// The calling thread is about to jump out of a signal handler, which has interrupted its wait with
/// this node. Notifications skip it from now on, and the waiters behind it do without it. If the
/// thread jumps less far, its wait ends without a notification that has not come yet.
///
/// Touches neither a condition variable nor its wait lock, which the thread may hold. The node
/// stays in the list, so no later wait may use it.
#[cold]
pub fn jump_out<P: FutexPlatform>(id: NodeId) {
    let node = id.node::<P>();
    if node.jumps.load(Relaxed) == 0 {
        return;
    }
    node.jumps.store(0, Relaxed);
    match Condvar::<P>::end_waiting(id, LEAVING) {
        Ok(_) => {
            node.state.store(JUMPED, Relaxed);
            // A sleep that the kernel begins again after the handler ends.
            return kick::<P>(id);
        }
        Err(LEAVING) => return,
        Err(_) => {}
    }
    // waiting -> left. Relaxed: it publishes nothing, and its waker has the chain.
    while let Err(state) = (node.state).compare_exchange(WAITING, LEFT, Relaxed, Acquire) {
        match state {
            // I4: its waker uses the lock for a few instructions more.
            CLAIMED | REQUEUED | AWAKE => backoff_sleep::<P>(),
            WOKEN | ADOPTED => {
                // Its chain is complete. Acquire, pairs with WS.
                if let Some(head) = take_chain::<P>(id) {
                    wake_chain::<P>(head);
                }
                return;
            }
            // It has jumped before.
            _ => return,
        }
    }
}

impl<P: Platform> Condvar<P> {
    /// Returns a new condition variable.
    pub const fn new() -> Self {
        Condvar {
            list: WaitList::INIT,
        }
    }
}

impl<P: Platform> Default for Condvar<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: FutexPlatform> Condvar<P> {
    /// Releases the lock, waits until notified, and acquires the lock again. A thread that has no
    /// queue node left wakes without being notified, as any thread may from most condition
    /// variables: check the condition again.
    ///
    /// # Safety
    ///
    /// As for [`RawLock::unlock`].
    pub unsafe fn wait<L: RawLock>(&self, lock: &L, token: L::Token) -> L::Token {
        // SAFETY: the caller's promise.
        unsafe { self.wait_limited(lock, token, None, None) }.0
    }

    /// As [`wait`](Self::wait), unless `deadline` passes first or `cancel` is cancelled. Returns
    /// whether it was notified; a notification in time counts, even if the lock came late. The
    /// caller has the lock again in every case, however long that takes.
    ///
    /// # Safety
    ///
    /// As for [`RawLock::unlock`].
    pub unsafe fn wait_limited<L: RawLock>(
        &self,
        lock: &L,
        token: L::Token,
        deadline: Option<Deadline>,
        cancel: Option<&CancelToken<P>>,
    ) -> (L::Token, bool) {
        let limit = Limit { deadline, cancel };
        let Some(waiter) = Waiter::new(self) else {
            // SAFETY: the caller's promise.
            return unsafe { Self::wait_without_node(lock, token, &limit) };
        };
        // I1: before the lock is released.
        let is_new = self.join(&waiter, lock);
        // SAFETY: the caller's promise.
        unsafe { lock.unlock(token) };
        let waiter = waiter.of_new(is_new);
        let mut signalled = waiter.sleep(&limit);
        if signalled.is_none() && !self.leave(waiter.id()) {
            // I2.
            signalled = waiter.sleep(&Limit::NONE);
        }
        let is_adopted = signalled.and_then(|state| self.await_end(&waiter, state));
        let Some(is_adopted) = is_adopted else {
            waiter.node().jumps.store(0, Relaxed);
            drop(waiter);
            return (lock.lock(), false);
        };
        // I3: `self` may be freed from here on.
        let acquire = || match is_adopted {
            true => lock.lock_adopted(),
            false => lock.lock(),
        };
        let wakes_first = lock.is_overlock::<P>() || lock.is_watched();
        let token = if wakes_first || successor::<P>(waiter.id()).is_none() {
            // Its node is free for the wait for the lock.
            Self::hand_on(waiter, wake_chain::<P>);
            acquire()
        } else {
            // With any other lock, all of them would contend for it.
            let token = acquire();
            Self::hand_on(waiter, |head| wake::<P>(head, false));
            token
        };
        (token, true)
    }

    /// Ends the wait of a woken waiter: wakes its chain. A jump out of the wait does the same until
    /// this has begun.
    fn hand_on(waiter: Waiter<P>, wake: impl FnOnce(NodeId)) {
        let id = waiter.id();
        if successor::<P>(id).is_some() {
            P::without_handlers(|| {
                if let Some(head) = take_chain::<P>(id) {
                    wake(head);
                }
            });
        }
        waiter.node().jumps.store(0, Relaxed);
    }

    /// Waits until others are done with a signalled waiter (I4). Returns whether it is a sleeper of
    /// its lock, or `None` for one that was not notified and is in no list any more.
    fn await_end(&self, waiter: &Waiter<P>, mut signalled: u32) -> Option<bool> {
        let state = &waiter.node().state;
        loop {
            match signalled {
                CLAIMED | LEFT => {
                    waiter.sleep_until(&Limit::NONE, || waiter.state() != signalled);
                    signalled = waiter.state();
                }
                // jumped -> leaving. Acquire, where another thread takes it out: pairs with WS.
                JUMPED => match state.compare_exchange(JUMPED, WAITING, Relaxed, Acquire) {
                    Ok(_) => {
                        self.list.lock().unlink(waiter.id());
                        return None;
                    }
                    Err(now) => signalled = now,
                },
                REMOVED => return None,
                REQUEUED => {
                    Self::await_requeue(waiter);
                    return Some(true);
                }
                other => return Some(other == ADOPTED),
            }
        }
    }

    /// Waits for the requeue of a waiter that has woken before it.
    #[cold]
    fn await_requeue(waiter: &Waiter<P>) {
        let state = &waiter.node().state;
        // requeued -> awake. Acquire, where it is woken by now: pairs with WS.
        let awake = state.compare_exchange(REQUEUED, AWAKE, Relaxed, Acquire);
        if awake.is_ok() {
            waiter.sleep_until(&Limit::NONE, || waiter.state() == ADOPTED);
        }
    }

    /// Notifies the waiter that has waited longest. Returns whether there was one. The caller need
    /// not own the lock. Not for signal handlers.
    #[inline]
    pub fn notify_one(&self) -> bool {
        !self.list.looks_empty() && self.notify(1) != 0
    }

    /// Notifies all waiters. Returns how many there were. Two are woken, which wake others, and so
    /// on. The caller need not own the lock. Not for signal handlers.
    #[inline]
    pub fn notify_all(&self) -> usize {
        if self.list.looks_empty() {
            0
        } else {
            self.notify(usize::MAX)
        }
    }

    /// Whether a thread waits that was not notified, or is just giving up. Takes the wait lock:
    /// once there is no such thread, and none can come, no other thread touches the condition
    /// variable.
    pub fn is_in_use(&self) -> bool {
        let waiters = self.list.lock();
        waiters.ids().any(|id| !Self::remove(&waiters, id))
    }

    /// Whether a thread waits, not notified yet, whose lock is another one than this. Takes the
    /// wait lock if anybody waits.
    pub fn waits_with_another(&self, lock: &Overlock<P>) -> bool {
        let address = ptr::from_ref(lock).addr();
        !self.list.looks_empty()
            && self.list.lock().ids().any(|id| {
                let node = id.node::<P>();
                node.info.load(Relaxed) < LEAVING && node.lock.load(Relaxed) & !WATCHED != address
            })
    }

    /// Takes a waiter that has jumped out of the list, as its thread may not come back. Returns
    /// false for any other.
    fn remove(waiters: &Waiters<'_, P>, id: NodeId) -> bool {
        let state = &id.node::<P>().state;
        // jumped -> claimed. Relaxed: the wait lock orders the list.
        let claimed = state.compare_exchange(JUMPED, CLAIMED, Relaxed, Relaxed);
        if claimed.is_ok() {
            waiters.unlink(id);
            // claimed -> removed
            signal::<P>(id, REMOVED);
            kick::<P>(id);
        }
        claimed.is_ok()
    }

    /// Waits until nobody [uses it](Self::is_in_use), and its memory may be freed. The caller may
    /// own the lock. Backs off between two polls, since waiters give up within microseconds. Never
    /// ends while a waiter has not been notified.
    pub fn drain(&self) {
        while self.is_in_use() {
            backoff_sleep::<P>();
        }
    }

    /// Joins the list. Returns whether nobody has before.
    fn join<L: RawLock>(&self, waiter: &Waiter<P>, lock: &L) -> bool {
        let node = waiter.node();
        let overlock = match lock.is_overlock::<P>() {
            true if lock.is_watched() => ptr::from_ref(lock).addr() | WATCHED,
            true => ptr::from_ref(lock).expose_provenance(),
            false => 0,
        };
        let rank = P::rank();
        let waiters = self.list.lock();
        waiter.prepare();
        node.lock.store(overlock, Relaxed);
        waiters.push_ranked(waiter.id(), rank);
        node.jumps.store(1, Relaxed);
        let is_new = self.list.own.load(Relaxed) == 0;
        self.list.own.store(1, Relaxed);
        is_new
    }

    /// Leaves the list. Fails for a waiter that was notified, which must not touch the list.
    #[cold]
    fn leave(&self, id: NodeId) -> bool {
        // waiting -> leaving
        let leaves = Self::end_waiting(id, LEAVING).is_ok();
        if leaves {
            self.list.lock().unlink(id);
        }
        leaves
    }

    /// Changes what a waiter is, if it still waits. Returns its rank.
    fn end_waiting(id: NodeId, new: u32) -> Result<u32, u32> {
        let info = &id.node::<P>().info;
        // Relaxed: it publishes nothing. The wait lock orders the list, and the wake-up publishes
        // what the waiter has to see.
        match info.load(Relaxed) {
            rank @ ..LEAVING => info.compare_exchange(rank, new, Relaxed, Relaxed),
            ended => Err(ended),
        }
    }

    #[cold]
    fn notify(&self, most: usize) -> usize {
        let (head, count, has_rank) = self.detach(most);
        match head {
            Some(head) if count == 1 => wake::<P>(head, true),
            Some(head) if has_rank => wake_in_order::<P>(head),
            Some(head) => wake_chain::<P>(head),
            None => {}
        }
        count
    }

    /// Takes at most so many out of the list. Returns the head of their chain, their number, and
    /// whether any has a rank.
    fn detach(&self, most: usize) -> (Option<NodeId>, usize, bool) {
        let waiters = self.list.lock();
        let mut head = None;
        let mut tail: Option<NodeId> = None;
        let (mut count, mut has_rank) = (0, false);
        let mut next = waiters.first();
        while let Some(id) = next {
            if count == most {
                break;
            }
            next = waiters.after(id);
            // waiting -> notified
            let Ok(rank) = Self::end_waiting(id, NOTIFIED) else {
                Self::remove(&waiters, id);
                continue;
            };
            has_rank |= rank > 0;
            waiters.unlink(id);
            match tail.replace(id) {
                Some(tail) => link::<P>(tail, id),
                None => head = Some(id),
            }
            count += 1;
        }
        (head, count, has_rank)
    }

    /// Waits without a node: a spurious wake-up after a back-off.
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
        backoff_sleep::<P>();
        let notified = !limit.is_reached();
        (lock.lock(), notified)
    }
}

// SAFETY: only `list` names a node.
unsafe impl<P: FutexPlatform> RawFork for Condvar<P> {
    unsafe fn forget_waiters(&self) {
        self.list.forget();
    }
}
