//! The one door between a lock and the machine.
//!
//! Everything a lock asks of the world goes through [`Platform`]: its atomics, the
//! only way to wait, the way to sleep and to wake, barriers, a clock, and the queue
//! nodes of the running thread. `overlock` implements it for Linux threads, the
//! checkers and the simulator implement it for theirs, and a kernel implements it
//! with HLT and a kick hypercall.
//!
//! # The contract of `halt` and `kick`
//!
//! The latch between the two is the *word*, not the call: a waker first changes the
//! word, then calls [`Platform::kick`]; a sleeper names the value that it expects
//! and [`Platform::halt`] returns at once where the word differs. So a kick that
//! comes before the halt is never lost, a kick that comes late is harmless, and
//! a halt may return for no reason at all: every caller looks again.

pub(crate) mod atomic;
pub(crate) mod atomics;
pub(crate) mod contexts;
mod lanes;
mod time;

use core::sync::atomic::Ordering;

pub use atomic::{Atomic, Zero};
pub use atomics::{Atomics, ConstAtomics};
pub use contexts::CONTEXTS;
pub use lanes::{ByteLanes, Lanes};
pub use time::{Deadline, Instant};

use crate::diagram::Transition;
use crate::tables::Tables;

/// One world that locks can run in: see the [module's page](self).
///
/// Implementations are zero-sized marker types; locks name theirs as a type parameter,
/// so every call is static and inlines.
pub trait Platform: Atomics {
    /// Waits, awake, until `done` accepts what `word` holds. The only way to spin.
    ///
    /// Each look is a load with `order`; `Ok` carries the accepted value and its load
    /// has that order. `Err` carries the last value seen once `limit` is used up;
    /// at least one look is taken whatever the limit.
    fn wait_until<T, A>(
        word: &A,
        order: Ordering,
        limit: Spin,
        done: impl FnMut(T) -> bool,
    ) -> Result<T, T>
    where
        T: Copy + Eq,
        A: Atomic<T>;

    /// Lets about `turns` turns of a spin loop pass without looking at any word:
    /// the delay of back-off locks.
    fn pause(turns: u32);

    /// Keeps the CPU for `nanos` nanoseconds or a little more, by the platform's clock, without
    /// looking at any word. It ends by itself: a loop that waits for what others
    /// do calls [`pause`](Self::pause), by which checkers know that nothing comes of looking again
    /// before another thread has run.
    ///
    /// Returns the moment of its end: what the clock has shown last, from which a caller may go on
    /// to measure.
    fn delay(nanos: u64) -> Instant {
        let mut now = Self::now();
        let end = now.plus_nanos(nanos);
        while now < end {
            Self::pause(1);
            now = Self::now();
        }
        now
    }

    /// Sleeps until kicked on `word`, at the latest until `until`. Returns at once where
    /// `word` does not hold `expected`; may return spuriously. Orders nothing.
    fn halt(word: &Self::U32, expected: u32, until: Option<Deadline>);

    /// Wakes the thread that halted on `word`, if one did. The caller has changed the word
    /// before. `word` may already have been put to another use: the kick is then a
    /// spurious wake-up for whoever halts there.
    fn kick(word: &Self::U32);

    /// As [`halt`](Self::halt), as a sleeper that kicks can tell from others. False where it has
    /// certainly not been kicked: the word had changed, the time was over, a signal came. True
    /// where it may have been.
    ///
    /// The default does not tell sleepers apart, which takes a [`kick_at`](Self::kick_at) that
    /// wakes all for [`Kick::Apart`].
    fn halt_as(sleeper: Sleeper, word: &Self::U32, expected: u32, until: Option<Deadline>) -> bool {
        let _ = sleeper;
        Self::halt(word, expected, until);
        true
    }

