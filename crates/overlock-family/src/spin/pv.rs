//! The part that the paravirtual queued locks share: a queue whose waiters sleep, and an unlock
//! that kicks.
//!
//! [`pv_queued`] and [`hybrid`] differ in what a newcomer
//! may do before it joins the queue ([`Form::UNFAIR`]); all else is here. From the paravirtual
//! queued spinlock (Long, Zijlstra, 2015) in the form of late 2017.
//!
//! # Layout
//!
//! The word is that of [`queued`]: (tail, pending, locked). But locked has a third value, SLOW:
//! locked, and the head of the queue sleeps. An unlock that finds SLOW looks the head up in the
//! lock hash and kicks it. Only the head writes pending: set while it spins
//! for the lock, clear while it sleeps.
//!
//! A waiter's node has two words besides its link. `state` says how far the waiter is, in two bits:
//!
//! | `state` | head of the queue? | asleep? | set by |
//! |---|---|---|---|
//! | RUNNING 0 | no | no | the waiter |
//! | HALTED 1 | no | yes, or about to | the waiter, by exchange from RUNNING |
//! | HEAD 2 | yes | no | its predecessor, by exchange from RUNNING; from then on the waiter |
//! | HASHED 3 | yes | yes, or about to | its predecessor, where it was HALTED; from then on the waiter |
//!
//! `kicks` is the latch: the word that a sleeper halts on, in the queue and at its head. A kicker
//! adds 1 to it. It is never set back, and no other use of the node touches it.
//!
//! # States
//!
//! ```text
//!             newcomer: steal, or join the queue
//!                            |
//!   RUNNING <--spurious-- HALTED       spins on its node; sleeps after a while, or at once
//!      |                     |         where its predecessor sleeps
//!      | predecessor         | predecessor: locked = SLOW, entry in the hash
//!      v                     v
//!    HEAD <-----kick------ HASHED      spins for the lock with pending set; then, with
//!      |   -----sleep---->             pending clear, locked = SLOW and an entry, sleeps
//!      v
//!    (m, 0, 1) owner: makes its successor the head
//! ```
//!
//! The comments beside the code have the transitions of the word.
//!
//! # Invariants
//!
//! - I1: (entry) a lock has at most one entry in the hash. As far as the head can see, it has one
//!   exactly while locked is SLOW. Two threads ever make an entry: the owner that makes a HALTED
//!   waiter the head, before it does so; and the head, where locked is not SLOW. They cannot both
//!   do it for one waiter, which is not the head until the owner has made its entry.
//! - I2: (exit) the unlocker takes the entry out before it releases the lock. From the release on
//!   it touches nothing of the lock, which its next owner may free. The node is immortal.
//! - I3: only the head sets and clears pending. While it is set, nobody takes the lock past the
//!   head, apart from threads that loaded the word just before. Hence the head takes the lock by
//!   exchange, not by store.
//! - I4: a waiter joins the queue at the tail, and only the head takes the lock from the queue.
//! - I5: a node's context is free again only after its waiter has made its successor the head.
//!
//! # Orderings
//!
//! - PU, the release that makes locked 0, pairs with PA, the acquire exchange by which the next
//!   owner takes it.
//! - PE, the exchange of locked for SLOW by the head, releases the entry; the acquire load of the
//!   unlocker that found SLOW pairs with it. (Its exchange has failed by then, and orders nothing.)
//! - PH, the release store (or exchange) of HEAD or HASHED, pairs with the acquire load of the
//!   waiter: a waiter that is HASHED sees SLOW, or a later value.
//! - PK, the release addition to `kicks`, pairs with the acquire load of `kicks` before a halt.
//! - The queue's own, QP and QN, are those of [`queued`].
//!
//! # Fast and slow path
//!
//! The fast path is one exchange of 0 for (0, 0, 1). After it has failed a thread may steal
//! ([`Form::UNFAIR`]), else it queues. In the queue and at its head a waiter polls for
//! [`Form::POLLS`] and then sleeps. It sleeps at once while its predecessor sleeps ("wait
//! early"): its turn cannot come before that one has run.
//!
//! # Why no wake-up is lost
//!
//! A sleeper halts on `kicks` with the value that it read *before* its last check of the condition
//! for which it waits.
//!
//! - In the queue the last check is the exchange RUNNING -> HALTED. It and the predecessor's
//!   RUNNING -> HEAD meet in one word, so one of them fails. Either the waiter learns that it is
//!   the head; or the predecessor learns that it sleeps, and enters it, and the unlock kicks it.
//! - At the head the last check is that of locked. If it shows SLOW (or made it so, from 1), an
//!   owner has yet to load locked in order to release it. That owner finds SLOW and the entry
//!   (PE), and adds to `kicks` after its release. Had the head already read that addition (PK),
//!   its last check would have shown the release.
//! - An entry lives until an unlock, and each unlock that takes one out kicks. After a halt that
//!   ends early the waiter checks again.
//!
//! A stale kick (its kicker lost the CPU after the release, and the node now waits for another
//! lock) ends one halt early and changes no state.
//!
//! # Where this deviates from the published form
//!
//! - Handoff and sleeping meet in one word. The published form has a word each, "handed over" and
//!   `state`, and needs a full fence on both sides between writing one and reading the other. It
//!   also lets a waiter become the head before its predecessor has entered it. The waiter could
//!   then have made an entry itself, and there were two (in the code of 2015, found in 2016). Here
//!   the predecessor's entry comes first (I1).
//! - The published head waits for a change of the locked byte, the others for one of `state`; a
//!   hypervisor can wait on any byte, a futex on one aligned word. Here both wait for `kicks`,
//!   which is the same for the kicker: the latch of a hypervisor's "unhalt" flag, as a counter.
//! - The unlocker reads the node's name from the hash before it releases (I2).
//! - A thief needs no node, so a newcomer tries to steal before it guards one.
//! - A head that was kicked may lose the lock to a thief, and has no entry then. The published
//!   head spins from then on until it wins. With [`Form::ENTER_AGAIN`] it enters itself again and
//!   sleeps.
//! - The constants are a policy: a [`Form`].
//! - Waiters cannot give up. A waiter in the middle of the queue would have to be unlinked between
//!   two others that may be leaving too (`osq` can do that, in twice the space a node). The head
//!   would have to pass on a lock that it does not hold.

