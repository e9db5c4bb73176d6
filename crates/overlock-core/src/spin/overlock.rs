//! The lock that we recommend: `overlock::SpinLock` is built on it.
//!
//! It takes from the hybrid lock what matters under overcommit (a running thread may take the lock
//! past sleepers, and the sleepers' head has a claim that stops that) and adds three things, each
//! of them a [`Policy`] constant, so that the forms can be measured side by side:
//!
//! 1. **Unlock with a plain store.** Every futex mutex pays a second locked instruction on unlock, only
//!    to learn whether somebody sleeps. Here unlock stores, then loads a counter; the
//!    sleeper looks at the lock for a little longer than a store can stay unseen, and has a timer besides; where it sleeps without one, it
//!    pays for both with a heavy barrier between its announcement and its last look (Dekker's pattern).
//! 2. **Waiting that learns.** How long to spin is learned from what waits take. Where sections are short, each change
//!    of owner costs more than the section, and one thread alone gets more done than several. So the lock counts its
//!    acquisitions, and a thread that waits for a large part of its time compares: what the lock gets done with it and the others
//!    together, and what in a *turn* of 0.5 ms in which the others sleep. Where turns are better, all take turns: one uses the lock,
//!    the others sleep, each until a time it has booked: no kick, no list, no flag, the fast paths only.
//!    Where CPUs are short (a sleeper came late to its wake-up), another runnable
//!    thread helps nobody: then the next sleeper comes by its own timer instead of by a kick, and threads make room
//!    for each other before the operating system takes their CPU away, which it might do in a critical section.
//! 3. **Knowing that the owner is not running** (on in the policy [`Posix`]; with short sections its gain did not show): the locked byte holds the
//!    owner's CPU, and a waiter that runs on this very CPU stops spinning at once; a sleeper that keeps being passed, and finds the owner off its CPU, comes by its timer.
//!
//! # Layout
//!
//! Fields that never overlap, 16 bytes; only `locked` and `done` are on a fast path.
//!
//! | field | who writes it |
//! |---|---|
//! | `locked: u8` | 0 free, 1 to 0xfe held (CPU + 1, 0xfe unknown), 0xff handed to the chosen sleeper |
//! | `kick: u8` | under the guard: what an unlocker has to do: 0 nothing, 1 wake the first sleeper, 2 hand over to the chosen one; and in its top bit, `awake`: a sleeper has been called to a busy lock and is on its way |
//! | `guard: u8` | the guard of what is said to be under it |
//! | `turn: u8` | the thread whose turn has begun last, by its slot modulo 255 |
//! | `sleepers: 2 × u16` | under the guard: the list of sleepers |
//! | `chosen: u16` | under the guard: the sleeper that has asked for the hand-over, from then until it owns the lock or gives up |
//! | `booked: u16` | when the last booked turn begins, in 16384 ns |
//! | `done: u32` | the owner: acquisitions |
//!
//! An unlocker learns of `kick` through an entry of [`Platform::kick_table`], which counts the locks with
//! that address hash whose `kick` is not 0, and the kicks that owners have [deferred](RawLock::kick_after_unlock) until they
//! unlock. It must not look at the lock's own cache line after the release: where
//! another thread waits for that line, the look pulls it back and the line goes to and fro once more
//! (8 % of the throughput with two threads in 65 ns sections). The table's lines change only when
//! threads go to sleep. A foreign count costs one look at `kick`.
//!
//! # States
//!
//! ```text
//!            CAS                        store 0
//!   free ----------> held ----------------------------------> free
//!                     |  kick == 1: the first sleeper is called
//!                     |  kick == 2: free -> handed, by the unlocker itself
//!                     |  a fair unlock: held -> handed, to the one that has asked, or to the first sleeper
//!                     v
//!   a waiter:  spin --> in the list, asleep --(call, or its time is over)--> awake: spins, then is chosen
//!                |            ^                                               |   |
//!                |            +---- first again, kick = 1* <-- not in time ---+   +--> owner
//!                +--> surplus: asleep until its turn --> awake, as above
//! ```
//!
//! \* 0 where it keeps being passed, and finds the owner off its CPU: each unlock would call it in vain. `states.rs` has each arrow.
//!
//! # Invariants
//!
//! - I1: a sleeper that is awake is not in the list.
//! - I2: while the list is not empty, every sleeper has a timer; and `kick` is set, or a sleeper has been called to a busy lock and is on its way, or the
//!   lock is handed over and its taker has not settled, or the latest one came late, or by its timer, or keeps being passed and finds the owner off its CPU.
//! - I3: a sleeper that becomes the owner, or leaves, restores I2 for the rest under the guard.
//! - I4: 0xff in `locked` is written by an unlocker for the chosen sleeper and taken by that one alone: it looks at `chosen` first, and nobody else
//!   is chosen meanwhile.
//! - I5: `kick` is 0 unless the list is not empty or a sleeper has asked for the hand-over; so nobody drops a lock that is still
//!   counted in the kick table.
//! - I6: while `kick` is 2, the chosen one alone changes it, or the unlocker that serves it; but a claim takes the place of one that is awake.
//! - I7: who takes a lock that was handed over takes the guard after that, or has it, before its call returns. So the lock outlives the
//!   guard of the one that handed it over.
//!
//! # Why no wake-up is lost
//!
//! A sleeper that sets `kick` while it does not own the lock (OK) looks at `locked` (OL) before it sleeps. An unlocker stores `locked`
//! (UL), runs the light barrier, and loads the counter and
//! `kick` (UK). If one of the two sees the other's store, the sleeper takes the lock, or the unlocker
//! wakes the first sleeper. Both may miss it only while UL is in the store buffer of the unlocker's CPU: well under a microsecond, for which
//! OL goes on looking (Morrison and Afek, "Temporally Bounding TSO for Fence-Free Asymmetric
//! Synchronization", ASPLOS 2015, build on such bounds). No architecture promises one, so this saves time and proves nothing: what bounds the
//! sleep is I2's timer, after which a sleeper that finds the lock free takes it. Sleeps of claims and those of
//! others on whose behalf `kick` was set have the heavy barrier between OK and OL instead, and then one side does see the other. (A barrier for each
//! episode of sleep would interrupt all CPUs that run the program.)
//!
//! Where `kick` is 1 already, an earlier sleeper has done this, and
//! every unlock after it sees it. An owner that sets `kick` will see it in
//! its own unlock. With neither, or where `kick` is taken back meanwhile, I2's timers bound the sleep.
//!
//! An unlocker that finds the guard held marks it and goes: it may have interrupted the guard's holder. When that one drops the guard it sees the
//! mark, and what was released before it. If the lock is free, it does the unlocker's work; if not, the owner's unlock will, since
//! `kick` stands as it was.
//!
//! # How long a waiter can wait
//!
//! A sleeper in the list tries to get the lock after 16 ms at most, and so does a surplus thread: then it has its turn. A sleeper that
//! has woken asks for the hand-over (`kick == 2`) when it has not got the lock within 2 us, and goes back to the front of
//! the list when no unlock has come while it was awake for that. A sleeper that has failed in this way for 10 ms asks
//! for it even asleep: then the lock is handed to it at the next unlock. So while others pass, the wait is bounded by 26 ms and one
//! critical section for each sleeper that claims before it, plus what the operating system keeps threads off the CPU.
//!
//! # Who touches it last
//!
//! An unlocker does, after the release: it may look at `kick`, take or mark the guard, and look at `locked`. And so does whoever has just given the guard back. So the
//! lock must outlive the calls that use it, as Rust's borrows see to; that another thread has acquired it since does not mean that the last
//! owner's unlock has returned. With the policy [`Posix`], the release is the last access: `release.rs` says how, and what that costs.
//!
//! # Orderings
//!
//! - LA, acquire, at each acquisition pairs with UL, release, at each unlock. A hand-over's exchange
//!   (0 to 0xff) goes on with UL's release sequence, so LA of the chosen sleeper pairs with UL too.
//! - OK, OL against UL, UK: as above, ordered by the two barriers, or by time.
//! - The guard's own acquire and release order everything under it, which is Relaxed.
//! - NS, the release store of a node's `state`, pairs with NA in the sleeper.
//! - `turn`, `booked` and `done` are hints, Relaxed.

