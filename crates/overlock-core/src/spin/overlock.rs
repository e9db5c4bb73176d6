//! The lock that we recommend: `overlock::SpinLock` is built on it.
//!
//! It takes from the hybrid lock what matters under overcommit (a running thread may take the lock
//! past sleepers, and the sleepers' head has a claim that stops that) and adds three things, each
//! of them a [`Policy`] constant, so that the forms can be measured side by side:
//!
//! 1. **Unlock with a plain store.** Every futex mutex pays a second locked instruction on unlock, only
//!    to learn whether somebody sleeps. Here unlock stores, then loads a counter; the
//!    sleeper pays for both with a heavy barrier between its announcement and its last look (Dekker's
//!    pattern). One barrier serves all sleepers of an episode: while `kick` is set, or
//!    a chosen sleeper is on its way, newcomers to the queue need none.
//! 2. **Waiting that learns.** How long to spin is learned from what waits take. A thread that spends a
//!    large part of its time waiting is surplus: the others keep the lock busy without it, and
//!    each change of owner costs a cache line transfer, or a wake-up. It goes to sleep for its
//!    *slice*, and the lock stays with those that run: no kick, no flag, the fast paths only. Slices
//!    are 0.5 ms, so the turn goes round. And where chosen sleepers come late, the CPUs
//!    are overcommitted and another runnable thread would help nobody: then, too, the next
//!    sleeper comes by its own timer instead of by a kick.
//! 3. **Knowing that the owner is not running** (off by default: its gain did not show): the locked byte holds the
//!    owner's CPU, and a waiter that runs on this very CPU stops spinning at once.
//!
//! # Layout
//!
//! Seven fields that never overlap, 10 bytes; only `locked` is on a fast path.
//!
//! | field | who writes it |
//! |---|---|
//! | `locked: u8` | 0 free, 1 to 0xfe held (CPU + 1, 0xfe unknown), 0xff handed to the chosen sleeper |
//! | `kick: u8` | under the guard: what an unlocker has to do: 0 nothing, 1 wake the first sleeper, 2 hand over to the chosen one |
//! | `guard: u8` | the guard of the four that follow |
//! | `mode: u8` | under the guard: a chosen sleeper is awake; somebody went to sleep as surplus |
//! | `head`, `tail: u16` | under the guard: the list of sleepers |
//! | `chosen: u16` | under the guard: the sleeper that is awake, meaningful while `mode` says so |
//!
//! An unlocker learns of `kick` through an entry of [`Platform::kick_table`], which counts the locks with
//! that address hash whose `kick` is not 0. It must not look at the lock's own cache line after the release: where
//! another thread waits for that line, the look pulls it back and the line goes to and fro once more
//! (8 % of the throughput with two threads in 65 ns sections). The table's lines change only when
//! threads go to sleep. A foreign count costs one look at `kick`.
//!
//! # States
//!
//! ```text
//!            CAS                        store 0
//!   free ----------> held ----------------------------------> free
//!                     |  kick == 1: the first sleeper is chosen and woken
//!                     |  kick == 2: free -> handed, by the unlocker itself
//!                     v
//!   a waiter:  spin --> queued, asleep --(kick, or its slice is over)--> chosen, awake
//!                ^            ^                                            |   |
//!                |            +---- first again, kick = 1 <-- not in time -+   +--> owner
//! ```
//!
//! # Invariants
//!
//! - I1: at most one sleeper is chosen at a time (AWAKE), and it is not in the list.
//! - I2: while the list is not empty, `kick` is set, or a sleeper is chosen, or every sleeper has a
//!   timer that ends at most a slice after that of the one before it.
//! - I3: a chosen sleeper that becomes the owner, or leaves, restores I2 for the rest under the guard.
//! - I4: 0xff in `locked` is written by an unlocker for the chosen sleeper and taken by that one alone.
//! - I5: `kick` is 0 unless the list is not empty or a sleeper is chosen; so nobody drops a lock that is still
//!   counted in the kick table.
//!
//! # Why no wake-up is lost
//!
//! A sleeper that sets `kick` from 0 while it does not own the lock (OK) runs the heavy barrier and then looks
//! at `locked` (OL). An unlocker stores `locked` (UL), runs the light barrier, and loads the counter and
//! `kick` (UK). One of the two sees the other's store: the sleeper takes the lock, or the unlocker
//! wakes the first sleeper. Where `kick` is set already, an earlier sleeper has done this
//! and the word has stayed set since, so every unlock sees it. An owner that sets `kick` will see it in
//! its own unlock. With neither, I2's timers bound the sleep.
//!
//! # How long a waiter can wait
//!
//! The first sleeper gets the lock when an unlock finds it awake after it has asked for the hand-over
//! (`kick == 2`), which it does when it has not got the lock within its spin limit. A sleeper that
//! has failed for 10 ms asks for it even asleep: then the lock is handed to it at the
//! next unlock. So while others pass, the wait is bounded by the sleepers before it times (a slice and
//! 10 ms) and one critical section, plus what the operating system keeps threads off the CPU.
//!
//! # Orderings
//!
//! - LA, acquire, at each acquisition pairs with UL, release, at each unlock. A hand-over's exchange
//!   (0 to 0xff) goes on with UL's release sequence, so LA of the chosen sleeper pairs with UL too.
//! - OK, OL against UL, UK: as above, ordered by the two barriers.
//! - QA pairs with QR, the guard's; everything under it is Relaxed.
//! - NS, the release store of a node's `state`, pairs with NA in the sleeper.

