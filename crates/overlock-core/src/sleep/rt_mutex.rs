//! A mutex with priority inheritance: while a thread waits for it, the owner runs with at least
//! that thread's priority.
//!
//! Without that, a thread of medium priority can keep an owner of low priority from running, and
//! with it a thread of high priority that waits for the lock. This priority inversion lasts as long
//! as the thread in the middle runs. Only the operating system can raise a priority, so the slow
//! path is the kernel's: its rtmutex behind a PI futex, with a tree of waiters by priority, and
//! chains of owners that wait for owners. Platforms that have this implement [`PiPlatform`].
//!
//! The lock is for threads with real-time priorities. Each release with waiters hands off to the
//! first of them, asleep or not, so under overcommit it is slow. And a waiter does not spin, since
//! a spinner of high priority would keep the owner from the CPU that it needs. Other programs
//! should take another lock.
//!
//! # Layout and states
//!
//! One word, laid out by the kernel: bits 0 to 29 are the owner's thread id (0: free), bit 30 says
//! that the owner died, bit 31 that the kernel knows of waiters.
//!
//! ```text
//!          CAS                     CAS
//!   0 -----------> owner ----------------------> 0
//!                    |
//!                    | lock_pi, the kernel: + WAITERS
//!                    v
//!             owner | WAITERS ----- unlock_pi ------> next owner | WAITERS   (the kernel's choice: the highest
//!                    |                                                        priority, then first come)
//!                    |        ----- unlock_pi ------> 0   (the waiters have given up)
//!                    |
//!                    | the owner's thread ends
//!                    v
//!             a waiter | WAITERS | OWNER_DIED         for ever: nobody gets the lock any more
//!
//!   a thread of the parent -------- unlock ----> 0    after fork(): its copy in the child has its lock
//!
//! a waiter that the kernel sends back without the lock: backs off, attempts a CAS, and goes to the kernel again;
//! or gives up at its deadline
//! ```
//!
//! # Invariants
//!
//! - I1: the word goes from 0 to an id by the exchange of that thread, or by the kernel in its
//!   `lock_pi`.
//! - I2: it loses an id by the exchange of that thread in its unlock, or by the kernel: in
//!   `unlock_pi` of that thread, or because the thread has ended.
//! - I3: a thread that receives the lock because its owner has ended does not enter. The owner may
//!   have leaked its guard, and then another thread may still use what the lock protects. The bit
//!   OWNER_DIED says so, and it stays: nobody unlocks such a lock.
//! - I4: WAITERS is set by the kernel before a waiter sleeps, and while it is set both exchanges
//!   fail.
//!
//! # Orderings
//!
//! - RU, the release exchange to 0 and [`PiPlatform::unlock_pi`], pairs with RA, the acquire
//!   exchange from 0 and [`PiPlatform::lock_pi`]. The trait requires its two functions to order
//!   like that, among themselves and with the exchanges.
//!
//! # Why no wake-up is lost
//!
//! The waiter's side is one step for the kernel: it sets WAITERS with a compare-exchange on the
//! word that it has just read, in the same critical section that enters the waiter. An unlocker's
//! exchange may come before that; then the kernel's fails and finds a free lock. Or the unlocker's
//! fails, and it goes to the kernel. No code here sleeps for a lock: the back-off between two
//! attempts has a timer.
//!
//! # Misuse
//!
//! A thread may lock what it holds, close a cycle of threads that wait for each other, or wait for
//! an owner that has ended without unlocking. Each panics where misuse is checked. Otherwise the
//! thread waits; a cycle is broken once a thread in it reaches its deadline. With a deadline each
//! of these just passes the time. Unlocking a lock that the thread does not hold panics where
//! misuse is checked, and otherwise does nothing.
//!
//! # Fork
//!
//! A child's thread has another id than the parent's thread that it is a copy of. It can unlock
//! what that thread held. Before that, threads that the child makes wait for the parent's thread.
//! Locks that other threads of the parent held stay locked, as always.
//!
//! # Where this deviates from the published form
//!
//! - The kernel's rtmutex lets a woken waiter, or a newcomer of higher priority, take the free
//!   lock. A PI futex hands off, since the word must name an owner whenever there are waiters.
//! - Its word is the owner's id, not a pointer, and bit 31 plays the part of the pointer's bit 0.

#[cfg(test)]
mod tests;

use core::fmt::Debug;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Atomic, Deadline, Platform, backoff_sleep};
use crate::raw::{ConstLock, RawLock, RawTimedLock};
use crate::stat::{self, Event};

/// Bits of the word that name its owner. An id of 0 means that the lock is free.
pub const THREAD_ID: u32 = (1 << 30) - 1;
/// The kernel's flag: the owner has ended while it held the lock.
pub const OWNER_DIED: u32 = 1 << 30;
/// The kernel's flag: a thread sleeps for the lock.
pub const WAITERS: u32 = 1 << 31;

/// The back-off of a waiter that the kernel has sent back.
const BACKOFF_SLEEP_NS: u64 = 500_000;

/// A platform whose kernel has priority inheritance: Linux with its PI futexes.
///
/// The word is the kernel's as much as the lock's; its layout is [`THREAD_ID`], [`OWNER_DIED`],
/// [`WAITERS`].
pub trait PiPlatform: Platform {
    /// The calling thread's id, as the word holds it: 1 to [`THREAD_ID`], the same while the thread
    /// lives, and no other thread's meanwhile.
    fn thread_id() -> u32;