pub(crate) mod lock_hash;

use core::fmt::Debug;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::queued::{self, LOCKED, LOCKED_BYTE, PENDING, PENDING_BYTE};
use super::{hybrid, pv_queued};
use crate::tables::FamilyPlatform;
use overlock_core::facts::{self, Bound, Facts, Slow, Waiting};
use overlock_core::node::{Node, NodeId, take_without_node};
use overlock_core::platform::{Atomic, ByteLanes, Lanes, Platform, Spin};
use overlock_core::raw::{ConstLock, RawFork, RawLock};
use overlock_core::sleep::wait_list::{self, count_wake, kick, stamp};
use overlock_core::stat::{self, Event};

/// The part that the rows of these locks share.
pub(super) const FACTS: Facts = Facts {
    bound: Bound::Running,
    waiting: Waiting::SpinsLong,
    node: facts::NeedsNode::Waiter,
    slow: Slow::QueuedOrStolen,
    ..Facts::SPINNING
};

/// The third value of locked: the head sleeps.
const SLOW: u32 = 3;

// Values of `state`.
const RUNNING: u32 = 0;
const HALTED: u32 = 1;
const HEAD: u32 = 2;
const HASHED: u32 = 3;
/// The bit that HALTED and HASHED have in common.
const ASLEEP: u32 = 1;

/// A waiter in the queue loads its predecessor's state once in so many polls of its own.
const POLLS_PER_PREDECESSOR_CHECK: u32 = 256;