    /// As [`halt`](Self::halt), and ends also where `other` does not hold what is expected of it,
    /// or somebody kicks that. The default polls: it sleeps for a millisecond at most.
    fn halt_either(word: (&Self::U32, u32), other: (&Self::U32, u32), until: Option<Deadline>) {
        let soon = Self::now().plus_nanos(1_000_000);
        if other.0.load(Ordering::Relaxed) == other.1 {
            let until = Deadline::earlier::<Self>(until, soon);
            Self::halt(word.0, word.1, Some(until.into()));
        }
    }

    /// Wakes one thread that halted on the word that lies, or lay, at this address, or all of them.
    /// The caller has changed the word before, and may have let go of it: it may be gone, or
    /// something else may be in its place. So this does not touch it. Whoever halts there for
    /// another reason is woken for nothing.
    fn kick_at(word: *const Self::U32, whom: Kick);

    /// The thread that halted on `from`, if one did, sleeps on `to` from now on, as if it had
    /// halted there as a [`Sleeper::Waiter`], with the deadline that it has. False where this
    /// platform cannot do that. The caller has changed `from` before.
    fn requeue(from: &Self::U32, to: &Self::U32) -> bool {
        let _ = (from, to);
        false
    }

    /// Stores 0 into byte 0 of `word`, where byte 0 is 1; else changes nothing. Whether it has
    /// stored. Release.
    ///
    /// It looks and stores without anything in between that another thread could see: by one atomic
    /// operation, as the default, or by a sequence that
    /// [`restart_releases`](Self::restart_releases) of another thread makes begin anew. What others
    /// have changed in byte 0 between the look and the store of such a sequence is lost.
    #[inline(always)]
    fn release(word: &Self::U32) -> bool {
        // A failed exchange would cost as much as the slow unlock's that follows.
        word.byte0_load(Ordering::Relaxed) == 1
            && word.byte0_compare_exchange(1, 0, Ordering::Release).is_ok()
    }

    /// When this returns, no [`release`](Self::release) is between its look and its store that took
    /// its look before the call: each has stored, visibly to the caller, or looks again. Where
    /// a release is one atomic operation there is nothing to do.
    ///
    /// False where it could not be done. Then each [halt](Self::halt_as) that begins from now on
    /// ends by itself after a while, and the caller wakes those that have begun to sleep before.
    fn restart_releases() -> bool {
        true
    }

    /// Whether [restarts](Self::restart_releases) have been rare enough of late for another one. A
    /// hint.
    fn restart_is_affordable() -> bool {
        true
    }

    /// A clock for spinning: nanoseconds from an arbitrary start, within a factor of two, and
    /// cheaper to read than [`now`](Self::now).
    #[inline]
    fn ticks() -> u64 {
        Self::now().as_nanos()
    }

    /// Keeps the CPU for about `nanos` nanoseconds of [`ticks`](Self::ticks), or a little longer,
    /// without looking at any word: the distance between two polls.
    fn spin(nanos: u64) {
        let start = Self::ticks();
        while Self::ticks().wrapping_sub(start) < nanos {
            Self::pause(1);
        }
    }

    /// Told by a thread that spins for a lock, with what [`ticks`](Self::ticks) shows: gives its
    /// CPU to another runnable thread, if its turn on the CPU is over. Whether it has. Nobody
    /// may count on it.
    #[inline(always)]
    fn yield_slice(now: u64) -> bool {
        let _ = now;
        false
    }

    /// Gives the CPU away for about `nanos` nanoseconds: a [`halt`](Self::halt) that nobody can
    /// end.
    fn backoff_sleep(nanos: u64) {
        let nobody = Self::U32::new(0);
        let end = Self::now().plus_nanos(nanos);
        Self::halt(&nobody, 0, Some(end.into()));
    }

    /// The cheap half of an asymmetric fence: between two accesses of the thread that runs
    /// often. Together with a [`heavy_barrier`](Self::heavy_barrier) of another thread
    /// it orders like two sequentially consistent fences; with another light one it
    /// orders nothing.
    fn light_barrier();

    /// The dear half: every other running thread of the process passes a full fence before
    /// this returns.
    fn heavy_barrier();

