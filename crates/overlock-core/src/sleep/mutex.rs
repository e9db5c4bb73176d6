//! The mutex of the kernel: spin while the owner runs, sleep otherwise, and let a woken sleeper
//! spin too.
//!
//! Its subject is the document "locking/mutex: Enable optimistic spinning of lock waiter" (Long,
//! March 2016), on the base of optimistic spinning (Zijlstra, Low, 2009 to 2014), with the single
//! owner word and the handoff that the kernel has had since (Zijlstra, 4.10). A newcomer watches
//! the owner as the head of the [spin queue](super::osq). If that does not help it sleeps, first
//! come, first served. The first sleeper is woken by an unlock and finds, more often than not, that
//! a spinner was quicker. The document lets it spin as well: not in the queue, where it would stand
//! behind the others, but beside its head.
//!
//! # Layout
//!
//! Fields that never overlap, 12 bytes; only `owner` is on a fast path.
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
//! | owner | who acquires: the name of its slot's first [node](crate::node), 1 where it has no slot. An unlock: 0, or the name of the first sleeper's node, with pick-up |
//! | CPU | who acquires: where it was then; 0 where that is not known. Without an owner, or with pick-up: 0 |
//! | waiters (W) | under the guard: set by who joins the list, cleared by who leaves it empty |
//! | handoff (H) | set by the first sleeper when it was woken in vain; cleared by the unlock that hands over, and with W |
//! | pick-up (P) | set by the unlock that hands over; cleared by the one that owner names, as it takes the mutex |
//! | `sleepers: 2 × u16, u8` | the list of sleepers, and its guard |
//! | `spinners: u16` | the [spin queue](super::osq) |
//! | `Node::state` | under the guard: 0 by a sleeper before it sleeps, 1 by the unlock that wakes it |
//!
//! # States
//!
//! As (owner; flags); `a` owns, `b` is the first sleeper, `c` anybody:
//!
//! ```text
//! (0; )    --lock-->          (a; )      one exchange
//! (a; )    --unlock-->        (0; )      one exchange
//! (*; )    --b joins-->       (*; W)     b sleeps
//! (*; W)   --c joins-->       (*; W)     behind b
//! (a; W)   --unlock-->        (0; W)     b is woken, unless it is awake
//! (0; W)   --c takes it-->    (c; W)     a newcomer, a spinner, or b
//! (a; W)   --b was woken-->   (a; WH)    in vain: it asks
//! (a; WH)  --unlock-->        (b; WP)    b is woken, unless it is awake; nobody else can take the mutex
//! (a; W)   --unlock_fair-->   (b; WP)    though b has not asked
//! (b; WP)  --b takes it-->    (b; W)
//! (*; W)   --b leaves-->      (*; )      where nobody else is in the list; also with H
//! (*; W)   --b leaves-->      (*; W)     where somebody is: it is the first now
//! (a; )    --unlock-->        (a; )      it saw W, and nobody is in the list any more: it tries again
//!
//! a waiter, after an attempt in vain:
//! spins, as the queue's head  -->          owner, or joins the list
//! in the list                 -->          owner, or asleep
//! asleep, woken               -->          owner; or it asks, and spins: owner, or makes a last attempt
//! last attempt                -->          owner, or asleep
//! asleep, at its limit        -->          owner after all, or without the mutex
//! without a node              -->          owner, or it naps between attempts, or without the mutex
//! ```
//!
//! # Invariants
//!
//! - M1: W is set just while the list is not empty; both change under the guard.
//! - M2: H is set only while somebody owns the mutex, and goes only with the handoff, or with W.
//!   So a mutex that was asked for never becomes free, and nobody can steal it on the way. P is set
//!   only with the name of the first sleeper, which is in the list until it has taken the mutex.
//! - M3: only the first of the list is ever woken, and it stays the first until it leaves: others
//!   join at the end.
//! - M4: while W is set, every unlock takes the guard, and leaves the first sleeper told: awake, or
//!   on its way to its last attempt.
//! - M5: an unlock's last access to the mutex is its exchange, where the list is empty; else the
//!   drop of the guard. In the second case W is set, and is cleared under the guard only. So
//!   whoever takes the mutex meanwhile meets the guard before it can free it: in its unlock, which
//!   finds W, or before, since it has to leave the list.
//! - M6: wake-ups (system calls) come after the guard was dropped, and touch the sleeper's node
//!   only, which is immortal.
//!
//! # Orderings
//!
//! - MA, the acquire exchange that takes the mutex, pairs with MU, the release exchange of the
//!   unlock. The flags between them are changed by read-modify-writes, which continue MU's release
//!   sequence.
//! - The guard's own acquire and release order the list, `Node::state` and the looks at the owner
//!   word under it.
//! - How a sleeper wakes: WS and WK of `sleep/wait_list.rs`.
//!
//! # Why no wake-up is lost
//!
//! A sleeper says that it wants to be woken (it joins; or sets its state back, in `prepare_to_sleep`),
//! makes a last attempt, and only then sleeps. It says so under the guard, and an unlock that sees
//! W releases and wakes under the guard. If the unlock comes first, it comes before the last
//! attempt, which finds the mutex free or given to it, or taken by another owner, whose unlock is
//! to come. If the unlock comes second, it finds the sleeper in the list, in want of a wake-up. An
//! unlock that does not see W made its exchange before W was set, and so before the last attempt
//! too. A last attempt *before* the saying is what the document's third patch is about: an unlock
//! between the two finds the sleeper awake, and leaves it to an attempt that never comes.
//!
//! A sleeper that gives up under the guard makes a last attempt there: the wake-up that it may have
//! had was meant for whoever waits. If the attempt fails there is an owner, whose unlock will see W
//! and wake the next.
//!
//! # How long a waiter can wait
//!
//! Sleepers are served in the order in which they joined. Newcomers and spinners pass them, any
//! number while the first one sleeps and while it wakes up. Once it runs and finds the mutex taken
//! it asks, and the unlock that follows hands over: one more section at most. It asks anew after
//! each wake-up. A newcomer's time in the spin queue is bounded by [`SPIN_NS`](Policy::SPIN_NS).
//!
//! # Who may free it
//!
//! In safe Rust whoever unlocks borrows the mutex until the call is over. A C program may destroy a
//! mutex as soon as it has acquired and released it for the last time, while the unlock before that
//! is still under way; M5 is for that. The thread that frees it must be the last to *call* it, as
//! POSIX asks: a waiter that gives up is a caller until it has returned.
//!
//! # Where this deviates from the published form
//!
//! - The kernel sees whether the owner runs. Here only one case is known, an owner whose CPU the
//!   spinner itself is on, so spins are bounded in time as well.
//! - The published unlock releases, then takes the guard; its mutex must not be freed by the next
//!   owner (M5). With the guard taken first, the mutex stays owned for the few instructions that
//!   the guard's holders need; if one has lost its CPU, for that long. The published unlock would
//!   let others in then, as far as their own unlocks, which need the same guard.
//! - The published unlock wakes a sleeper that is awake once more, which the kernel finds out
//!   cheaply. Here that would be a system call at each unlock until the sleeper has come: its state
//!   says that it is not needed.
//! - A sleeper sets its state back under the guard; the kernel with a full barrier.
//! - Owners are named by slot, not by pointer. A thread without a slot owns without a name. One
//!   without a node (no slot, or a fifth context) naps between attempts if it has to wait, and
//!   nobody hands over to it: it may starve.
//!
//! # Signal handlers
//!
//! As in the kernel, not for code that interrupts: a handler that interrupts its thread in the slow
//! path, with the guard or a place in the spin queue, holds up the threads that need them until it
//! returns. So it must not wait for any of them.

