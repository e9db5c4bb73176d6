//! The reader-writer semaphore: many readers or one writer, whose waiters spin for a while and then
//! sleep.
//!
//! It is the kernel's rwsem as rebuilt in 2019 (Long, Linux 5.3), with three answers to one
//! question: how long does a writer spin on readers, when it cannot see whether all of them run?
//!
//! - [`policy::None`], before 2017: not at all.
//! - [`policy::Counted`]: for a number of polls that starts again whenever the lock's word changes.
//!   It is the subject of the document "locking/rwsem: Enable count-based spinning on reader"
//!   (Long, June 2017).
//! - [`policy::Timed`], what was merged in the end, and the default: for a time that grows with the
//!   number of readers.
//!
//! # Layout
//!
//! `count`, 32 bits:
//!
//! ```text
//!   31     30      8 7   4     3        2         1        0
//! +------+----------+-----+-------+---------+---------+--------+
//! | full | readers  |  0  | woken | handoff | waiters | writer |
//! +------+----------+-----+-------+---------+---------+--------+
//! ```
//!
//! | bits | who writes them, and when |
//! |---|---|
//! | writer | the thread that acquires for writing sets it, and clears it |
//! | waiters | under the wait lock: the list is not empty |
//! | handoff | under the wait lock: only the first of the list may acquire |
//! | woken | under the wait lock: set by a waker that sends the first of the list, a writer, to a free lock; cleared by that writer when it has come |
//! | readers | each reader, coming and going; a waker, for all that it grants a share; for a few instructions also readers that came in vain |
//! | full | the top bit of readers: so many that no more are let in |
//!
//! | field | who writes it, and when |
//! |---|---|
//! | `owner: u32` | the writer, from just after its acquisition to just before its release: its CPU + 1 (0 unknown), shifted by one. Bit 0, *disabled*: set by a spinner that gave up on readers; cleared with the word by the next writer, and by the last reader that leaves (`Timed`) |
//! | `waiters: list` | threads that join, leave or wake, under its wait lock |
//! | `osq` | the queue of spinners |
//! | `Node::info` | the waiter before it joins: what it wants; the waker under the wait lock: it has been granted that |
//! | `Node::lock` | under the wait lock: when the first of the list may request the handoff, in microseconds; 0 until it could not be served for the first time |
//!
//! # States
//!
//! (writer, readers):
//!
//! ```text
//! (0, n)  --read-->       (0, n + 1)
//! (*, n)  --read-->       (*, n + 1)   a writer is inside, or there are waiters: in vain, and it
//!                                      leaves again; or it keeps its share of a free lock that
//!                                      has waiters
//! (*, n)  --leave-->      (*, n - 1)   the last one wakes, unless a writer is inside, or woken
//! (0, 0)  --write-->      (1, 0)
//! (1, 0)  --leave-->      (0, 0)       and wakes, unless a writer is woken already
//! (1, 0)  --downgrade-->  (0, 1)
//! (0, n)  --grant-->      (0, n + r)   r readers of the list
//! ```
//!
//! A waiter, and what it does to the flags:
//!
//! ```text
//! fast path fails --> spins --> owner (alone at the lock; or together with other readers, when it has seen a writer leave)
//!                       |
//!                       v
//!    waiters = 1:  in the list, asleep --a reader, granted by a waker--> owner
//!                    ^  |   |
//!                    |  |   +--its limit--> without the lock, or granted it just now
//!                    |  |
//!                    |  +--a writer, the first: woken = 1--> awake, under the wait lock: woken = 0 --> owner
//!                    |                                          |
//!                    +------ another thread was quicker --------+
//!                         (for 4 ms already: handoff = 1)
//! ```
//!
//! It joins the list at its end. A reader that finds the list empty under the wait lock may own the
//! lock at once. A thread without a node backs off between attempts.
//!
//! `owner`, for spinners: `0 --readers do not leave in time--> disabled --the last one has left-->
//! 0`
//!
//! # Invariants
//!
//! - I1: writer is set only where readers is 0. So a thread that has added itself to readers while
//!   writer was clear owns a share until it takes itself out again.
//! - I2: waiters, handoff and woken change only under the wait lock. While that is free, waiters is
//!   set just where the list is not empty, and the others only with it. Handoff and woken
//!   belong to the first of the list, whichever that is.
//! - I3: while the wait lock is free and the list is not empty, one of three things holds: the lock
//!   is held; or woken is set, and the woken writer is on its way to the wait lock; or the thread
//!   that released the lock is. So a thread that makes the lock free, and sees waiters without
//!   woken, goes to the wait lock and wakes.
//! - I4: readers are granted the lock in three steps: they are selected; all are added to readers
//!   in one exchange; then each is signalled, and kicked. Nobody is signalled before it is added,
//!   so none can leave before it came. Nobody is kicked before it is signalled.
//! - I5: with waiters set, newcomers acquire only a lock that is free, or that they have seen a
//!   writer leave. So readers cannot keep it among themselves: it becomes free, and I3 serves the
//!   first of the list. ([`RwSem::try_read_along`] waives that.)
//! - I6: with handoff set, only the first of the list acquires.
//!
//! # Orderings
//!
//! Every change of `count` is a read-modify-write, so a release sequence never breaks, and an
//! acquire pairs with each release before it.
//!
//! - RA, the acquire of a reader's addition; WA, of a writer's exchange. They pair with RU, the
//!   release of a reader that leaves, and WU, of a writer that leaves or lets readers in.
//! - GA, the acquire in the exchange by which a waker grants, pairs with WU. A granted waiter gets
//!   it through WS of `wait_list`, release, and the acquire load of its own state. The published
//!   lock once lacked an acquire on two paths: where a reader finds the list empty under the wait
//!   lock, and in the waiter's own loop.
//! - Waiters and woken (Relaxed) against the releases: all are in one word. A release may come
//!   before the exchange that sets or clears the flag, which then sees the lock free. Or it comes
//!   after it, and sees the flag. The wait lock orders the list.
//! - `owner` is a hint, Relaxed. A stale one costs a spin that is bounded in time.
//!
//! # Why no wake-up is lost
//!
//! I3, by cases:
//!
//! - A release that leaves the lock free sees waiters, and wakes, or sees woken too.
//! - A reader that came in vain may have hidden the release of the last one. So it too checks for
//!   waiters when it takes itself out.
//! - A waiter that joins finds the lock held by a thread whose release will see waiters, or free: a
//!   writer then tries, a reader is granted.
//! - A woken writer that finds itself bypassed clears woken in an exchange that expects the lock
//!   held.
//! - A waiter that gives up wakes as a release does: the others may have waited for it only.
//!
//! `wait_list` explains the halt of a waiter.
//!
//! # Bounds
//!
//! - The first of the list is bypassed for 4 ms, from the time that it could not be served for the
//!   first time. Then it, or a waker, sets handoff, and the lock is its own at the next release, as
//!   soon as it runs.
//! - A writer with `n` waiters before it waits for at most `n + 1` times 4 ms, a section of each
//!   kind and a wake-up. A reader waits for no longer. Wherever it stands, it comes with the first
//!   that is granted, up to 256 of them.
//! - A waiter spins for [`SPIN_NS`](policy::Policy::SPIN_NS) on writers, and on readers as the
//!   policy says.
//! - 2^23 readers at a time. One more panics in debug builds and with `checked`; else further ones
//!   wait until all have left.
//!
//! # Where this deviates from the published form
//!
//! - 32 bits of count instead of 64, 20 bytes in all.
//! - `count` alone says whether a writer or readers own the lock, not the owner word. In the kernel
//!   the two change while preemption is off; here a thread may lose its CPU in between. And readers
//!   save a store.
//! - A thread is taken to run unless [`Platform::preempted`] knows better of the CPU that it
//!   acquired the lock on. So spinning on a writer is bounded in time too.
//! - A reader that came in vain takes itself out at once, not when it has joined the list: if it
//!   lost its CPU in between, it would keep writers out all the while.
//! - Readers to be woken are selected first and added in one exchange, which fails where a writer
//!   came between. In the kernel one is added, then the rest selected.
//! - The first writer is woken only where the lock is free, else the holder's release will do it.
//!   Woken spares later releases the wake-up until the writer has come. The kernel wakes it at each
//!   release.
//! - The 4 ms count from the time that the first of the list could not be served, not from its
//!   arrival. With 32 threads on 2 CPUs all waiters have waited for longer than that, and each
//!   change of owner would pay a wake-up.
//! - Newcomers barge past waiters as I5 says, in every policy.
//! - `Counted`: a spinning reader gives up on readers, where the document counts polls for both
//!   kinds. Readers keep a reader out only where others wait (I5), and behind those it has to queue
//!   anyway.
//! - `Counted`: the disable bit is ignored while no reader holds the lock. The document heeds it
//!   until a writer comes; but on a free lock there are no readers to spin on, and a spinner takes
//!   it at once.
//!
//! # Limits
//!
//! A thread that releases the lock while others wait goes on to use it. So it must not be freed
//! before all calls have returned, which safe Rust ensures by borrows. It is not for signal
//! handlers that interrupt a thread which uses the same lock: that thread may hold the wait lock. A
//! thread without a queue node backs off and tries again, and others may bypass it without bound.

