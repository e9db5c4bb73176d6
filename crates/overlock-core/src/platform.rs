//! The machine, as the locks see it.
//!
//! A lock asks nothing of the world but through [`Platform`]: its atomics, the only way to spin,
//! the way to sleep and to wake, barriers, clocks, and the number of the running thread. The crate
//! `overlock` implements it for Linux threads, the checkers and the simulator for theirs. A kernel
//! implements it with HLT and a kick hypercall.
//!
//! # The contract of `halt` and `kick`
//!
//! The latch between the two is the *word*, not the call. A waker first changes the word, then
//! calls [`Platform::kick`]. A sleeper names the value that it expects, and [`Platform::halt`]
//! returns at once if the word differs. So a kick before the halt is never lost, and a late kick is
//! harmless. A halt may also return for no reason: every caller rechecks.
//!
//! # In a kernel
//!
//! A slot is a CPU, and [`Platform::slot`] its number. (A kernel whose tasks sleep in the locks of
//! [`sleep`](crate::sleep) gives each task a slot; [`halt`](Platform::halt) and
//! [`kick`](Platform::kick) are then those of its scheduler. Its handlers use the slot of the task
//! that they interrupt.) The crate relies on the following. `overlock-guest` keeps to it on KVM and
//! Xen.
//!
//! ## From lock to unlock
//!
//! From before an attempt until it has failed, or until after the release, the caller stays on its
//! CPU: preemption is off. This holds for readers too, and for each call of the crate that may
//! wait. Queue nodes, grants and read locks belong to the slot: another thread on the same CPU
//! would use them as its own, and the caller would leave them behind on another CPU. (A slot for
//! each task moves with the task. Preemption then costs time only.)
//!
//! ## Contexts
//!
//! A task, a softirq, an interrupt and an NMI may nest on a CPU: these are the [`CONTEXTS`]. Each
//! waits in a node of its own. Some locks keep a node while they are held. A context that finds no
//! node waits without one: slower, correct, and without a panic.
//!
//! - A lock that softirqs acquire is acquired elsewhere with softirqs off; one that interrupt
//!   handlers acquire, with interrupts off. Otherwise a handler waits for the code that it
//!   interrupts, be that the owner or a waiter.
//! - An NMI cannot be held off. So it only tries, and only spinlocks: the release of a lock of
//!   [`sleep`](crate::sleep) may wait for code that the NMI interrupts. The release of a spinlock
//!   in an NMI may kick, and never halts.
//!
//! ```
//! use overlock_core::raw::RawLock;
//! # use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
//! # static INTERRUPTS: AtomicBool = AtomicBool::new(true);
//! # fn interrupts_off() -> bool { INTERRUPTS.swap(false, Relaxed) }
//! # fn restore(were_on: bool) { INTERRUPTS.store(were_on, Relaxed) }
//!
//! /// Runs `section` under a lock that interrupt handlers acquire too.
//! fn with_interrupts_off<L: RawLock, R>(lock: &L, section: impl FnOnce() -> R) -> R {
//!     // Before the wait: a handler must not interrupt a waiter either.
//!     let were_on = interrupts_off();
//!     let token = lock.lock();
//!     let result = section();
//!     // SAFETY: of the acquisition above.
//!     unsafe { lock.unlock(token) };
//!     restore(were_on);
//!     result
//! }
//! ```
//!
//! ## Halt
//!
//! With interrupts off, [`halt`](Platform::halt) may sleep only if a kick ends it all the same, by
//! PV_UNHALT or an event channel, and the deadline too if there is one. Otherwise it returns at
//! once, as always in an NMI. Its caller polls on.
//!
//! A handler may interrupt a halt and halt itself. The halt that it has interrupted then ends,
//! since a kick may have met the handler's.
//!
//! ## Kick
//!
//! A kick needs a CPU, and has an address. [`Tables::slot_of`] gives the slot for a word of a queue
//! node: only its CPU halts there. For all other words the platform keeps the address on which each
//! CPU halts. To publish it, the halting CPU stores it, passes a full fence and rechecks the word.
//! The kicking CPU has changed the word, passes a full fence and then searches.
//!
//! A kick comes from any context, also from one that has interrupted a kick. It takes no lock and
//! does not wait for another CPU. It may come late, for a wait that is over, or for the slot's
//! former owner. So an idle CPU may be kicked for nothing.
//!
//! ## Idle, unplugged, exited
//!
//! A CPU that goes idle has nothing to do: it holds no spinlock, and keeps its slot. A CPU that is
//! unplugged may keep its slot too, for its return. The slot may go to another CPU (or thread) if
//! all of this holds:
//!
//! 1. The former owner holds no lock, is in no call of the crate, and none of its handlers runs any
//!    more.
//! 2. [`Tables::is_idle`] holds, as the former owner checks after that. If not, a guard was
//!    forgotten and nobody gets the slot: a queue may still name its node. The check does not see a
//!    lock that keeps no node while it is held. If such a lock was forgotten, it stays locked.
//! 3. Giving the slot away is a release, and taking it an acquire that pairs with it, as in
//!    [`Bitmap`](crate::node::Bitmap). All use by the former owner then happens before.
//! 4. Until then [`Platform::slots_in_use`] counts the slot, and kicks of its nodes may go to the
//!    former CPU; afterwards, to the new one.
//!
//! Nothing is reset: the next owner goes on with what it finds in the slot.
//!
//! ## Panics
//!
//! The lock paths do not panic for callers and platforms that keep to the contracts, with two kinds
//! of exceptions. A lock refuses more waiters than it has numbers for, which a kernel's number of
//! CPUs rules out. Few locks panic by their interface, as [`Once`](crate::sleep::Once) does; they
//! say so.
//!
//! A lock or table whose memory was overwritten may name a slot or a ticket that does not exist.
//! Its index then panics, instead of an access outside of the table. `results/panics.md` lists all
//! places.

