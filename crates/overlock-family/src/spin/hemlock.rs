//! Hemlock: a queue in which a thread needs one word, however many such locks it holds.
//!
//! Dave Dice and Alex Kogan, "Hemlock: Compact and Scalable Mutual Exclusion", SPAA 2021. It is a
//! queue of Craig's, Landin's and Hagersten's kind (CLH) without nodes: the lock's tail names the
//! last thread in the queue, and a waiter polls a word of the thread before it, the *grant*. A
//! thread that unlocks writes the lock's address there. The one waiter of that lock takes it out
//! again, which tells the unlocking thread that its word is free. So waiters of different locks may
//! poll the same thread's grant: each waits for another address.
//!
//! The order is strict and nobody sleeps: a waiter that has lost its CPU holds up all behind it,
//! and also the thread that hands the lock off to it.
//!
//! # Layout
//!
//! ```text
//!  lock:  +---------------+---------------+       context of a slot:  +------------------+
//!         | tail          | owner         |                           | grant            |
//!         | last arrival  | its name      |                           | a lock's address |
//!         +---------------+---------------+                           +------------------+
//! ```
//!
//! `tail` is 0 (free), [`SPARE`], or the [name](NodeId) of a slot and a context in it, where the
//! published lock has a pointer to the thread. `owner` is the name of the owner, or [`GRANTED`].
//!
//! The context is 0, or one above that of the handoff which a handler has interrupted. With one
//! grant for both, the handler's handoff would wait until the interrupted one is taken. The thread
//! that is to take it may be in a handler that waits for the first handler's lock: a deadlock.
//!
//! # States
//!
//! As (tail; threads from the owner to the last; the owner's grant), for a lock L:
//!
//! ```text
//! (0; )              --lock-->           (a; a; 0)            ours at once
//! (b; a..b; 0)       --lock-->           (c; a..b c; 0)       c waits ...
//! (c; c..; 0)                                                 ... until it is the owner
//! (a; a; 0)          --unlock-->         (0; )                nobody waits
//! (c; a b..c; 0)     --unlock-->         (c; a b..c; L)       b may go on
//! (c; a b..c; L)     --b-->              (c; b..c; 0)         b is the owner, a's unlock returns
//! (0; )              --lock, no slot-->  (SPARE; SPARE)       else as any thread, but ...
//! (c; SPARE b..c)    --unlock-->         (c; b..c; 0)         ... owner = GRANTED tells b
//! ```
//!
//! # Invariants
//!
//! - K1: a name is in the queue of one lock at most once: a thread that waits for a lock, or owns
//!   it, does not lock it again.
//! - K2: a grant is L's address only from the unlock of L until the one waiter behind its owner has
//!   taken it out. The unlock returns after that.
//! - K3: a name does not join a queue while its grant is an address: the handoff has moved its
//!   thread to the next context.
//! - K4: a thread that waits, or owns, keeps its slot: [`SlotGuard`].
//! - K5: SPARE is in the queue once at most: it enters an empty one. `owner` is GRANTED only from
//!   its unlock until the next owner writes its own name.
//!
//! # Orderings
//!
//! - KT, the exchange of the tail, acquire and release, pairs with itself: a thread has seen its
//!   last grant taken, and an owner behind SPARE has written its name, before the name in the tail
//!   can be seen. So a waiter does not take the grant of an earlier unlock for its own. The release
//!   in the unlock's exchange to 0 pairs with the acquire of the next owner's: what happened under
//!   the lock.
//! - KG, the release store of the address to the grant, pairs with the acquire load of the waiter:
//!   what happened under the lock.
//! - KS, the release store of `owner = GRANTED`, pairs with the acquire load of the waiter behind
//!   SPARE: the same.
//! - The waiter's store that empties the grant is Relaxed, and so is the load that sees it: nothing
//!   is handed to the unlocking thread but the word itself. The context is Relaxed: only its thread
//!   and what interrupts it use it. The release of KG keeps it before the grant.
//!
//! # Why no handoff is lost
//!
//! Nobody sleeps. If the unlock's exchange of the tail fails, a thread has put its name behind the
//! owner's, and polls the owner's grant or is about to. The address stays there until that thread
//! has taken it out.
//!
//! # Signal handlers
//!
//! An unlock waits for its heir. Of the other spinlocks here only [`mcs`](super::mcs) does that,
//! for as long as a thread takes from its arrival to its link. So a discipline that suffices for
//! the others does not for this lock. A thread owns L and M; its heir for L is in a handler, and
//! waits for M there. If the thread unlocks L first, that unlock waits for the heir, and the heir
//! for M, for ever. One word for each thread cannot hold both handoffs: this is the price of the
//! published form. While a thread owns a lock M for which handlers wait, one of two rules has to
//! hold for each lock L of this kind that it unlocks:
//!
//! - It unlocks M before L.
//! - Threads wait for L only with the signals of those handlers blocked.
//!
//! If a third thread owns M, the unlock of L waits, and ends when M is free.
//!
//! # Without a slot
//!
//! A thread beyond the last slot, or a fifth context, waits until nobody holds the lock, and enters
//! the empty queue as SPARE. Its unlock has no grant: it writes GRANTED to the lock, where the next
//! owner writes its name. Correct, counted ([`Event::LockNoNode`]), and without the queue's
//! promise: such a thread may starve while others keep the queue from running empty.
//!
//! # Where this deviates from the published form
//!
//! - Threads are named by the index of their slot, which is immortal.
//! - A grant for each context. The published lock has no handlers.
//! - `owner`, for those without a slot, and so that a snapshot can tell whether the last in the
//!   queue waits. It costs the owner a store to the lock's line.
//! - The grant shares a cache line with what only its own thread uses, and the waiter's access is a
//!   load: the paper also has a form that polls with read-modify-writes.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::tables::FamilyPlatform;
use grants::Grants;
use overlock_core::facts::{Bound, Facts, HasFacts, NeedsNode, Slow};
use overlock_core::node::{CONTEXTS, NodeId, SlotGuard, take_without_node};
use overlock_core::platform::{Atomic, Platform, Spin};
use overlock_core::raw::{ConstLock, RawLock};
use overlock_core::stat::{self, Event};