mod fork;
pub mod policy;
mod queue;
mod spin;
#[cfg(test)]
mod tests;
mod wake;
mod word;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::osq::Osq;
use overlock_core::platform::{Atomic, Deadline, Platform};
use overlock_core::raw::{ConstLock, RawDowngradeRwLock, RawRwLock, RawTimedRwLock};
use overlock_core::sleep::wait_list::{Limit, WaitList};
use policy::{Policy, Timed};
use word::must_queue;

const WRITER: u32 = 1;
const WAITERS: u32 = 1 << 1;
const HANDOFF: u32 = 1 << 2;
const WOKEN: u32 = 1 << 3;
const READER: u32 = 1 << 8;
const FULL: u32 = 1 << 31;
const READERS: u32 = !(READER - 1);
const HELD: u32 = WRITER | READERS;

/// In `owner`: spinning on readers was in vain.
const DISABLED: u32 = 1;

/// The reader-writer semaphore: see the [module's page](self). 20 bytes.
#[derive(Debug)]
pub struct RwSem<P: Platform, Y: Policy = Timed> {
    count: P::U32,
    owner: P::U32,
    waiters: WaitList<P>,
    osq: Osq<P>,
    policy: PhantomData<Y>,
}

/// [`RwSem`] that does not spin on readers.
pub type RwSemNone<P> = RwSem<P, policy::None>;
/// [`RwSem`] that spins on readers for a number of polls.
pub type RwSemCounted<P> = RwSem<P, policy::Counted>;