mod fork;
mod policy;
mod states;
#[cfg(test)]
mod tests;
mod wait;
mod word;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

pub use policy::{Inside, NoSpin, Outside, Policy, WaiterSpin};

use super::cancel::CancelToken;
use super::osq::Osq;
use super::wait_list::{Limit, WaitList};
use crate::platform::{Atomic, ConstPlatform, Deadline, Platform, Zero};
use crate::raw::{ConstLock, CreateError, RawCancelLock, RawFairLock, RawLock, RawTimedLock};
use states::Step;
use word::{FLAGS, WAITERS};

/// The mutex: see the [module's page](self). 12 bytes.
#[derive(Debug)]
pub struct Mutex<P: Platform, Y: Policy = Outside> {
    owner: P::U32,
    sleepers: WaitList<P>,
    spinners: Osq<P>,
    policy: PhantomData<Y>,
}

/// [`Mutex`] with the policy [`Inside`].
pub type MutexInside<P> = Mutex<P, Inside>;
/// [`Mutex`] with the policy [`NoSpin`].
pub type MutexNone<P> = Mutex<P, NoSpin>;

impl<P: ConstPlatform, Y: Policy> Mutex<P, Y> {
    /// A new, unlocked mutex.
    pub const fn new() -> Self {
        Mutex {
            owner: Zero::ZERO,
            sleepers: WaitList::INIT,
            spinners: Osq::new(),
            policy: PhantomData,
        }
    }
}