/// Hemlock: see the [module's page](self). 8 bytes.
#[derive(Debug)]
pub struct Hemlock<P: Platform> {
    tail: P::U32,
    owner: P::U32,
}

/// An acquisition of a [`Hemlock`]: the context whose grant its successor polls.
///
/// Not `Send`: the slot belongs to the thread that locked. Forgetting the token leaves the lock
/// locked, and the slot goes to no other thread.
#[derive(Debug)]
#[must_use = "the lock stays locked until its token is handed to `unlock`"]
pub struct HemlockToken<P: Platform>(
    /// `None`: no slot, or no context.
    Option<Context<P>>,
);

/// A context of the calling thread. Keeps its slot.
#[derive(Debug)]
struct Context<P: Platform> {
    guard: SlotGuard<P>,
    id: NodeId,
}

/// The name of an owner without a slot. No [`NodeId`] has these bits.
pub const SPARE: u32 = u32::MAX;

/// The value that the unlock of an owner without a slot leaves in `owner`. No [`NodeId`] has these
/// bits.
pub const GRANTED: u32 = u32::MAX - 1;

impl<P: Platform> Hemlock<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        Hemlock {
            tail: Atomic::ZERO,
            owner: Atomic::ZERO,
        }
    }
}

impl<P: Platform> Default for Hemlock<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> ConstLock for Hemlock<P> {
    const INIT: Self = Self::new();
}

impl<P: FamilyPlatform> Context<P> {
    /// The context in which the calling thread, or its handler, may join a queue now.
    #[inline]
    fn new() -> Option<Self> {
        let guard = SlotGuard::<P>::new()?;
        // K3.
        let context = grants_of::<P>(&guard).context.load(Relaxed) as usize;
        (context < CONTEXTS).then(|| Context {
            id: NodeId::new(guard.number(), context),
            guard,
        })
    }

    fn name(&self) -> u32 {
        u32::from(self.id.bits())
    }

    /// Gives the lock at `address` to the one thread behind this name in its queue, and waits until
    /// that thread has taken it.
    fn grant(&self, address: usize) {
        let grants = grants_of(&self.guard);
        let grant = &grants.grants[self.id.context()];
        // Not at once where a handler unlocks what the interrupted thread has locked.
        let _ = P::wait_until(grant, Relaxed, Spin::Forever, |grant: usize| grant == 0);
        let before = grants.context.load(Relaxed);
        let above = self.id.context() as u32 + 1;
        grants.context.store(before.max(above), Relaxed);
        // (c; a b..c; 0) -> (c; a b..c; L). KG: release, pairs with the waiter's load.
        grant.store(address, Release);
        // K2. The word that is waited for is the thread's own.
        let _ = P::wait_until(grant, Relaxed, Spin::Forever, |grant: usize| {
            grant != address
        });
        grants.context.store(before, Relaxed);
    }
}