    /// Makes the calling thread the owner: at once where the word is 0, otherwise after a sleep,
    /// which ends at `until` at the latest. While it sleeps, the owner has at least its priority.
    /// Acquires like a load that sees the release before it.
    ///
    /// # Errors
    ///
    /// The thread is not the owner then, and does not wait any more.
    fn lock_pi(word: &Self::U32, until: Option<Deadline>) -> Result<(), PiError>;

    /// Hands off to the first waiter, or sets the word to 0 where there is none. The caller is the
    /// owner. Releases like a store that the next acquisition sees.
    fn unlock_pi(word: &Self::U32);

    /// Whether the calling thread may have had the id `id` before its process was forked from
    /// another one.
    fn was_before_fork(id: u32) -> bool;
}

/// Why a thread did not become the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PiError {
    /// The deadline has passed.
    Deadline,
    /// The calling thread is the owner already, or the owner waits, maybe through others, for the
    /// calling thread.
    Deadlock,
    /// The word names a thread that does not exist.
    OwnerDied,
    /// The kernel cannot help now, or cannot at all.
    Unavailable,
}

/// The mutex with priority inheritance: see the [module's page](self). 4 bytes.
#[derive(Debug)]
pub struct RtMutex<P: PiPlatform> {
    word: P::U32,
}

impl<P: PiPlatform> Default for RtMutex<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: PiPlatform> ConstLock for RtMutex<P> {
    const INIT: Self = Self::new();
}

impl<P: PiPlatform> RtMutex<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        RtMutex { word: Atomic::ZERO }
    }

    #[inline(always)]
    fn take(&self) -> bool {
        // 0 -> id. RA: acquire, pairs with RU.
        self.word
            .compare_exchange(0, P::thread_id(), Acquire, Relaxed)
            .is_ok()
    }

    /// Acquires by way of the kernel. Returns whether it succeeded: always, without a deadline.
    #[cold]
    fn lock_slow(&self, deadline: Option<Deadline>) -> bool {
        stat::count::<P>(Event::LockSlowpath);
        loop {
            // 0 -> id, or id' -> id' | WAITERS and later -> id | WAITERS, by the kernel. RA.
            let problem = match P::lock_pi(&self.word, deadline) {
                Ok(()) => match self.word.load(Relaxed) & OWNER_DIED {
                    0 => return true,
                    _ => PiError::OwnerDied, // I3,
                },
                Err(PiError::Deadline) => return false,
                Err(problem) => problem,
            };
            match deadline {
                None => self.complain(problem),
                Some(end) if end.is_over::<P>() => return false,
                Some(_) => {}
            }
            // Without priorities from the kernel this is all there is: a slow lock, but a lock.
            backoff_sleep::<P>(deadline.map_or(BACKOFF_SLEEP_NS, |end| {
                end.nanos_left::<P>().min(BACKOFF_SLEEP_NS)
            }));
            if self.take() {
                return true;
            }
        }
    }

    /// Panics if `problem` is misuse, where misuse is checked.
    fn complain(&self, problem: PiError) {
        let word = self.word.load(Relaxed);
        let mine = word & THREAD_ID == P::thread_id();
        crate::check!(
            problem != PiError::OwnerDied && word & OWNER_DIED == 0,
            "the owner of an rt_mutex has ended without unlocking it"
        );
        crate::check!(
            problem != PiError::Deadlock || !mine,
            "a thread locks an rt_mutex that it holds"
        );
        crate::check!(
            problem != PiError::Deadlock,
            "threads wait for each other's rt_mutexes in a cycle"
        );
    }

    #[cold]
    fn unlock_slow(&self) {
        let owner = self.word.load(Relaxed) & THREAD_ID;
        if owner == P::thread_id() {
            stat::count::<P>(Event::PvKickUnlock);
            // id | WAITERS -> id' | WAITERS, or 0, by the kernel. RU.
            P::unlock_pi(&self.word);
        } else if owner != 0 && P::was_before_fork(owner) {
            // * -> 0. The lock is a copy of one that this thread held under its former id. RU:
            // release, pairs with RA.
            self.word.store(0, Release);
        } else {
            crate::check!(
                false,
                "unlock of an rt_mutex that another thread holds, or nobody"
            );
        }
    }
}

// SAFETY: I1 and I2: from the time that the word holds a thread's id until that thread unlocks, the
// word holds it, and nobody else gets a token. If the thread ends before, nobody gets one again:
// a waiter by I3; others since the word is never 0.
unsafe impl<P: PiPlatform> RawLock for RtMutex<P> {
    type Token = ();

    const NAME: &'static str = "rt_mutex";

    #[inline]
    fn lock(&self) {
        if !self.take() {
            self.lock_slow(None);
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        (self.word.load(Relaxed) == 0 && self.take()).then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // id -> 0. RU: release, pairs with RA.
        let released = self
            .word
            .compare_exchange(P::thread_id(), 0, Release, Relaxed);
        if released.is_err() {
            self.unlock_slow();
        }
    }

    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) != 0
    }

    /// Whether the kernel has, or had, waiters to hand off to.
    fn is_contended(&self) -> bool {
        self.word.load(Relaxed) & WAITERS != 0
    }
}

// SAFETY: as above; a waiter that gives up has left the kernel's list, and does not hold the lock.
unsafe impl<P: PiPlatform> RawTimedLock for RtMutex<P> {
    #[inline]
    fn lock_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        (self.take() || self.lock_slow(Some(deadline.into()))).then_some(())
    }
}
