//! Linux threads as a [`Platform`]: a thread is a vCPU, the operating system its hypervisor.
//!
//! | door | what is behind it |
//! |---|---|
//! | `halt`, `kick` | `FUTEX_WAIT`, `FUTEX_WAKE` (private) |
//! | `wait_until` | loads with PAUSE (or the target's hint) between them |
//! | `light_barrier`, `heavy_barrier` | a compiler fence and `membarrier`, or two full fences: [`barrier`] |
//! | `cpu`, `preempted` | rseq: [`rseq`] |
//! | `slot` | a bitmap and a thread-exit hook: [`slot`] |
//! | `now`, `delay` | `CLOCK_MONOTONIC` |
//! | `looks` | a table of 512 bytes |
//! | `parallelism` | the affinity mask and the quotas of cgroups: [`quota`] |
//! | `lock_pi`, `unlock_pi` | PI futexes: [`pi`] |

mod barrier;
mod exit_key;
mod fork;
mod pi;
mod quota;
mod rseq;
mod slot;

use std::hint;
use std::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed,
};

use overlock_core::lock_hash::Line;
use overlock_core::looks::Looks;
use overlock_core::node::{CONTEXTS, MAX_SLOTS, Slot};
use overlock_core::platform::{Atomic, Kick};
use overlock_core::pool::{QueueTicket, TicketPool};
use overlock_core::waiters::{WaiterLine, WaiterTable};
use overlock_core::{Cpu, Instant, Platform, Spin};
use rustix::thread::futex;

pub use exit_key::ExitKey;

/// Threads of a Linux process: the platform of every lock in this crate.
#[derive(Clone, Copy, Debug)]
pub struct Linux;

/// Threads that have a slot at a time. Miri books every byte that a borrow covers, each time; with the
/// full tables it does little else.
const THREADS: usize = if cfg!(miri) { 64 } else { MAX_SLOTS };

/// All zero bytes, so the table takes no space in the file and only touched pages take memory.
static SLOTS: [Slot<Linux>; THREADS] = [const { Slot::INIT }; THREADS];

/// The most fast queue spinlocks that may live at a time.
const FAST_QUEUES: usize = if cfg!(miri) { 64 } else { 1 << 16 };

/// As [`SLOTS`]: all zero, and a ticket takes memory only once it is used.
static TICKETS: [QueueTicket<Linux>; THREADS * CONTEXTS + 2 * FAST_QUEUES] =
    [const { QueueTicket::INIT }; THREADS * CONTEXTS + 2 * FAST_QUEUES];
static TICKET_POOL: TicketPool<Linux> = TicketPool::INIT;

/// As [`SLOTS`]: all zero. A line for every eight threads.
static WAITER_LINES: [WaiterLine<Linux>; THREADS.div_ceil(8)] =
    [const { WaiterLine::INIT }; THREADS.div_ceil(8)];
static WAITERS: WaiterTable<Linux> = WaiterTable::new(&WAITER_LINES);

/// As [`SLOTS`]: all zero. A line for every thread, as the trait asks.
static LOCK_HASH: [Line<Linux>; THREADS] = [const { Line::INIT }; THREADS];

/// Turns between two looks at the clock while spinning towards a deadline: a clock read costs about as
/// much as one or two PAUSEs, and a deadline needs no more precision than a microsecond.
const TURNS_PER_CLOCK: u32 = 16;

/// Entries of the kick table: 4 KiB, which stay in the first-level cache of whoever unlocks often.
pub const KICK_ENTRIES: usize = 1024;

/// A word with a cache line of its own.
#[repr(align(128))]
struct OwnLine(AtomicU32);

static READER_IDS: OwnLine = OwnLine(AtomicU32::new(0));

/// Starts on a line of its own.
#[derive(Debug)]
#[repr(align(128))]
pub struct KickTable(pub [AtomicU32; KICK_ENTRIES]);

/// Public for unlockers in other languages, who only look: overlock-capi's header.
pub static KICKS: KickTable = KickTable([const { AtomicU32::new(0) }; KICK_ENTRIES]);

static LOOKS: Looks = Looks::new();

impl Platform for Linux {
    type U8 = AtomicU8;
    type U16 = AtomicU16;
    type U32 = AtomicU32;
    type U64 = AtomicU64;
    type Usize = AtomicUsize;