/// A form of the lock: its constants, as published for vCPUs.
pub trait Form: Send + Sync + Debug + 'static {
    /// The lock's name in tables.
    const NAME: &'static str;
    /// How long a newcomer may stay in unfair mode before it joins the queue. `None`: there is no
    /// such mode, and it tries once to steal.
    const UNFAIR: Option<Spin>;
    /// A waiter's spin budget before it sleeps, in the queue and at its head, in polls.
    const POLLS: u32 = 1 << 15;
    /// Whether a head that was kicked and found the lock stolen may sleep again.
    const ENTER_AGAIN: bool = false;
}

/// A paravirtual queued lock of the form `F`: see [`Hybrid`](crate::spin::Hybrid) and
/// [`PvQueued`](crate::spin::PvQueued). 4 bytes.
#[derive(Debug)]
pub struct PvLock<P: Platform, F: Form> {
    word: P::U32,
    form: PhantomData<F>,
}

impl<P: Platform, F: Form> PvLock<P, F> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        PvLock {
            word: Atomic::ZERO,
            form: PhantomData,
        }
    }
}

impl<P: Platform, F: Form> Default for PvLock<P, F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, F: Form> ConstLock for PvLock<P, F> {
    const INIT: Self = Self::new();
}

// SAFETY: the locked byte goes from 0 to a value that is not 0 by exchange alone, and back only in
// `unlock`.
unsafe impl<P: FamilyPlatform, F: Form> RawLock for PvLock<P, F> {
    type Token = ();

    const NAME: &'static str = F::NAME;

    #[inline]
    fn lock(&self) {
        // (0, 0, 0) -> (0, 0, 1). PA: acquire, pairs with PU.
        let taken = self.word.compare_exchange(0, LOCKED, Acquire, Relaxed);
        if taken.is_err() {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        // (0, 0, 0) -> (0, 0, 1). PA: acquire, pairs with PU.
        let taken = self.word.load(Relaxed) == 0
            && self
                .word
                .compare_exchange(0, LOCKED, Acquire, Relaxed)
                .is_ok();
        taken.then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // PU: (*, *, 1) -> (*, *, 0). Release, pairs with PA.
        let released = self.word.byte0_compare_exchange(LOCKED as u8, 0, Release);
        if released.is_err() {
            self.unlock_slow();
        }
    }

    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & LOCKED_BYTE != 0
    }

    fn is_contended(&self) -> bool {
        self.word.load(Relaxed) & !LOCKED_BYTE != 0
    }
}

// SAFETY: the tail, and the entry in the lock hash, which has gone with all others, are all that
// names a node.
unsafe impl<P: FamilyPlatform, F: Form> RawFork for PvLock<P, F> {
    unsafe fn forget_waiters(&self) {
        let locked = self.word.load(Relaxed) & LOCKED_BYTE;
        self.word.store(locked.min(LOCKED), Relaxed);
    }
}

impl<P: FamilyPlatform, F: Form> PvLock<P, F> {
    #[cold]
    fn lock_slow(&self) {
        let stolen = match F::UNFAIR {
            Some(limit) => hybrid::steal::<P>(&self.word, limit),
            None => pv_queued::steal::<P>(&self.word),
        };
        if stolen {
            stat::count::<P>(Event::PvLockStealing);
            return;
        }
        let Some(guard) = queued::guard_node::<P>() else {
            return self.lock_without_node();
        };
        let node = guard.node();
        node.state.store(RUNNING, Relaxed);
        let before = queued::join(&self.word, &guard);
        stat::count::<P>(Event::LockSlowpath);
        let entered = before.is_some_and(|before| self.wait_in_queue(node, before.node()));
        self.wait_as_head(node, guard.id(), entered);
        // (n, 0, 1) -> (0, 0, 1). Relaxed: PA came before, and no thread takes anything from the
        // fact that a tail has gone.
        let alone = queued::tail(guard.id()) | LOCKED;
        let last = self.word.compare_exchange(alone, LOCKED, Relaxed, Relaxed);
        if last.is_err() {
            self.hand_off(queued::successor(node));
        }
        // Here the guard ends, not before (I5).
    }