mod learn;
mod policy;
mod queue;
#[cfg(test)]
mod tests;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::node::{Claim, NodeId};
use crate::platform::{Atomic, ConstPlatform, Cpu, Instant, Platform, Spin, Zero};
use crate::raw::{CreateError, RawLock, RawTimedLock};
use crate::stat::{self, Event, Latency};

pub(crate) use learn::Learned;
pub use policy::{Exchange, Fixed, OwnerCpu, Policy, Recommended};

const FREE: u8 = 0;
/// Held by a thread whose CPU was not recorded.
const HELD: u8 = 0xfe;
const HANDED: u8 = 0xff;

/// Values of `kick`.
const NOTHING: u8 = 0;
const KICK: u8 = 1;
const HAND_OVER: u8 = 2;

/// Values of a sleeper's `Node::state`.
const QUEUED: u32 = 0x6f_0001;
const CHOSEN: u32 = 0x6f_0002;
/// Chosen, and asleep until the lock is handed over.
const CLAIMING: u32 = 0x6f_0003;

/// For how long a surplus thread leaves the lock to the others. Ten times a wake-up across CPUs of a
/// virtual machine (50 us), so that a change of owner costs little of it; 32 threads take
/// turns within 16 ms.
const SLICE_NS: u64 = 500_000;
/// A chosen sleeper that comes later than this has waited for a CPU.
const LATE_NS: u64 = 500_000;
/// For how long a chosen sleeper stays awake for a hand-over.
const HAND_OVER_NS: u64 = 20_000;
/// A sleeper that has failed for so long claims the lock even asleep.
const CLAIM_NS: u64 = 10_000_000;
/// Looks before a waiter reads the clock: 0.1 to 0.8 us, depending on the processor.
const FIRST_TURNS: u32 = 24;
/// Spin limit without learning.
const FIXED_SPIN_NS: u64 = 2_000;
/// Lost races for a free lock after which a waiter stops spinning.
const LOSSES: u32 = 64;
/// Sleep between two attempts of a thread that has no queue node.
const NO_NODE_NAP_NS: u64 = 50_000;

/// The recommended lock: see the [module's page](self). 10 bytes.
#[derive(Debug)]
pub struct Overlock<P: Platform, Y: Policy = Recommended> {
    locked: P::U8,
    kick: P::U8,
    guard: P::U8,
    mode: P::U8,
    head: P::U16,
    tail: P::U16,
    chosen: P::U16,
    policy: PhantomData<Y>,
}

/// [`Overlock`] with the policy [`Exchange`].
pub type OverlockExchange<P> = Overlock<P, Exchange>;
/// [`Overlock`] with the policy [`Fixed`].
pub type OverlockFixed<P> = Overlock<P, Fixed>;
/// [`Overlock`] with the policy [`OwnerCpu`].
pub type OverlockOwnerCpu<P> = Overlock<P, OwnerCpu>;