pub(crate) mod atomic;
pub(crate) mod atomics;
pub(crate) mod contexts;
mod lanes;
pub mod slices;
#[cfg(target_has_atomic = "64")]
pub mod spins;
mod time;

use core::sync::atomic::Ordering;

pub use atomic::{Atomic, clear};
pub use atomics::Atomics;
pub use contexts::CONTEXTS;
pub use lanes::{ByteLanes, Lanes};
pub use time::{Deadline, Instant};

use crate::stat::Event;
use crate::tables::Tables;

/// Polls between two clock reads while spinning towards a deadline: a clock read costs about as
/// much as one or two PAUSEs, and a deadline needs no more precision than a microsecond.
const POLLS_PER_CLOCK: u32 = 16;

/// A machine that locks can run on: see the [module's page](self).
///
/// Implementations are zero-sized marker types. A lock names its platform as a type parameter, so
/// every call is static and inlines.
pub trait Platform: Atomics {
    /// Polls `word`, awake, until `done` accepts its value: the only way to spin. `done` is pure.
    ///
    /// Each poll is a load with `order`. `Ok` carries the accepted value, whose load has that
    /// order. `Err` carries the last value once `limit` is used up. At least one poll is made
    /// whatever the limit.
    ///
    /// The default [pauses](Self::pause) between two polls.
    #[inline]
    fn wait_until<T, A>(
        word: &A,
        order: Ordering,
        limit: Spin,
        done: impl Fn(T) -> bool,
    ) -> Result<T, T>
    where
        T: Copy + Eq,
        A: Atomic<T>,
    {
        let mut polls: u32 = 0;
        loop {
            let seen = word.load(order);
            if done(seen) {
                return Ok(seen);
            }
            polls = polls.wrapping_add(1);
            let is_over = match limit {
                Spin::Forever => false,
                Spin::Polls(most) => polls >= most,
                Spin::Until(end) => polls % POLLS_PER_CLOCK == 0 && Self::now() >= end,
            };
            if is_over {
                return Err(seen);
            }
            Self::pause(Pause::Iterations(1));
        }
    }