impl<P: Platform, Y: Policy> Default for RwSem<P, Y> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, Y: Policy> ConstLock for RwSem<P, Y> {
    const INIT: Self = Self::new();
}

impl<P: Platform, Y: Policy> RwSem<P, Y> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        RwSem {
            count: Atomic::ZERO,
            owner: Atomic::ZERO,
            waiters: WaitList::INIT,
            osq: Osq::new(),
            policy: PhantomData,
        }
    }

    #[inline]
    fn read_within(&self, limit: &Limit<'_, P>) -> bool {
        // (w, n) -> (w, n + 1). RA: acquire, pairs with WU. An addition cannot fail, as an
        // exchange can.
        let seen = self.count.fetch_add(READER, Acquire);
        if seen & (WRITER | WAITERS | HANDOFF | FULL) == 0 {
            return true;
        }
        self.read_slow(seen, limit)
    }

    #[inline]
    fn write_within(&self, limit: &Limit<'_, P>) -> bool {
        // (0, 0) -> (1, 0). WA: acquire, pairs with WU and RU.
        let free = self.count.compare_exchange(0, WRITER, Acquire, Relaxed);
        if free.is_ok() {
            self.set_owner();
        }
        free.is_ok() || self.write_slow(limit)
    }

    /// The slow path of a reader, which is still counted in `count`; `seen` is the word before.
    #[cold]
    fn read_slow(&self, seen: u32, limit: &Limit<'_, P>) -> bool {
        if Y::READERS_STEAL && seen & (WRITER | FULL) == 0 && !must_queue(seen) {
            self.on_stolen(seen);
            return true;
        }
        self.leave();
        overlock_core::check!(seen & FULL == 0, "more than 2^23 readers of one lock");
        self.spin_read(limit) || self.sleep_read(limit)
    }

    #[cold]
    fn write_slow(&self, limit: &Limit<'_, P>) -> bool {
        self.spin_write(limit) || self.sleep_write(limit)
    }
}

// SAFETY: I1; writer is set by an exchange that expects it clear and readers 0.
unsafe impl<P: Platform, Y: Policy> RawRwLock for RwSem<P, Y> {
    type Read = ();
    type Write = ();

    const NAME: &'static str = Y::NAME;

    #[inline]
    fn read(&self) {
        self.read_within(&Limit::NONE);
    }

    #[inline]
    fn try_read(&self) -> Option<()> {
        self.take_read().is_ok().then_some(())
    }

    #[inline]
    unsafe fn unlock_read(&self, (): ()) {
        overlock_core::check!(
            self.count.load(Relaxed) & READERS != 0,
            "read unlock of a lock that nobody reads"
        );
        self.leave();
    }

    #[inline]
    fn write(&self) {
        self.write_within(&Limit::NONE);
    }

    #[inline]
    fn try_write(&self) -> Option<()> {
        self.take_write().then_some(())
    }

    #[inline]
    unsafe fn unlock_write(&self, (): ()) {
        self.assert_written();
        self.end_write(0);
    }

    fn is_locked(&self) -> bool {
        self.count.load(Relaxed) & HELD != 0
    }

    fn is_write_locked(&self) -> bool {
        self.count.load(Relaxed) & WRITER != 0
    }

    fn is_contended(&self) -> bool {
        self.count.load(Relaxed) & WAITERS != 0
    }
}

// SAFETY: as above; a waiter that gives up holds nothing.
unsafe impl<P: Platform, Y: Policy> RawTimedRwLock for RwSem<P, Y> {
    fn read_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.read_within(&Limit::until(deadline)).then_some(())
    }

    fn write_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.write_within(&Limit::until(deadline)).then_some(())
    }
}

// SAFETY: writer and the share change in one addition, so no writer comes between.
unsafe impl<P: Platform, Y: Policy> RawDowngradeRwLock for RwSem<P, Y> {
    unsafe fn downgrade(&self, (): ()) {
        self.assert_written();
        self.end_write(READER);
    }
}