    /// The CPU that the caller runs on at this moment, or [`Cpu::UNKNOWN`]. Cheap enough for fast
    /// paths.
    fn cpu() -> Cpu;

    /// Whether a thread that last ran on `cpu`, and is not the caller, is known to have lost it.
    /// `false` where nothing is known.
    fn preempted(cpu: Cpu) -> bool;

    /// The platform's monotonic clock.
    fn now() -> Instant;

    /// The civil time, which can be set: nanoseconds after 1970. A platform that has none takes the
    /// monotonic clock for it.
    fn wall_clock() -> u64 {
        Self::now().as_nanos()
    }

    /// How many CPUs the program may really use (affinity and quota taken into account), at least
    /// 1.
    fn parallelism() -> u32;

    /// What the locks keep for the threads and for locks that lie outside of themselves: immortal.
    /// A platform makes it of a [`Storage`](crate::tables::Storage), and need not know what is
    /// inside.
    fn tables() -> Tables<Self>;

    /// The number of the calling thread until it exits: below [`Tables::slots`], and no other living
    /// thread's. `None` while more threads are alive. Safe to call from a signal handler.
    fn slot() -> Option<usize>;

    /// How many slots, from the first, are in use: no thread has one beyond. A thread's own slot counts from before its first use of it until the thread
    /// exits, in the order of sequentially consistent operations: where the look here comes
    /// after such an operation of the caller, and that after one of the thread, the slot is among
    /// them. Where it is not, because the thread has exited, the caller knows of all that the
    /// thread did.
    fn slots_in_use() -> usize {
        Self::tables().slots()
    }

    /// Told by the calling thread that it has just gone along a transition of a lock's state diagram.
    /// For checkers that count what they have executed; elsewhere it is empty.
    #[inline(always)]
    fn transition(transition: Transition) {
        let _ = transition;
    }

    /// Spreads addresses evenly over 32 bits: where in a table a lock's entry lies. A platform
    /// whose results are to be the same wherever its memory happens to lie has its own.
    #[inline(always)]
    fn spread(address: usize) -> u32 {
        spread(address)
    }
}

/// Fibonacci hashing: multiplying by 2^64 over the golden ratio spreads nearby addresses, and the
/// high half of the product depends on all of their bits. What [`Platform::spread`] does unless a
/// platform does otherwise.
#[inline(always)]
pub const fn spread(address: usize) -> u32 {
    ((address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// A [`Platform`] whose atomics can be built in a `const`, so that its locks can be statics.
/// Implemented for every platform that fits.
pub trait ConstPlatform: Platform + ConstAtomics {}

impl<P: Platform + ConstAtomics> ConstPlatform for P {}

/// Whom [`Platform::kick_at`] wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kick {
    /// One thread that halted, or halted [as](Platform::halt_as) a [`Sleeper::Waiter`], if any
    /// sleeps.
    One,
    /// All that sleep, but for those that halted as [`Sleeper::Apart`].
    All,
    /// All that halted as [`Sleeper::Apart`]; where the platform does not tell them from others,
    /// all that sleep.
    Apart,
}

/// As what a thread [halts](Platform::halt_as).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleeper {
    /// One of many, whom [`Kick::One`] and [`Kick::All`] wake.
    Waiter,
    /// One that is not to be woken with the others: [`Kick::Apart`] is for those.
    Apart,
}

/// How long [`Platform::wait_until`] may spin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spin {
    /// Until the condition holds, however long that takes.
    Forever,
    /// At most this many looks at the word. A turn takes 10 to 140 cycles, depending on the
    /// processor: published thresholds are given in turns, new ones should be given in time.
    Polls(u32),
    /// Until the clock passes this instant; looked at now and then, not on every turn.
    Until(Instant),
}

/// A CPU by its number, as the platform counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu(pub u32);

impl Cpu {
    /// A CPU that is not known; [`Platform::preempted`] answers `false` for it.
    pub const UNKNOWN: Cpu = Cpu(u32::MAX);
}
