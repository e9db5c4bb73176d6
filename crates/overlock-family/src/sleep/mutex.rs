//! The kernel's mutex: waiters spin while the owner runs, sleep otherwise, and spin again when
//! woken.
//!
//! It follows the document "locking/mutex: Enable optimistic spinning of lock waiter" (Long, March
//! 2016), on the base of optimistic spinning (Zijlstra, Low, 2009 to 2014). The single owner word
//! and the handoff are those of Linux 4.10 (Zijlstra).
//!
//! A newcomer watches the owner as the head of the [spin queue](super::osq), and then sleeps, first
//! come, first served. An unlock wakes the first sleeper, which usually finds that a spinner was
//! quicker. The document lets a woken sleeper spin as well: outside the queue, where it would stand
//! behind the others, and next to the queue's head.
//!
//! # Layout
//!
//! Fields that never overlap, 16 bytes; only `owner` is on a fast path.
//!
//! ```text
//!          31               16 15         3      2         1         0
//!         +-------------------+------------+---------+---------+---------+
//!  owner  | owner             | CPU + 1    | pick-up | handoff | waiters |
//!         +-------------------+------------+---------+---------+---------+
//! ```
//!
//! | field | who writes it, and when |
//! |---|---|
//! | owner | an acquisition: the name of its slot's first [node](overlock_core::node), 1 for a thread without a slot. An unlock: 0, or the name of the first sleeper's node, with pick-up |
//! | CPU | an acquisition: the CPU that it ran on; 0 where that is not known. Without an owner, or with pick-up: 0 |
//! | waiters (W) | under the wait lock: set by a thread that joins the list, cleared by one that leaves it empty |
//! | handoff (H) | set by the first sleeper when it was woken in vain; cleared by the unlock that hands off, and with W |
//! | pick-up (P) | set by the unlock that hands off; cleared by the thread that owner names, as it takes the mutex |
//! | `sleepers: 2 × u16, u8` | the list of sleepers, and its wait lock |
//! | `spinners: u16` | the [spin queue](super::osq) |
//! | `Node::state` | under the wait lock: 0 by a sleeper before it sleeps, 1 by the unlock that wakes it |
//!
//! # States
//!
//! As (owner; flags); `a` owns, `b` is the first sleeper, `c` any other thread:
//!
//! ```text
//! (0; )    --lock-->          (a; )      one exchange
//! (a; )    --unlock-->        (0; )      one exchange
//! (*; )    --b joins-->       (*; W)     b sleeps
//! (*; W)   --c joins-->       (*; W)     behind b
//! (a; W)   --unlock-->        (0; W)     b is woken, unless it is awake
//! (0; W)   --c takes it-->    (c; W)     a newcomer, a spinner, or b
//! (a; W)   --b was woken-->   (a; WH)    in vain: it requests the handoff
//! (a; WH)  --unlock-->        (b; WP)    b is woken, unless it is awake; nobody else can take the mutex
//! (a; W)   --unlock_fair-->   (b; WP)    without a request of b
//! (b; WP)  --b takes it-->    (b; W)
//! (*; W)   --b leaves-->      (*; )      where nobody else is in the list; also with H
//! (*; W)   --b leaves-->      (*; W)     where another one is: it is the first now
//! (a; )    --unlock-->        (a; )      it saw W, and nobody is in the list any more: it tries again
//!
//! a waiter, after a failed attempt:
//! spins, as the queue's head  -->          owner, or joins the list
//! in the list                 -->          owner, or asleep
//! asleep, woken               -->          owner; or it requests the handoff, and spins: owner, or makes a last attempt
//! last attempt                -->          owner, or asleep
//! asleep, at its limit        -->          owner after all, or without the mutex
//! without a node              -->          owner, or it backs off between attempts, or without the mutex
//! ```
//!
//! # Invariants
//!
//! - M1: W is set just while the list is not empty; both change under the wait lock.
//! - M2: H is set only while the mutex is owned, and is cleared only by the handoff, or with W. So
//!   a mutex with a request never becomes free, and nobody can steal it on the way. P is set only
//!   with the name of the first sleeper, which is in the list until it has taken the mutex.
//! - M3: only the first of the list is ever woken, and it stays the first until it leaves: others
//!   join at the end.
//! - M4: while W is set, every unlock takes the wait lock, and leaves the first sleeper signalled:
//!   awake, or on its way to its last attempt.
//! - M5: where the list is empty, an unlock's last access to the mutex is its exchange; otherwise
//!   it is the release of the wait lock. In the second case W is set, and only cleared under the
//!   wait lock. So the next owner meets the wait lock before it can free the mutex: in its unlock,
//!   which finds W, or before, as it leaves the list.
//! - M6: wake-ups (system calls) come after the wait lock was released, and touch only the
//!   sleeper's node, which is immortal.
//!
//! # Orderings
//!
//! - MA, the acquire exchange that takes the mutex, pairs with MU, the release exchange of the
//!   unlock. The flags between them are changed by read-modify-writes, which continue MU's release
//!   sequence.
//! - The wait lock's own acquire and release order the list, `Node::state` and the loads of the
//!   owner word under it.
//! - WS and WK of `sleep/wait_list.rs` order a wake-up.
//!
//! # Why no wake-up is lost
//!
//! A sleeper announces that it must be woken: it joins, or sets its state back in
//! `prepare_to_sleep`. Then it makes a last attempt, and only then it sleeps. It announces under
//! the wait lock, and an unlock that sees W releases and wakes under the wait lock.
//!
//! If the unlock comes first, it comes before the last attempt. That attempt finds the mutex free
//! or handed off to it, or owned again, with another unlock to come. If the unlock comes second, it
//! finds the sleeper in the list, waiting for a wake-up. An unlock that does not see W made its
//! exchange before W was set, and so before the last attempt too.
//!
//! The document's third patch is about a last attempt *before* the announcement. An unlock between
//! the two finds the sleeper awake, and leaves the mutex to an attempt that never comes.
//!
//! A sleeper that gives up makes a last attempt under the wait lock: a wake-up that it may have had
//! was meant for all waiters. If the attempt fails there is an owner, whose unlock will see W and
//! wake the next.
//!
//! # How long a waiter can wait
//!
//! Sleepers are served in the order in which they joined. Newcomers and spinners barge past them,
//! any number while the first one sleeps and while it wakes up. Once it runs and finds the mutex
//! taken, it requests the handoff, and the next unlock hands off: one more section at most. It
//! requests again after each wake-up. [`SPIN_NS`](Policy::SPIN_NS) bounds a newcomer's time in the
//! spin queue.
//!
//! # Lifetime
//!
//! In safe Rust an unlock borrows the mutex until the call is over. A C program may destroy a mutex
//! as soon as it has acquired and released it for the last time, while the previous unlock is still
//! under way. M5 is for that. The thread that frees it must be the last to *call* it, as POSIX
//! requires: a waiter that gives up is a caller until it has returned.
//!
//! # Where this deviates from the published form
//!
//! - The 2016 document has no handoff. Here a woken sleeper requests one at its first failed
//!   attempt, as in Linux 4.10: without it, spinners can barge past a sleeper for ever.
//! - The kernel sees whether the owner runs. Here only one case is known, an owner whose CPU the
//!   spinner itself is on, so spins are bounded in time as well.
//! - The published unlock releases, then takes the wait lock; its mutex must not be freed by the
//!   next owner (M5). Here the wait lock comes first, and the mutex stays owned while others hold
//!   the wait lock: a few instructions, or longer where a holder has lost its CPU. The published
//!   unlock lets others in meanwhile, until their own unlocks need the wait lock.
//! - The published unlock wakes a sleeper again that is awake, which the kernel finds out cheaply.
//!   Here that would be a system call at each unlock until the sleeper has come, so the unlock
//!   checks its state first.
//! - A sleeper sets its state back under the wait lock; the kernel uses a full barrier.
//! - Owners are named by slot, not by pointer. A thread without a slot owns without a name.
//! - A thread without a node (no slot, or a fifth context) backs off between attempts. Nobody hands
//!   off to it, so it may starve.
//!
//! # Signal handlers
//!
//! As in the kernel, the mutex is not for code that interrupts. A handler may interrupt its thread
//! while that holds the wait lock or a place in the spin queue. Other threads then wait for the
//! handler's return, so it must not wait for any of them.