impl<P: FamilyPlatform> Hemlock<P> {
    /// This lock's value in a grant.
    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Waits behind `before` to become the owner.
    #[cold]
    fn wait(&self, before: u32) {
        stat::count::<P>(Event::LockSlowpath);
        if before == SPARE {
            // KS: acquire, pairs with SPARE's unlock.
            let _ = P::wait_until(&self.owner, Acquire, Spin::Forever, |owner: u32| {
                owner == GRANTED
            });
            return;
        }
        let (grant, address) = (grant_of::<P>(before), self.address());
        // KG: acquire, pairs with the handoff.
        let _ = P::wait_until(grant, Acquire, Spin::Forever, |grant: usize| {
            grant == address
        });
        // (c; a b..c; L) -> (c; b..c; 0). Relaxed: the word alone. After this, a's grant is not
        // ours to touch (K2).
        grant.store(0, Relaxed);
    }

    #[cold]
    fn lock_with_spare(&self) -> HemlockToken<P> {
        take_without_node::<P, _>(&self.tail, |tail| tail == 0, || self.enter_empty(None))
    }

    /// Enters the queue where it is empty.
    #[inline]
    fn enter_empty(&self, context: Option<Context<P>>) -> Option<HemlockToken<P>> {
        let name = match &context {
            Some(context) => context.name(),
            None => SPARE,
        };
        // (0; ) -> (a; a; 0). KT: acquire and release.
        let entry = self.tail.compare_exchange(0, name, AcqRel, Relaxed);
        entry.ok()?;
        self.owner.store(name, Relaxed);
        Some(HemlockToken(context))
    }

    /// Makes the thread behind the owner the owner. The lock may be gone as soon as that thread has
    /// seen it.
    #[cold]
    fn hand_off(&self, owner: Option<&Context<P>>) {
        match owner {
            Some(context) => context.grant(self.address()),
            None => {
                // KS: release, pairs with the waiter's load.
                self.owner.store(GRANTED, Release);
            }
        }
    }
}

/// The grant of the owner that a tail has named.
///
fn grants_of<P: FamilyPlatform>(guard: &SlotGuard<P>) -> &'static Grants<P> {
    &P::family_tables().threads[guard.number()].grants
}

/// # Panics
///
/// If the lock's memory was overwritten: see [`NodeId::node`]. The caller has handled 0 and
/// [`SPARE`], and each other tail is the name of a [`Context`].
fn grant_of<P: FamilyPlatform>(name: u32) -> &'static P::Usize {
    let id = NodeId::from_bits(name as u16).expect("no waiter is behind an empty queue");
    &P::family_tables().threads[id.slot()].grants.grants[id.context()]
}

impl<P: Platform> HasFacts for Hemlock<P> {
    const FACTS: Facts = Facts {
        about: "queue without nodes: one word a thread, however many locks it holds",
        bound: Bound::Order,
        node: NeedsNode::Always,
        slow: Slow::Queued,
        ..Facts::SPINNING
    };
}

// SAFETY: a thread becomes the owner by an exchange of the tail from 0, which one can win, or by a
// grant of this lock's address to the slot before it in the queue. By K1 and K3 that grant has one
// waiter, and each unlock that finds a successor makes one.
unsafe impl<P: FamilyPlatform> RawLock for Hemlock<P> {
    type Token = HemlockToken<P>;

    const NAME: &'static str = "hemlock";

    #[inline]
    fn lock(&self) -> HemlockToken<P> {
        let Some(context) = Context::<P>::new() else {
            return self.lock_with_spare();
        };
        // (b; a..b; 0) -> (c; a..b c; 0), or (0; ) -> (c; c; 0). KT: acquire and release.
        match self.tail.swap(context.name(), AcqRel) {
            0 => {}
            before => self.wait(before),
        }
        self.owner.store(context.name(), Relaxed);
        HemlockToken(Some(context))
    }

    #[inline]
    fn try_lock(&self) -> Option<HemlockToken<P>> {
        if self.tail.load(Relaxed) != 0 {
            return None;
        }
        self.enter_empty(Context::new())
    }

    #[inline]
    unsafe fn unlock(&self, token: HemlockToken<P>) {
        let name = token.0.as_ref().map_or(SPARE, Context::name);
        // (a; a; 0) -> (0; ). Release, pairs with KT of the next owner.
        let empty = self.tail.compare_exchange(name, 0, Release, Relaxed);
        if empty.is_err() {
            self.hand_off(token.0.as_ref());
        }
        // Here the token's guard ends, not before (K4). It touches the slot, not the lock.
    }

    fn is_locked(&self) -> bool {
        self.tail.load(Relaxed) != 0
    }

    /// Whether the last in the queue is not the owner. Does not see those that wait without a slot.
    /// May say so of an owner that has just come.
    fn is_contended(&self) -> bool {
        let tail = self.tail.load(Relaxed);
        tail != 0 && tail != self.owner.load(Relaxed)
    }
}

pub(crate) mod grants;

#[cfg(test)]
mod tests;