mod deferred;
mod fork;
mod gate;
mod layout;
mod learn;
mod policy;
mod queue;
mod rates;
mod release;
mod sleep;
pub(crate) mod states;
#[cfg(test)]
mod tests;
mod turn;
mod wait;
mod wake;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::links::{GuardByte, Links};
use crate::node::NodeId;
use crate::platform::{Atomic, ConstPlatform, Cpu, Instant, Platform, Zero};
use crate::raw::{CreateError, RawCancelLock, RawFairLock, RawLock, RawTimedLock};
use crate::sleep::cancel::CancelToken;
use crate::sleep::wait_list::Limit;

pub(crate) use deferred::Deferred;
pub(crate) use gate::DIAGRAM as GATE_DIAGRAM;
pub(crate) use learn::Learned;
pub use policy::{Exchange, Fixed, Gate, OwnerCpu, Policy, Posix, Recommended, Unlock};
pub(crate) use states::{DIAGRAM, Step};

const FREE: u8 = 0;
/// Held by a thread whose CPU was not recorded.
const HELD: u8 = 0xfe;
const HANDED: u8 = 0xff;

/// Values of `kick`.
const NOTHING: u8 = 0;
const KICK: u8 = 1;
const HAND_OVER: u8 = 2;

/// In `kick` as well: a sleeper has been called to a busy lock, and is on its way.
const AWAKE: u8 = 0x80;