    #[inline]
    fn wait_until<T, A>(
        word: &A,
        order: Ordering,
        limit: Spin,
        mut done: impl FnMut(T) -> bool,
    ) -> Result<T, T>
    where
        T: Copy + Eq,
        A: Atomic<T>,
    {
        let mut turns: u32 = 0;
        loop {
            let seen = word.load(order);
            if done(seen) {
                return Ok(seen);
            }
            turns = turns.wrapping_add(1);
            match limit {
                Spin::Forever => {}
                Spin::Turns(most) => {
                    if turns >= most {
                        return Err(seen);
                    }
                }
                Spin::Until(end) => {
                    if turns.is_multiple_of(TURNS_PER_CLOCK) && Self::now() >= end {
                        return Err(seen);
                    }
                }
            }
            hint::spin_loop();
        }
    }

    #[inline]
    fn pause(turns: u32) {
        for _ in 0..turns {
            hint::spin_loop();
        }
    }

    fn halt(word: &AtomicU32, expected: u32, until: Option<Instant>) {
        let timeout = match until {
            None => None,
            Some(end) => {
                let left = end.nanos_since(Self::now());
                if left == 0 {
                    return;
                }
                Some(futex::Timespec {
                    tv_sec: (left / 1_000_000_000) as i64,
                    tv_nsec: (left % 1_000_000_000) as i64,
                })
            }
        };
        // Every outcome (woken, changed word, signal, time-out) means the same to the caller: look
        // again.
        let _ = futex::wait(word, futex::Flags::PRIVATE, expected, timeout.as_ref());
    }

    fn kick(word: &AtomicU32) {
        // Cannot fail: the word is a valid, aligned address of this process.
        let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
    }

    #[allow(clippy::not_unsafe_ptr_arg_deref)] // the kernel does not
    fn kick_at(word: *const AtomicU32, whom: Kick) {
        let most = match whom {
            Kick::One => 1,
            Kick::All => libc::c_int::MAX,
        };
        let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the kernel looks for sleepers by the address, and does not touch the word. It cannot fail, so `errno` stays.
        // (Not `word.addr()`: Miri looks by what the pointer leads to.)
        unsafe { libc::syscall(libc::SYS_futex, word, operation, most) };
    }

    #[inline(always)]
    fn light_barrier() {
        barrier::light();
    }

    fn heavy_barrier() {
        barrier::heavy();
    }

    #[inline(always)]
    fn cpu() -> Cpu {
        rseq::cpu()
    }

    /// A thread that last ran on the CPU that the caller runs on has lost it to the caller.
    #[inline]
    fn preempted(cpu: Cpu) -> bool {
        cpu != Cpu::UNKNOWN && cpu == rseq::cpu()
    }

    #[inline]
    fn now() -> Instant {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` is valid for the write; CLOCK_MONOTONIC exists on every Linux, so the call
        // cannot fail. The vDSO makes it safe and cheap in signal handlers too.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
        Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    fn parallelism() -> u32 {
        static KNOWN: AtomicU32 = AtomicU32::new(0);
        // Relaxed: the value is all there is, and computing it twice is harmless.
        match KNOWN.load(Relaxed) {
            0 => {
                let cpus = quota::parallelism();
                KNOWN.store(cpus, Relaxed);
                cpus
            }
            cpus => cpus,
        }
    }

    #[inline]
    fn slots() -> &'static [Slot<Linux>] {
        &SLOTS
    }

    #[inline]
    fn slots_in_use() -> usize {
        slot::in_use()
    }

    fn reader_ids() -> &'static AtomicU32 {
        &READER_IDS.0
    }

    #[inline]
    fn kick_table() -> &'static [AtomicU32] {
        &KICKS.0
    }

    #[inline]
    fn looks() -> Option<&'static Looks> {
        Some(&LOOKS)
    }

    #[inline]
    fn slot() -> Option<usize> {
        slot::current()
    }

    #[inline]
    fn tickets() -> &'static [QueueTicket<Linux>] {
        &TICKETS
    }

    #[inline]
    fn ticket_pool() -> &'static TicketPool<Linux> {
        &TICKET_POOL
    }

    #[inline]
    fn waiters() -> &'static WaiterTable<Linux> {
        &WAITERS
    }

    #[inline]
    fn lock_hash() -> &'static [Line<Linux>] {
        &LOCK_HASH
    }
}