impl<P: ConstPlatform, Y: Policy> Overlock<P, Y> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        Overlock {
            locked: Zero::ZERO,
            kick: Zero::ZERO,
            guard: Zero::ZERO,
            mode: Zero::ZERO,
            head: Zero::ZERO,
            tail: Zero::ZERO,
            chosen: Zero::ZERO,
            policy: PhantomData,
        }
    }
}

impl<P: ConstPlatform, Y: Policy> Default for Overlock<P, Y> {
    fn default() -> Self {
        Self::new()
    }
}

/// What a sleeper learns of its wake-up.
struct Woken {
    /// It came much later than it was called.
    late: bool,
}

impl<P: Platform, Y: Policy> Overlock<P, Y> {
    /// What `locked` holds while the caller owns the lock.
    #[inline(always)]
    fn owner() -> u8 {
        if Y::OWNER_CPU {
            match P::cpu() {
                Cpu(cpu) if cpu + 1 < u32::from(HELD) => cpu as u8 + 1,
                _ => HELD,
            }
        } else {
            HELD
        }
    }

    /// The entry of the kick table that this lock's unlockers look at.
    #[inline(always)]
    fn kicks(&self) -> &'static P::U32 {
        let table = P::kick_table();
        // Fibonacci hashing: the top bits of the product depend on all of the address.
        let spread = (core::ptr::from_ref(self).addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &table[(spread >> (64 - table.len().trailing_zeros())) as usize % table.len()]
    }

    #[inline(always)]
    fn take(&self) -> bool {
        // free -> held. LA: acquire, pairs with UL.
        self.locked
            .compare_exchange(FREE, Self::owner(), Acquire, Relaxed)
            .is_ok()
    }

    /// Whether the owner recorded in `locked` is known not to run.
    fn owner_lost_its_cpu(locked: u8) -> bool {
        Y::OWNER_CPU && (1..HELD).contains(&locked) && P::preempted(Cpu(u32::from(locked) - 1))
    }

    /// Tries, awake, for as long as `limit` says; a chosen sleeper also takes a hand-over.
    fn spin(&self, limit: Spin, chosen: bool) -> bool {
        for _ in 0..LOSSES {
            let seen = P::wait_until(&self.locked, Relaxed, limit, |locked: u8| {
                locked == FREE || chosen && locked == HANDED || Self::owner_lost_its_cpu(locked)
            });
            match seen {
                Ok(FREE) if self.take() => return true,
                Ok(FREE) => {}
                // handed -> held (I4). LA: acquire, pairs with UL.
                Ok(HANDED) => return self.take_handed(),
                _ => return false,
            }
        }
        false
    }

    fn take_handed(&self) -> bool {
        self.locked
            .compare_exchange(HANDED, Self::owner(), Acquire, Relaxed)
            .is_ok()
    }

    #[cold]
    fn lock_slow(&self, deadline: Option<Instant>) -> bool {
        let learned = if Y::LEARN {
            Learned::<P>::about(core::ptr::from_ref(self).addr())
        } else {
            None
        };
        let surplus = learned.is_some_and(Learned::is_saturated);
        if !surplus && self.spin_first(learned, deadline) {
            stat::count::<P>(Event::PvLockStealing);
            return true;
        }
        if deadline.is_some_and(|deadline| P::now() >= deadline) {
            return false;
        }
        let Some(claim) = Claim::<P>::new() else {
            return self.wait_without_node(deadline);
        };
        let acquired = self.sleep(claim.id(), surplus, deadline);
        if let Some(learned) = learned {
            learned.restart(P::now());
        }
        acquired
    }