    /// Keeps the CPU for this time or a little longer, without a load of any word: the only
    /// busy-wait.
    #[inline]
    fn pause(time: Pause) {
        match time {
            Pause::Iterations(iterations) => (0..iterations).for_each(|_| core::hint::spin_loop()),
            Pause::Nanos(nanos) => {
                let start = Self::ticks();
                while Self::ticks().wrapping_sub(start) < nanos {
                    core::hint::spin_loop();
                }
            }
            Pause::Delay(nanos) => {
                let end = Self::now().plus_nanos(nanos);
                while Self::now() < end {
                    core::hint::spin_loop();
                }
            }
        }
    }

    /// Sleeps until kicked on `word`, at the latest until `until`. Returns at once if `word` does
    /// not hold `expected`, and where nothing could end the sleep: see [In a kernel](self#halt).
    /// May return spuriously. Orders nothing.
    ///
    /// Returns false if it has certainly not been kicked: the word had changed, the time was over,
    /// or a signal came. Without [`FutexPlatform`] nobody uses the result.
    fn halt(word: &Self::U32, expected: u32, until: Option<Deadline>) -> bool;

    /// Spins before the caller [halts](Self::halt) on `word`, for as long as the platform finds it
    /// worth it for waits on `object`, an address. Nobody has waited for a new object before.
    /// Returns whether the word has another value than `expected`; may return false at any time.
    /// Orders nothing.
    #[inline]
    fn spin_first(object: usize, is_new: bool, word: &Self::U32, expected: u32) -> bool {
        let _ = (object, is_new);
        word.load(Ordering::Relaxed) != expected
    }

    /// Wakes threads that halted on the word that lies, or lay, at this address: see
    /// [In a kernel](self#kick) for the way from there to their CPUs. Without [`FutexPlatform`]
    /// it is always for [`Kick::One`].
    ///
    /// The caller has changed the word before, and may have let go of it: another object may be in
    /// its place. So this does not access it. A thread that halts there for another reason has a
    /// spurious wake-up.
    fn kick(word: *const Self::U32, whom: Kick);

    /// The CPU that the caller runs on at this moment, or [`Cpu::UNKNOWN`]. Cheap enough for fast
    /// paths.
    fn cpu() -> Cpu;

    /// The priority by which the caller is served before others that wait: 0 for most threads, more
    /// where its scheduling policy has priorities. Less than 2^16. Waiters of equal rank are served
    /// in order.
    #[inline]
    fn rank() -> u32 {
        0
    }

    /// Whether a thread that last ran on `cpu`, and is not the caller, is known to have lost it.
    /// `false` if nothing is known.
    fn preempted(cpu: Cpu) -> bool;

    /// The platform's monotonic clock.
    fn now() -> Instant;

    /// A clock for spinning: nanoseconds from an arbitrary start, within a factor of two. Cheaper
    /// to read than [`now`](Self::now).
    #[inline]
    fn ticks() -> u64 {
        Self::now().as_nanos()
    }

    /// The civil time, which can be set: nanoseconds after 1970. A platform without one uses the
    /// monotonic clock.
    fn wall_clock() -> u64 {
        Self::now().as_nanos()
    }

    /// A clock that the program has put in the place of the platform's, which may run at any rate:
    /// its time in nanoseconds, for [`Deadline::Own`]. A halt until such a time may end early.
    fn own_clock(clock: i32) -> i64 {
        let _ = clock;
        Self::now().as_nanos() as i64
    }

    /// How many CPUs the program may really use, by its affinity and its quota. At least 1.
    fn parallelism() -> u32;

    /// The tables that locks keep for threads and waiters. A platform makes them of a static
    /// [`Storage`](crate::tables::Storage), and need not know their contents.
    fn tables() -> Tables<Self>;

