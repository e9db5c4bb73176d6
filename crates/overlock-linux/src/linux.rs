//! Linux threads as a [`Platform`]: a thread is a vCPU, the operating system its hypervisor.
//!
//! | operation | implementation |
//! |---|---|
//! | `halt`, `halt_either`, `kick`, `requeue` | private futexes: [`futex`] |
//! | `begin_slice`, `yield_slice` | `sched_yield`, and its measured cost: [`time_slice`] |
//! | `light_barrier`, `heavy_barrier` | a compiler fence and `membarrier`, or two full fences: [`barrier`] |
//! | `cpu`, `preempted` | rseq: [`rseq`] |
//! | `slot` | a bitmap and a thread-exit hook: [`slot`] |
//! | `rank` | the thread's scheduling policy and priority: [`rank`] |
//! | `now`, `ticks` | `CLOCK_MONOTONIC`, and the time-stamp counter: [`clock`] |
//! | `parallelism` | the affinity mask and the quotas of cgroups: [`quota`] |
//! | `lock_pi`, `unlock_pi` | PI futexes: [`pi`] |

mod asymmetric;
mod barrier;
pub mod calls;
pub mod clock;
mod exit_key;
pub mod extras;
#[cfg(feature = "family")]
mod family;
mod fork;
mod futex;
mod jump;
mod load;
mod mapped;
mod pi;
mod quota;
pub mod rank;
mod rseq;
mod slot;
pub mod spin;
pub mod syscall;
mod time_slice;

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

use overlock_core::platform::Kick;
use overlock_core::tables::{Chunks, Storage, Tables};
use overlock_core::{Atomics, Cpu, Deadline, FutexPlatform, Instant, Platform};

/// For the other crates of overlock. May change at any time.
#[doc(hidden)]
pub mod __private {
    pub use super::exit_key::ExitKey;
    pub use super::futex::sleep;
    pub use super::jump::jump_out;
    pub use super::load::variable;
    pub use super::mapped::{Growing, Mapped, Zeroed};
    pub use super::slot::{FIRST, RESERVED};
    pub use super::{calls, clock, extras, rank, spin, syscall};
    pub use crate::system_call;
}

/// Threads of a Linux process: the platform of every lock of crate overlock.
#[derive(Clone, Copy, Debug)]
pub struct Linux;

/// All zero bytes, so the tables take no space in the file, and only touched pages take memory.
static STORAGE: Storage<Linux, { slot::FIRST }> = Storage::new();

/// The slots beyond, mapped when threads need them.
static CHUNKS: Chunks<Linux> = Chunks::new();

impl Atomics for Linux {
    type U8 = AtomicU8;
    type U16 = AtomicU16;
    type U32 = AtomicU32;
    type U64 = AtomicU64;
    type Usize = AtomicUsize;
}

impl Platform for Linux {
    #[inline]
    fn spin_first(object: usize, is_new: bool, word: &AtomicU32, expected: u32) -> bool {
        spin::spin(object, is_new, |until| {
            spin::until_changed(word, expected, until)
        }) == spin::Spun::Ready
    }

    #[inline]
    fn halt(word: &AtomicU32, expected: u32, until: Option<Deadline>) -> bool {
        futex::wait(word, expected, until)
    }

    fn kick(word: *const AtomicU32, whom: Kick) {
        futex::wake(word, whom);
    }

    #[inline(always)]
    fn cpu() -> Cpu {
        rseq::cpu()
    }

    fn rank() -> u32 {
        rank::rank()
    }

    /// If a thread last ran on the CPU that the caller runs on, it has lost it to the caller.
    #[inline]
    fn preempted(cpu: Cpu) -> bool {
        cpu != Cpu::UNKNOWN && cpu == rseq::cpu()
    }

    #[inline]
    fn now() -> Instant {
        clock::now()
    }

    #[inline(always)]
    fn ticks() -> u64 {
        clock::ticks()
    }

    fn wall_clock() -> u64 {
        clock::wall()
    }

    fn own_clock(clock: i32) -> i64 {
        clock::programs(clock)
    }

    #[inline]
    fn parallelism() -> u32 {
        quota::known()
    }

    #[inline(always)]
    fn tables() -> Tables<Linux> {
        // Miri tracks every byte that a borrow covers: here that is once.
        #[cfg(miri)]
        static TABLES: Tables<Linux> = Tables::new(&STORAGE).with_chunks(&CHUNKS);
        #[cfg(miri)]
        return TABLES;
        #[cfg(not(miri))]
        Tables::new(&STORAGE).with_chunks(&CHUNKS)
    }

    #[inline]
    fn slots_in_use() -> usize {
        slot::in_use()
    }

    #[inline]
    fn slot() -> Option<usize> {
        slot::current()
    }

    fn another_slot() -> Option<usize> {
        slot::another()
    }
}

impl FutexPlatform for Linux {
    fn halt_either(
        word: (&AtomicU32, u32),
        other: (&AtomicU32, u32),
        until: Option<Deadline>,
    ) -> bool {
        futex::wait_either([word, other], until)
    }

    fn requeue(from: &AtomicU32, to: &AtomicU32) -> bool {
        futex::requeue(from, to)
    }

    fn begin_slice() {
        time_slice::begin();
    }

    #[inline(always)]
    fn yield_slice(now: u64) -> bool {
        time_slice::is_over(now) && time_slice::give(now)
    }

    #[inline]
    fn spin_before_sleep(lock: &AtomicU32) -> u64 {
        spin::lock::limit(lock.as_ptr().addr())
    }

    #[inline]
    fn learn_spin(lock: &AtomicU32, ticks: u64, acquired: bool) {
        spin::lock::learn(lock.as_ptr().addr(), ticks, acquired);
    }

    fn is_realtime() -> bool {
        spin::is_realtime()
    }

    fn begin_gate(gate: usize) {
        jump::begin_gate(gate);
    }

    fn owns_gate(gate: usize) -> bool {
        jump::owns_gate(gate)
    }

    fn end_gate(gate: usize) -> bool {
        jump::end_gate(gate)
    }

    fn without_handlers(body: impl FnOnce()) {
        jump::without_handlers(body);
    }

    fn yield_cpu() {
        // A filter may refuse the call: then the caller goes on.
        let _ = extras::ask(time_slice::yield_cpu);
    }

    #[inline(always)]
    fn light_barrier() {
        barrier::light();
    }

    fn heavy_barrier() {
        barrier::heavy();
    }
}