    /// Waits until `node` is the head; returns whether its predecessor entered it into the hash.
    fn wait_in_queue(&self, node: &'static Node<P>, before: &'static Node<P>) -> bool {
        loop {
            for _ in 0..F::POLLS.div_ceil(POLLS_PER_PREDECESSOR_CHECK) {
                if before.state.load(Relaxed) & ASLEEP != 0 && node.state.load(Relaxed) == RUNNING {
                    // Our turn will not come soon: the waiter before us does not even run.
                    stat::count::<P>(Event::PvWaitEarly);
                    break;
                }
                let limit = Spin::Polls(POLLS_PER_PREDECESSOR_CHECK.min(F::POLLS));
                // PH: acquire, pairs with the release in `hand_off`.
                let state = P::wait_until(&node.state, Acquire, limit, |state: u32| state >= HEAD);
                if let Ok(state) = state {
                    return awake_as_head(state);
                }
            }
            // PK: acquire, pairs with the release in `kick`. Before the last check.
            let kicks = node.kicks.load(Acquire);
            // RUNNING -> HALTED: the last check. It fails where we have become the head: PH then,
            // acquire. Relaxed else: a thread that sees HALTED reads nothing else of ours.
            if let Err(state) = node
                .state
                .compare_exchange(RUNNING, HALTED, Relaxed, Acquire)
            {
                return awake_as_head(state);
            }
            stat::count::<P>(Event::PvWaitNode);
            halt(node, kicks);
            // HALTED -> RUNNING. It fails where we have become the head: PH then, acquire.
            if let Err(state) = node
                .state
                .compare_exchange(HALTED, RUNNING, Relaxed, Acquire)
            {
                return state == HASHED;
            }
            stat::count::<P>(Event::PvSpuriousWakeup);
        }
    }

    /// Takes the lock as the head of the queue. `entered`: the hash has an entry for us already.
    fn wait_as_head(&self, node: &'static Node<P>, id: NodeId, mut entered: bool) {
        let mut slept = false;
        loop {
            // Relaxed: our successor loads it to know whether we run, no more.
            node.state.store(HEAD, Relaxed);
            if self.spin_as_head() {
                return;
            }
            // PK: acquire, pairs with the release in `kick`. Before the last check.
            let kicks = node.kicks.load(Acquire);
            // If this is SLOW, we have an entry, and our unlocker is still to come (I1): we made it
            // SLOW ourselves, or PH made us see that our predecessor did. If it no longer is, this
            // is acquire and pairs with PU: our entry is gone.
            if self.word.load(Acquire) & LOCKED_BYTE != SLOW {
                if entered && !F::ENTER_AGAIN {
                    continue;
                }
                if self.enter_or_take(id) {
                    return;
                }
            }
            entered = true;
            node.state.store(HASHED, Relaxed);
            stat::count::<P>(Event::PvWaitHead);
            if slept {
                stat::count::<P>(Event::PvWaitAgain);
            }
            slept = true;
            halt(node, kicks);
        }
    }

    /// Spins for the lock as the head, with pending set. Returns whether it took the lock.
    ///
    /// A lost exchange starts the spin budget anew. It can be lost only to a thief that loaded the
    /// word before pending was set, so once to each of those (I3).
    fn spin_as_head(&self) -> bool {
        // (n, 0, *) -> (n, 1, *): from now on no newcomer steals (I3).
        self.word.byte1_store(1, Relaxed);
        let limit = Spin::Polls(F::POLLS);
        let is_released = |word: u32| word & LOCKED_BYTE == 0;
        // Relaxed: the exchange acquires.
        while P::wait_until(&self.word, Relaxed, limit, is_released).is_ok() {
            // (n, 1, 0) -> (n, 0, 1). PA: acquire, pairs with PU.
            if self
                .word
                .low_compare_exchange(PENDING as u16, LOCKED as u16, Acquire)
                .is_ok()
            {
                return true;
            }
        }
        // (n, 1, *) -> (n, 0, *): while we sleep others may steal.
        self.word.byte1_store(0, Relaxed);
        false
    }