    /// The number of the calling thread until it exits. It is below [`Tables::slots`], or locks
    /// panic. No other living thread has it: see [In a kernel](self#idle-unplugged-exited) for its
    /// next owner. `None` while more threads than slots are alive. Safe to call from a signal
    /// handler.
    fn slot() -> Option<usize>;

    /// Gives the calling thread another slot, whose contexts are free, in place of its own: signal
    /// handlers have jumped out of waits, whose nodes stay in lists for ever. `None` if there is
    /// none, as by default.
    fn another_slot() -> Option<usize> {
        None
    }

    /// How many slots, from the first, are in use: no thread has one beyond. A number above
    /// [`Tables::slots`] means all of them.
    ///
    /// A thread's slot counts from before its first use of it until the thread exits. In the SC
    /// order, let a use by the thread come before an SC operation of the caller, and that before
    /// this call: then the slot is counted, or the thread has exited, and all that it did happens
    /// before the return.
    fn slots_in_use() -> usize {
        Self::tables().slots()
    }

    /// Evaluates the condition of a check for misuse, which only checked builds have. The condition
    /// loads words, and changes nothing. A simulator charges nothing for it, so that its results
    /// are the same in all builds.
    #[inline(always)]
    fn unobserved(condition: impl FnOnce() -> bool) -> bool {
        condition()
    }

    /// Reports that `event` has happened `times` times, whether or not the feature `stat` counts
    /// it. For a simulator, which has counts of its own. Empty elsewhere.
    #[inline(always)]
    fn event(event: Event, times: u64) {
        let _ = (event, times);
    }

    /// Hashes an address to 32 bits, for the place of a lock's entry in a table. A platform whose
    /// results must not depend on where its memory happens to lie has its own.
    #[inline(always)]
    fn spread(address: usize) -> u32 {
        spread(address)
    }
}

/// A [`Platform`] for locks whose waiters sleep at the address of the lock itself, as at a futex.
///
/// Spinlocks, and sleeping locks whose waiters sleep at their queue nodes, do without it. All but
/// the two barriers have a default, which is correct and slower.
pub trait FutexPlatform: Platform {
    /// As [`halt`](Platform::halt) on `word`, and ends as well if `other` differs from its expected
    /// value or is kicked. Returns false if this platform cannot do that: the caller then sleeps on
    /// one of them, for a short time.
    fn halt_either(
        word: (&Self::U32, u32),
        other: (&Self::U32, u32),
        until: Option<Deadline>,
    ) -> bool {
        let _ = (word, other, until);
        false
    }

    /// Moves the thread that halted on `from`, if one did, to `to`: from then on it sleeps there,
    /// with the deadline that it has. Returns false if this platform cannot do that. The caller has
    /// changed `from` before.
    fn requeue(from: &Self::U32, to: &Self::U32) -> bool {
        let _ = (from, to);
        false
    }

    /// Begins a time slice for the caller, which has slept and may spin for a lock now. A hint.
    #[inline(always)]
    fn begin_slice() {}

    /// Gives the CPU to another runnable thread, if the caller's time slice is over. Called by a
    /// thread that spins for a lock, with the present [`ticks`](Platform::ticks). Returns whether
    /// it has yielded. A hint: nobody may rely on it.
    #[inline(always)]
    fn yield_slice(now: u64) -> bool {
        let _ = now;
        false
    }

    /// For how long a thread spins, in [`ticks`](Platform::ticks), before it sleeps for the lock of
    /// this word: about as long as a wake-up takes, less where spins have been in vain lately,
    /// and 0 where nobody else could run meanwhile. A hint.
    fn spin_before_sleep(lock: &Self::U32) -> u64 {
        let _ = lock;
        5_000
    }

    /// Says that a spin for the lock of this word has taken so many [`ticks`](Platform::ticks)
    /// and ended with the lock; or might have taken so many, and ended in vain.
    fn learn_spin(lock: &Self::U32, ticks: u64, acquired: bool) {
        let _ = (lock, ticks, acquired);
    }