    /// What a waiter tries before it sleeps. Most waits are shorter than a few looks, and a clock read is
    /// as long as one: so those are timed only where the wait is a sample.
    fn spin_first(&self, learned: Option<&'static Learned<P>>, deadline: Option<Instant>) -> bool {
        let sample = learned.is_some_and(Learned::counts_a_sample);
        let entered = sample.then(P::now);
        let mut acquired = self.spin(Spin::Turns(FIRST_TURNS), false);
        if !acquired {
            let limit = learned.map_or(FIXED_SPIN_NS, Learned::spin_ns);
            let end = earlier(P::now().plus_nanos(limit), deadline);
            acquired = self.spin(Spin::Until(end), false);
        }
        match learned {
            Some(learned) if !acquired => learned.gave_up(),
            Some(learned) => {
                if let Some(entered) = entered {
                    learned.sample(entered, P::now());
                }
            }
            None => {}
        }
        acquired
    }

    /// Spins and naps in turn: for threads beyond the slots, and for a fifth context.
    #[cold]
    fn wait_without_node(&self, deadline: Option<Instant>) -> bool {
        stat::count::<P>(Event::LockNoNode);
        loop {
            let now = P::now();
            if self.spin(
                Spin::Until(earlier(now.plus_nanos(FIXED_SPIN_NS), deadline)),
                false,
            ) {
                return true;
            }
            if deadline.is_some_and(|deadline| P::now() >= deadline) {
                return false;
            }
            queue::nap::<P>(NO_NODE_NAP_NS);
        }
    }

    /// Joins the sleepers and returns as the owner, or without the lock once `deadline` has passed.
    fn sleep(&self, id: NodeId, surplus: bool, deadline: Option<Instant>) -> bool {
        stat::count::<P>(Event::LockSlowpath);
        let entered = P::now();
        let queue = self.queue();
        let mut due = queue.push_back(id, entered, SLICE_NS);
        let mut announced = false;
        if surplus {
            queue.set_hot();
        } else if self.kick.load(Relaxed) == NOTHING && !queue.someone_is_awake() {
            // OK: to be followed by the heavy barrier and OL.
            queue.set_kick(KICK);
            announced = true;
        }
        drop(queue);
        loop {
            if announced && self.last_look() {
                self.leave(id);
                return true;
            }
            let Some(woken) = self.halt(id, &mut due, deadline) else {
                return false;
            };
            if self.compete(id, &woken, entered, deadline) {
                return true;
            }
            let now = P::now();
            let give_up = deadline.is_some_and(|deadline| now >= deadline);
            let queue = self.queue();
            if self.take_handed() {
                // The unlocker was quicker than our request's end.
                self.settle(&queue, &woken);
                return true;
            }
            queue.set_awake(false);
            if give_up {
                let others = queue.first().is_some();
                // OK, for whoever is first now.
                queue.set_kick(if others { KICK } else { NOTHING });
                drop(queue);
                if others {
                    self.pass_on();
                }
                return false;
            }
            due = now.plus_nanos(SLICE_NS);
            queue.push_front(id, due);
            // OK, for ourselves.
            queue.set_kick(KICK);
            stat::count::<P>(Event::PvWaitAgain);
            announced = true;
        }
    }

    /// After setting `kick`: takes the lock if its owner may have unlocked without seeing that.
    fn last_look(&self) -> bool {
        if Y::PLAIN_STORE {
            P::heavy_barrier();
        }
        // OL: SeqCst for the exchange form of unlock; the heavy barrier orders it otherwise.
        self.locked.load(SeqCst) == FREE && self.take()
    }

    /// After setting `kick` on behalf of others, when leaving: does their unlocker's work if the lock is free.
    fn pass_on(&self) {
        if Y::PLAIN_STORE {
            P::heavy_barrier();
        }
        if self.locked.load(SeqCst) == FREE {
            self.wake_one();
        }
    }

    /// The owner takes itself out of the list, or ends its being chosen.
    fn leave(&self, id: NodeId) {
        let queue = self.queue();
        if id.node::<P>().state.load(Relaxed) == QUEUED {
            queue.unlink(id);
        } else {
            queue.set_awake(false);
        }
        let kick = queue.first().is_some() && !queue.someone_is_awake();
        queue.set_kick(if kick { KICK } else { NOTHING });
    }