mod fork;
mod policy;
#[cfg(test)]
mod tests;
mod wait;
mod word;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

pub use policy::{Inside, NoSpin, Outside, Policy, WaiterSpin};

use super::osq::Osq;
use overlock_core::platform::{Atomic, Deadline, Platform};
use overlock_core::raw::{ConstLock, RawCancelLock, RawFairLock, RawLock, RawTimedLock};
use overlock_core::sleep::cancel::CancelToken;
use overlock_core::sleep::wait_list::{Limit, WaitList};
use word::{FLAGS, WAITERS};

/// The mutex: see the [module's page](self). 16 bytes.
#[derive(Debug)]
pub struct KernelMutex<P: Platform, Y: Policy = Outside> {
    owner: P::U32,
    sleepers: WaitList<P>,
    spinners: Osq<P>,
    policy: PhantomData<Y>,
}

/// [`KernelMutex`] with the policy [`Inside`].
pub type KernelMutexInside<P> = KernelMutex<P, Inside>;
/// [`KernelMutex`] with the policy [`NoSpin`].
pub type KernelMutexNone<P> = KernelMutex<P, NoSpin>;

impl<P: Platform, Y: Policy> Default for KernelMutex<P, Y> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, Y: Policy> ConstLock for KernelMutex<P, Y> {
    const INIT: Self = KernelMutex::new();
}