/// How long a turn of a surplus thread is, and how much later than the one before it a sleeper that nobody
/// calls wakes. Ten times a wake-up across CPUs of a virtual machine (50 us), so that a
/// change of owner costs little of it; 32 threads take turns within 16 ms.
const TURN_NS: u64 = 500_000;

/// A lock that was acquired less often than once in this while a sleeper waited has time for another one at once, however late
/// that one may come.
const BUSY_NS: u64 = 5_000;

/// The recommended lock: see the [module's page](self). 16 bytes.
#[derive(Debug)]
#[repr(C)] // for `layout.rs`
pub struct Overlock<P: Platform, Y: Policy = Recommended> {
    locked: P::U8,
    kick: P::U8,
    guard: GuardByte<P>,
    turn: P::U8,
    sleepers: Links<P>,
    chosen: P::U16,
    booked: P::U16,
    done: P::U32,
    policy: PhantomData<Y>,
}

/// [`Overlock`] with the policy [`Exchange`].
pub type OverlockExchange<P> = Overlock<P, Exchange>;
/// [`Overlock`] with the policy [`Posix`].
pub type OverlockPosix<P> = Overlock<P, Posix>;
/// [`Overlock`] with the policy [`Fixed`].
pub type OverlockFixed<P> = Overlock<P, Fixed>;
/// [`Overlock`] with the policy [`OwnerCpu`].
pub type OverlockOwnerCpu<P> = Overlock<P, OwnerCpu>;

/// The entry of the kick table for the lock at this address.
#[inline(always)]
fn kick_entry<P: Platform>(lock: usize) -> &'static P::U32 {
    let table = P::kick_table();
    // The top bits.
    let index = P::spread(lock) >> (32 - table.len().trailing_zeros());
    &table[index as usize % table.len()]
}

impl<P: ConstPlatform, Y: Policy> Overlock<P, Y> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        Overlock {
            locked: Zero::ZERO,
            kick: Zero::ZERO,
            guard: GuardByte::INIT,
            turn: Zero::ZERO,
            sleepers: Links::INIT,
            chosen: Zero::ZERO,
            booked: Zero::ZERO,
            done: Zero::ZERO,
            policy: PhantomData,
        }
    }
}

impl<P: ConstPlatform, Y: Policy> Default for Overlock<P, Y> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, Y: Policy> Overlock<P, Y> {
    /// What `locked` holds while the caller owns the lock.
    #[inline(always)]
    fn owner() -> u8 {
        if Y::OWNER_CPU {
            match P::cpu() {
                Cpu(cpu) if cpu < u32::from(HELD) - 1 => cpu as u8 + 1,
                _ => HELD,
            }
        } else {
            HELD
        }
    }

    /// An attempt without a look at the lock before, for one that expects it to be free; whether the caller owns it now.
    #[inline(always)]
    pub fn seize(&self) -> bool {
        self.take()
    }

    /// How often it was acquired, as far as it counts: those that wait learn from it, and all it says beyond that is for statistics. Wraps.
    #[inline(always)]
    pub fn acquisitions(&self) -> u32 {
        self.done.load(Relaxed)
    }

    /// As [`is_contended`](RawLock::is_contended), or a sleeper has been called to the lock, which was busy, and is on its way.
    #[inline(always)]
    pub fn is_waited_for(&self) -> bool {
        // One branch, for fast paths.
        self.sleepers.head_bits() | u16::from(self.kick.load(Relaxed)) != 0
    }