    /// Sleeps until chosen, or until the slice is over and nobody else is chosen: then chooses
    /// itself. `None` once `deadline` has passed, out of the list.
    fn halt(&self, id: NodeId, due: &mut Instant, deadline: Option<Instant>) -> Option<Woken> {
        let node = id.node::<P>();
        loop {
            stat::timed::<P, ()>(Latency::TimeBlocked, || {
                P::halt(&node.state, QUEUED, Some(earlier(*due, deadline)));
            });
            // NA: acquire, pairs with NS.
            if node.state.load(Acquire) != QUEUED {
                stat::count::<P>(Event::PvKickWake);
                let called = Instant::from_nanos(node.kicked_at.load(Relaxed));
                return Some(Self::woken(called));
            }
            let now = P::now();
            let give_up = deadline.is_some_and(|deadline| now >= deadline);
            if now < *due && !give_up {
                continue;
            }
            let queue = self.queue();
            if node.state.load(Relaxed) != QUEUED {
                continue;
            }
            if give_up {
                queue.unlink(id);
                if queue.first().is_none() && !queue.someone_is_awake() {
                    queue.set_kick(NOTHING);
                }
                return None;
            }
            if queue.someone_is_awake() {
                *due = now.plus_nanos(SLICE_NS);
                continue;
            }
            queue.unlink(id);
            self.choose(&queue, id);
            return Some(Self::woken(*due));
        }
    }

    fn woken(called: Instant) -> Woken {
        Woken {
            late: Y::LEARN && P::now().nanos_since(called) > LATE_NS,
        }
    }

    /// Makes `id`, which is out of the list, the chosen sleeper.
    fn choose(&self, queue: &queue::Queue<'_, P, Y>, id: NodeId) {
        let node = id.node::<P>();
        queue.set_awake(true);
        self.chosen.store(id.bits(), Relaxed);
        queue.set_kick(NOTHING);
        node.kicked_at.store(P::now().as_nanos(), Relaxed);
        // NS: release, pairs with NA.
        node.state.store(CHOSEN, Release);
    }

    /// The chosen sleeper tries to become the owner, with more and more weight.
    fn compete(
        &self,
        id: NodeId,
        woken: &Woken,
        entered: Instant,
        deadline: Option<Instant>,
    ) -> bool {
        let now = P::now();
        let soon = earlier(now.plus_nanos(FIXED_SPIN_NS), deadline);
        let mut acquired = self.spin(Spin::Until(soon), true);
        if !acquired {
            stat::count::<P>(Event::PvWaitHead);
            let queue = self.queue();
            // OK: the unlocker that sees this hands over.
            queue.set_kick(HAND_OVER);
            let firm = now.nanos_since(entered) > CLAIM_NS;
            if firm {
                id.node::<P>().state.store(CLAIMING, Relaxed);
            }
            drop(queue);
            acquired = if firm {
                self.claim(id, deadline)
            } else {
                let end = P::now().plus_nanos(HAND_OVER_NS);
                self.spin(Spin::Until(earlier(end, deadline)), true)
            };
        }
        if acquired {
            let queue = self.queue();
            self.settle(&queue, woken);
        }
        acquired
    }

    /// Waits asleep for the hand-over; returns without the lock once `deadline` has passed.
    #[cold]
    fn claim(&self, id: NodeId, deadline: Option<Instant>) -> bool {
        let node = id.node::<P>();
        let mut acquired = self.last_look();
        while !acquired {
            P::halt(&node.state, CLAIMING, deadline);
            // NA: acquire, pairs with NS.
            acquired = node.state.load(Acquire) == CHOSEN && self.take_handed();
            if deadline.is_some_and(|deadline| P::now() >= deadline) {
                break;
            }
        }
        acquired
    }

    /// The chosen sleeper is the owner now: says what its unlock has to do for the others (I3).
    fn settle(&self, queue: &queue::Queue<'_, P, Y>, woken: &Woken) {
        queue.set_awake(false);
        // Where a thread went to sleep as surplus, or where CPUs are short, the others come by
        // their timers.
        let leave_alone = queue.take_hot() | woken.late;
        let kick = queue.first().is_some() && !(Y::LEARN && leave_alone);
        // No barrier: this thread owns the lock and its own unlock sees it.
        queue.set_kick(if kick { KICK } else { NOTHING });
    }