impl<P: Platform, Y: Policy> KernelMutex<P, Y> {
    /// A new, unlocked mutex.
    pub const fn new() -> Self {
        KernelMutex {
            owner: Atomic::ZERO,
            sleepers: WaitList::INIT,
            spinners: Osq::new(),
            policy: PhantomData,
        }
    }

    #[inline(always)]
    fn lock_fast(&self) -> bool {
        // (0; ) -> (me; ). MA: acquire, pairs with MU.
        self.owner
            .compare_exchange(0, word::mine::<P>(), Acquire, Relaxed)
            .is_ok()
    }

    /// Unlocks by one exchange. Fails where a flag is set.
    #[inline(always)]
    fn unlock_fast(&self) -> bool {
        let seen = self.owner.load(Relaxed);
        overlock_core::check!(!word::is_free(seen), "unlock of a mutex that is free");
        overlock_core::check!(
            word::may_be_mine::<P>(seen),
            "unlock of a mutex by a thread that does not hold it"
        );
        // (me; ) -> (0; ). MU: release, pairs with MA.
        seen & FLAGS == 0
            && self
                .owner
                .compare_exchange(seen, 0, Release, Relaxed)
                .is_ok()
    }

    #[inline]
    fn lock_within(&self, limit: &Limit<'_, P>) -> Option<()> {
        (self.lock_fast() || self.lock_slow(limit)).then_some(())
    }
}

// SAFETY: an acquisition is an exchange of the owner word from free to owned, or from handed off to
// owned by the one sleeper that it names (M2). Only the owner's unlock frees it or hands it off.
unsafe impl<P: Platform, Y: Policy> RawLock for KernelMutex<P, Y> {
    type Token = ();

    const NAME: &'static str = Y::NAME;

    #[inline]
    fn lock(&self) {
        if !self.lock_fast() {
            self.lock_slow(&Limit::NONE);
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.take(None).then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        if !self.unlock_fast() {
            self.unlock_slow(false);
        }
    }

    fn is_locked(&self) -> bool {
        !word::is_free(self.owner.load(Relaxed))
    }

    /// Whether a thread is in the list of sleepers, asleep or woken, or in the spin queue.
    fn is_contended(&self) -> bool {
        self.owner.load(Relaxed) & WAITERS != 0 || self.spinners.is_locked()
    }
}

// SAFETY: as above; a waiter that gives up leaves the list under the wait lock, or finds the mutex
// handed off to it.
unsafe impl<P: Platform, Y: Policy> RawTimedLock for KernelMutex<P, Y> {
    #[inline]
    fn lock_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.lock_within(&Limit::until(deadline))
    }
}

// SAFETY: as above.
unsafe impl<P: Platform, Y: Policy> RawFairLock for KernelMutex<P, Y> {
    #[inline]
    unsafe fn unlock_fair(&self, (): ()) {
        if !self.unlock_fast() {
            self.unlock_slow(true);
        }
    }
}

// SAFETY: as above.
unsafe impl<P: Platform, Y: Policy> RawCancelLock<P> for KernelMutex<P, Y> {
    /// A cancellation takes effect at the end of a spin, not during it.
    fn lock_cancellable(&self, cancel: &CancelToken<P>, deadline: Option<Deadline>) -> Option<()> {
        let cancel = Some(cancel);
        self.lock_within(&Limit { deadline, cancel })
    }
}