    /// What an unlocker has to do: one of the values of `kick`.
    fn request(&self) -> u8 {
        self.kick.load(Relaxed) & !AWAKE
    }

    /// The entry of the kick table that this lock's unlockers look at.
    #[inline(always)]
    pub(crate) fn kicks(&self) -> &'static P::U32 {
        kick_entry::<P>(core::ptr::from_ref(self).addr())
    }

    #[inline(always)]
    fn take(&self) -> bool {
        // free -> held. LA: acquire, pairs with UL.
        let taken = self
            .locked
            .compare_exchange(FREE, Self::owner(), Y::ACQUIRE, Relaxed)
            .is_ok();
        if taken {
            Step::Take.taken::<P>();
            self.count();
        }
        taken
    }

    /// The caller has become the owner.
    #[inline(always)]
    fn count(&self) {
        if Y::LEARN {
            // Relaxed, and not a read-modify-write: only owners write it.
            self.done
                .store(self.done.load(Relaxed).wrapping_add(1), Relaxed);
        }
    }
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
            guard: GuardByte::new(),
            turn: P::U8::new(0),
            sleepers: Links::new(),
            chosen: P::U16::new(0),
            booked: P::U16::new(0),
            done: P::U32::new(0),
            policy: PhantomData,
        })
    }

    #[inline]
    fn lock(&self) {
        if !self.take() {
            self.lock_slow(&Limit::NONE, || 0);
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
        match Y::UNLOCK {
            Unlock::StoreThenLook => {
                // held -> free. UL: release, pairs with LA.
                self.locked.store(FREE, Y::RELEASE);
                Step::Release.taken::<P>();
                P::light_barrier();
                // UK
                if kicks.load(Relaxed) != 0 {
                    self.after_unlock();
                }
            }
            Unlock::ExchangeThenLook => {
                // held -> free. UL; SeqCst so that UK comes after it, against OK and OL.
                self.locked.swap(FREE, SeqCst);
                Step::Release.taken::<P>();
                // UK
                if kicks.load(SeqCst) != 0 {
                    self.after_unlock();
                }
            }
            Unlock::LookThenStore => {
                // UK
                if kicks.load(Relaxed) == 0 {
                    self.release();
                } else {
                    self.serve_and_release();
                }
            }
        }
    }

    fn is_locked(&self) -> bool {
        self.locked.load(Relaxed) != FREE
    }

    /// Whether somebody sleeps in the list, or has asked for the hand-over. Others that wait leave no trace: those that spin, have been called
    /// and are on their way, or are surplus.
    fn is_contended(&self) -> bool {
        self.sleepers.first().is_some() || self.request() != NOTHING
    }

    fn kick_after_unlock(&self, waiter: NodeId) -> bool {
        let lock = core::ptr::from_ref(self).addr();
        Self::deferred().is_some_and(|deferred| deferred.keep(lock, waiter))
    }
}

// SAFETY: as above; a waiter that gives up leaves the list, or ends its being chosen, under the guard.
unsafe impl<P: Platform, Y: Policy> RawTimedLock for Overlock<P, Y> {
    #[inline]
    fn lock_until(&self, deadline: Instant) -> Option<()> {
        (self.take() || self.lock_slow(&Limit::until(deadline), || 0)).then_some(())
    }
}

// SAFETY: as above; a hand-over is I4's, by the owner.
unsafe impl<P: Platform, Y: Policy> RawFairLock for Overlock<P, Y> {
    unsafe fn unlock_fair(&self, (): ()) {
        crate::check!(self.is_locked(), "unlock of a lock that is free");
        if self.is_contended() && self.give_away() {
            self.kick_deferred();
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.unlock(()) }
        }
    }

    /// Whoever the caller has still to wake after a broadcast is woken first, even if nobody has the lock then.
    unsafe fn bump(&self, (): ()) {
        self.kick_deferred();
        if self.is_contended() {
            // SAFETY: the caller's promise.
            unsafe { self.unlock_fair(()) };
            self.lock();
        }
    }
}

// SAFETY: as above.
unsafe impl<P: Platform, Y: Policy> RawCancelLock<P> for Overlock<P, Y> {
    fn lock_cancellable(&self, cancel: &CancelToken<P>, deadline: Option<Instant>) -> Option<()> {
        let limit = Limit {
            deadline,
            cancel: Some(cancel),
        };
        (self.take() || self.lock_slow(&limit, || 0)).then_some(())
    }
}