    /// What an unlocker does where `kick` may be set (another lock may share the entry): after the release, so never inside the section.
    #[cold]
    fn wake_one(&self) {
        // A stale look is as good: the announcer of a later `kick` looks at the lock itself.
        if self.kick.load(Relaxed) == NOTHING {
            return;
        }
        let queue = self.queue();
        match self.kick.load(Relaxed) {
            KICK => match queue.first() {
                Some(first) => {
                    queue.unlink(first);
                    self.choose(&queue, first);
                    drop(queue);
                    self.kick_node(first);
                }
                None => queue.set_kick(NOTHING),
            },
            HAND_OVER if queue.someone_is_awake() => {
                // free -> handed (I4). Release: goes on with UL's sequence for LA; where it fails, the
                // next unlock tries again.
                if self
                    .locked
                    .compare_exchange(FREE, HANDED, Release, Relaxed)
                    .is_err()
                {
                    return;
                }
                queue.set_kick(NOTHING);
                let Some(chosen) = NodeId::from_bits(self.chosen.load(Relaxed)) else {
                    return;
                };
                let state = &chosen.node::<P>().state;
                if state.load(Relaxed) == CLAIMING {
                    // NS: release, pairs with NA.
                    state.store(CHOSEN, Release);
                    drop(queue);
                    self.kick_node(chosen);
                }
            }
            _ => {}
        }
    }

    fn kick_node(&self, id: NodeId) {
        stat::count::<P>(Event::PvKickUnlock);
        stat::timed::<P, ()>(Latency::PvLatencyKick, || P::kick(&id.node::<P>().state));
    }
}

/// The earlier of a limit and a deadline, where there is one.
fn earlier(limit: Instant, deadline: Option<Instant>) -> Instant {
    deadline.map_or(limit, |deadline| limit.min(deadline))
}

// SAFETY: an acquisition is a compare-exchange of `locked` from free to held, or from handed to held
// by the one chosen sleeper (I1, I4); only the owner's unlock makes it free.
unsafe impl<P: Platform, Y: Policy> RawLock for Overlock<P, Y> {
    type Token = ();

    const NAME: &'static str = Y::NAME;

    fn create() -> Result<Self, CreateError> {
        Ok(Overlock {
            locked: P::U8::new(FREE),
            kick: P::U8::new(NOTHING),
            guard: P::U8::new(0),
            mode: P::U8::new(0),
            head: P::U16::new(0),
            tail: P::U16::new(0),
            chosen: P::U16::new(0),
            policy: PhantomData,
        })
    }

    #[inline]
    fn lock(&self) {
        if !self.take() {
            self.lock_slow(None);
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        (self.locked.load(Relaxed) == FREE && self.take()).then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        crate::check!(self.is_locked(), "unlock of a lock that is free");
        let kicks = self.kicks();
        if Y::PLAIN_STORE {
            // held -> free. UL: release, pairs with LA.
            self.locked.store(FREE, Release);
            P::light_barrier();
            // UK
            if kicks.load(Relaxed) != 0 {
                self.wake_one();
            }
        } else {
            // held -> free. UL; SeqCst so that UK comes after it, against OK and OL.
            self.locked.swap(FREE, SeqCst);
            // UK
            if kicks.load(SeqCst) != 0 {
                self.wake_one();
            }
        }
    }

    fn is_locked(&self) -> bool {
        self.locked.load(Relaxed) != FREE
    }

    /// Whether somebody sleeps, or is waking up, for the lock. Those that spin leave no trace.
    fn is_contended(&self) -> bool {
        self.head.load(Relaxed) != 0 || self.mode.load(Relaxed) & queue::AWAKE != 0
    }
}

// SAFETY: as above; a waiter that gives up leaves the list, or ends its being chosen, under the guard.
unsafe impl<P: Platform, Y: Policy> RawTimedLock for Overlock<P, Y> {
    #[inline]
    fn lock_until(&self, deadline: Instant) -> Option<()> {
        (self.take() || self.lock_slow(Some(deadline))).then_some(())
    }
}