impl<P: ConstPlatform, Y: Policy> Default for Mutex<P, Y> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: ConstPlatform, Y: Policy> ConstLock for Mutex<P, Y> {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new mutex, as intended
    const INIT: Self = Mutex::new();
}

impl<P: Platform, Y: Policy> Mutex<P, Y> {
    #[inline(always)]
    fn lock_fast(&self) -> bool {
        // (0; ) -> (me; ). MA: acquire, pairs with MU.
        self.owner
            .compare_exchange(0, word::mine::<P>(), Acquire, Relaxed)
            .inspect(|_| Step::Lock.taken::<P>())
            .is_ok()
    }

    /// Fails where a flag is set.
    #[inline(always)]
    fn unlock_fast(&self) -> bool {
        let seen = self.owner.load(Relaxed);
        crate::check!(!word::is_free(seen), "unlock of a mutex that is free");
        crate::check!(
            word::may_be_mine::<P>(seen),
            "unlock of a mutex by a thread that does not hold it"
        );
        // (me; ) -> (0; ). MU: release, pairs with MA.
        seen & FLAGS == 0
            && self
                .owner
                .compare_exchange(seen, 0, Release, Relaxed)
                .inspect(|_| Step::Unlock.taken::<P>())
                .is_ok()
    }

    #[inline]
    fn lock_within(&self, limit: &Limit<'_, P>) -> Option<()> {
        (self.lock_fast() || self.lock_slow(limit)).then_some(())
    }
}

// SAFETY: an acquisition is an exchange of the owner word from free to owned, or from what was
// given to one sleeper to owned by that sleeper's thread (M2); only the owner's unlock makes it
// free, or gives it away.
unsafe impl<P: Platform, Y: Policy> RawLock for Mutex<P, Y> {
    type Token = ();

    const NAME: &'static str = Y::NAME;

    fn create() -> Result<Self, CreateError> {
        Ok(Mutex {
            owner: P::U32::new(0),
            sleepers: WaitList::new(),
            spinners: Osq::create(),
            policy: PhantomData,
        })
    }

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

    /// Whether somebody sleeps for the mutex, or was woken and is on its way, or spins in the
    /// queue.
    fn is_contended(&self) -> bool {
        self.owner.load(Relaxed) & WAITERS != 0 || self.spinners.is_locked()
    }
}

// SAFETY: as above; a waiter that gives up leaves the list under the guard, or finds the mutex
// given to it.
unsafe impl<P: Platform, Y: Policy> RawTimedLock for Mutex<P, Y> {
    #[inline]
    fn lock_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.lock_within(&Limit::until(deadline))
    }
}

// SAFETY: as above.
unsafe impl<P: Platform, Y: Policy> RawFairLock for Mutex<P, Y> {
    #[inline]
    unsafe fn unlock_fair(&self, (): ()) {
        if !self.unlock_fast() {
            self.unlock_slow(true);
        }
    }
}

// SAFETY: as above.
unsafe impl<P: Platform, Y: Policy> RawCancelLock<P> for Mutex<P, Y> {
    /// A cancellation is looked at when a spin has ended, not during it.
    fn lock_cancellable(&self, cancel: &CancelToken<P>, deadline: Option<Deadline>) -> Option<()> {
        let cancel = Some(cancel);
        self.lock_within(&Limit { deadline, cancel })
    }
}