    /// Whether the caller keeps others from its CPU for as long as it runs. A hint.
    fn is_realtime() -> bool {
        false
    }

    /// Notes that the thread owns this gate while it waits: an address, whose lowest two bits say
    /// what of the lock there it owns. If a signal handler jumps out of the wait, the platform
    /// [abandons](crate::rw::overlock_rw::abandon) it. The default notes nothing.
    fn begin_gate(gate: usize) {
        let _ = gate;
    }

    /// Whether the thread still owns the gate of its present wait: its handler may have jumped, and
    /// not out of the wait.
    fn owns_gate(gate: usize) -> bool {
        let _ = gate;
        true
    }

    /// Ends the wait as the owner of this gate. Returns whether the thread still owned it.
    fn end_gate(gate: usize) -> bool {
        Self::owns_gate(gate)
    }

    /// Runs `body`. Meanwhile no signal handler of the calling thread runs, which may jump out of
    /// it. The default is for platforms without such handlers.
    fn without_handlers(body: impl FnOnce()) {
        body();
    }

    /// Offers the CPU to the other runnable threads, however much is left of the caller's time
    /// slice. The default [pauses](Platform::pause).
    fn yield_cpu() {
        Self::pause(Pause::Iterations(1));
    }

    /// The cheap half of an asymmetric fence, for the side that runs often. Together with a
    /// [`heavy_barrier`](Self::heavy_barrier) of another thread it orders as two sequentially
    /// consistent fences do. Two light barriers order nothing.
    fn light_barrier();

    /// The expensive half: every other running thread of the process passes a full fence before
    /// this returns.
    fn heavy_barrier();

    /// The number of the socket (NUMA node) that the caller runs on at this moment. 0 where there
    /// is one socket, or where the platform does not know: the default.
    fn socket() -> u32 {
        0
    }
}

/// Fibonacci hashing, the default of [`Platform::spread`]. Multiplying by 2^64 over the golden
/// ratio spreads nearby addresses, and the high half of the product depends on all of their bits.
#[inline(always)]
pub const fn spread(address: usize) -> u32 {
    ((address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// Gives the CPU away for about `nanos` nanoseconds.
pub fn backoff_sleep<P: Platform>(nanos: u64) {
    sleep_until::<P>(P::now().plus_nanos(nanos).into());
}

/// Gives the CPU away until then: a [halt](Platform::halt) that nobody can end. It may end early,
/// with a signal.
pub fn sleep_until<P: Platform>(end: Deadline) {
    let nobody = P::U32::ZERO;
    P::halt(&nobody, 0, Some(end));
}

/// The sleepers that [`Platform::kick`] wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kick {
    /// One thread, if any.
    One,
    /// All.
    All,
}

/// How long [`Platform::pause`] keeps the CPU, and whether the caller waits for other threads.
///
/// `Iterations` and `Nanos` lie between two polls. They tell checkers that to poll again is in vain
/// before another thread has run. A `Delay` ends by itself: what happens meanwhile may as well
/// happen at the next access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// About this many iterations of a spin loop, the unit of published back-offs.
    Iterations(u32),
    /// Nanoseconds of [`Platform::ticks`].
    Nanos(u64),
    /// Nanoseconds of [`Platform::now`], before a caller goes on whatever other threads have done.
    Delay(u64),
}

/// How long [`Platform::wait_until`] may spin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spin {
    /// Until the condition holds.
    Forever,
    /// At most this many polls. A poll takes 10 to 140 cycles, depending on the processor.
    /// Published thresholds are given in polls; new ones should be given in time.
    Polls(u32),
    /// Until the clock passes this instant. The clock is not read at every poll.
    Until(Instant),
}

/// The number of a CPU, as the platform counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu(pub u32);

impl Cpu {
    /// An unknown CPU. [`Platform::preempted`] answers `false` for it.
    pub const UNKNOWN: Cpu = Cpu(u32::MAX);
}