    /// Enters the head `id` into the hash, or takes the lock if it is free by now. Returns whether
    /// it took it.
    fn enter_or_take(&self, id: NodeId) -> bool {
        let entry = lock_hash::insert::<P, _>(&self.word, id);
        // PE: (n, 0, *) -> (n, 0, SLOW), the last check. Release: the entry, for the unlocker's
        // load; acquire: where it was free this is PA, and pairs with PU.
        if self.word.byte0_swap(SLOW as u8, AcqRel) == 0 {
            // (n, 0, SLOW) -> (n, 0, 1): the lock is ours, and no other thread has acted on SLOW.
            // Relaxed, as is the removal of the entry: only the unlocker would look it up, and that
            // is this thread.
            self.word.byte0_store(LOCKED as u8, Relaxed);
            entry.clear();
            return true;
        }
        false
    }

    /// Makes `next` the head, as the owner of the lock.
    fn hand_off(&self, next: NodeId) {
        let node = next.node::<P>();
        // PH: RUNNING -> HEAD. Release, pairs with the acquire load in `wait_in_queue`. A failure
        // orders nothing, and nothing here depends on what its HALTED comes after.
        if node
            .state
            .compare_exchange(RUNNING, HEAD, Release, Relaxed)
            .is_err()
        {
            // It sleeps, so it is we who enter it, and our unlock that kicks it. (*, 0, 1) -> (*,
            // 0, SLOW). Relaxed, and before the entry: the unlocker is this thread.
            self.word.byte0_store(SLOW as u8, Relaxed);
            lock_hash::insert::<P, _>(&self.word, next);
            // PH: HALTED, or RUNNING if it has woken up meanwhile -> HASHED. Release, pairs with
            // the acquire load. Not before the entry is there: the head enters itself
            // where it sees none (I1).
            node.state.store(HASHED, Release);
        }
    }

    #[cold]
    fn unlock_slow(&self) {
        // PE: acquire, pairs with the release of the head that made it SLOW.
        let slow = self.word.load(Acquire) & LOCKED_BYTE == SLOW;
        let head = slow
            .then(|| lock_hash::remove::<P, _>(&self.word))
            .flatten();
        let Some(head) = head else {
            // Not held, or another thread is just unlocking it too. There is nothing to release.
            overlock_core::check!(false, "unlock of a paravirtual queued lock that is free");
            return;
        };
        // PU: (*, *, SLOW) -> (*, *, 0). Release, pairs with PA.
        self.word.byte0_store(0, Release);
        stamp(head.node::<P>());
        // PK: its release pairs with the acquire load before a halt: the last check of that halt
        // comes after our release of the lock. The node may be in another use by now (I2).
        kick::<P>(head);
    }

    /// Waits without a node, so without a place in the queue: steals as soon as it can.
    #[cold]
    fn lock_without_node(&self) {
        stat::count::<P>(Event::PvLockStealing);
        take_without_node::<P, _>(&self.word, is_free, || take::<P>(&self.word).then_some(()));
    }
}

/// Whether a thread outside the queue may take the lock: it is free, and no head spins for it.
#[inline]
pub(super) fn is_free(word: u32) -> bool {
    word & (PENDING_BYTE | LOCKED_BYTE) == 0
}

/// Takes the lock past the queue, if it is still free.
#[inline]
pub(super) fn take<P: Platform>(word: &P::U32) -> bool {
    // (*, *, 0) -> (*, *, 1). PA: acquire, pairs with PU. The head may have set pending since the
    // caller loaded the word: then one of the two exchanges fails.
    word.byte0_compare_exchange(0, LOCKED as u8, Acquire)
        .is_ok()
}

/// A waiter that is awake finds itself the head; returns whether its predecessor entered it.
fn awake_as_head(state: u32) -> bool {
    state == HASHED
}

/// Sleeps until the node has been kicked more often than `kicks` times; may return spuriously.
fn halt<P: Platform>(node: &Node<P>, kicks: u32) {
    wait_list::halt::<P>(node, kicks, None);
    if stat::is_on() && node.kicks.load(Relaxed) != kicks {
        count_wake(node);
    }
}

#[cfg(test)]
mod tests;
