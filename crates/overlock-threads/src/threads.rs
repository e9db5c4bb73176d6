//! Threads as a [`Platform`].

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};
use std::time::Duration;

use overlock_core::platform::Kick;
use overlock_core::tables::{Storage, Tables};
use overlock_core::{Atomics, Cpu, Deadline, FutexPlatform, Instant, Platform};

use super::{address, barrier, clock, slot};

/// Threads of a process, on any system that the standard library has threads on.
///
/// | operation | implementation |
/// |---|---|
/// | `halt`, `kick` | the system's wait on an address: see below |
/// | `light_barrier`, `heavy_barrier` | two full fences; on Windows `FlushProcessWriteBuffers` |
/// | `slot` | a bitmap, and a thread-local value whose destructor gives the slot back |
/// | `now`, `ticks` | [`std::time::Instant`] |
/// | `parallelism` | [`std::thread::available_parallelism`] |
///
/// | system | wait on an address |
/// |---|---|
/// | Windows 8 and later | `WaitOnAddress`, `WakeByAddressSingle`, `WakeByAddressAll` |
/// | macOS 14.4, iOS 17.4 and later | `os_sync_wait_on_address` and its like |
/// | FreeBSD | `_umtx_op` |
/// | OpenBSD | `futex` |
/// | DragonFly | `umtx_sleep`, `umtx_wakeup` |
/// | others, earlier macOS and iOS | a table over the standard library's mutexes |
/// | WebAssembly without atomics | nothing: there is one thread. A wait without a deadline panics |
///
/// In a browser's main thread WebAssembly must not wait: a wait there traps, as one for a lock of
/// the standard library does.
///
/// No system but Linux has priority inheritance behind an interface that these locks could use, so
/// `RtMutex` does not exist here.
#[derive(Clone, Copy, Debug)]
pub struct Threads;

/// All zero bytes, so the tables take no space in the file, and only touched pages take memory.
static STORAGE: Storage<Threads, { slot::SLOTS }> = Storage::new();

/// The system may set the clocks of these deadlines. So a sleep lasts at most so long, and then
/// ends spuriously.
const LONGEST_BY_OTHER_CLOCKS: Duration = Duration::from_secs(1);

/// The time left until then; `None` once it is over.
fn left(until: Deadline) -> Option<Duration> {
    if until.is_over::<Threads>() {
        return None;
    }
    let nanos = until.instant::<Threads>().nanos_since(Threads::now());
    let left = Duration::from_nanos(nanos);
    match until {
        Deadline::Monotonic(_) => Some(left),
        _ => Some(left.min(LONGEST_BY_OTHER_CLOCKS)),
    }
}

impl Atomics for Threads {
    type U8 = AtomicU8;
    type U16 = AtomicU16;
    type U32 = AtomicU32;
    type U64 = AtomicU64;
    type Usize = AtomicUsize;
}

impl Platform for Threads {
    fn halt(word: &AtomicU32, expected: u32, until: Option<Deadline>) -> bool {
        match until.map(left) {
            Some(None) => false,
            limit => address::wait(word, expected, limit.flatten()),
        }
    }

    fn kick(word: *const AtomicU32, whom: Kick) {
        match whom {
            Kick::One => address::wake_one(word),
            Kick::All => address::wake_all(word),
        }
    }

    #[inline(always)]
    fn cpu() -> Cpu {
        Cpu::UNKNOWN
    }

    #[inline(always)]
    fn preempted(_: Cpu) -> bool {
        false
    }

    #[inline]
    fn now() -> Instant {
        clock::now()
    }

    fn wall_clock() -> u64 {
        clock::wall()
    }

    #[inline]
    fn parallelism() -> u32 {
        /// 0 before the first call.
        static KNOWN: AtomicU32 = AtomicU32::new(0);
        // Relaxed: the number is the only data.
        match KNOWN.load(Relaxed) {
            0 => {
                let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u32;
                KNOWN.store(cpus, Relaxed);
                cpus
            }
            cpus => cpus,
        }
    }

    #[inline(always)]
    fn tables() -> Tables<Threads> {
        Tables::new(&STORAGE)
    }

    #[inline]
    fn slot() -> Option<usize> {
        slot::current()
    }

    #[inline]
    fn slots_in_use() -> usize {
        slot::in_use()
    }
}

impl FutexPlatform for Threads {
    /// As the default, and none where nobody else could run meanwhile.
    fn spin_before_sleep(_: &AtomicU32) -> u64 {
        match Threads::parallelism() {
            1 => 0,
            _ => 5_000,
        }
    }

    fn yield_cpu() {
        std::thread::yield_now();
    }

    #[inline(always)]
    fn light_barrier() {
        barrier::light();
    }

    fn heavy_barrier() {
        barrier::heavy();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no civil time")]
    fn a_halt_ends_with_its_deadline() {
        let word = AtomicU32::new(0);
        for deadline in [
            Deadline::from(Threads::now().plus_nanos(3_000_000)),
            Deadline::Wall(Threads::wall_clock() + 3_000_000),
        ] {
            while !deadline.is_over::<Threads>() {
                Threads::halt(&word, 0, Some(deadline));
            }
            assert!(!Threads::halt(&word, 0, Some(deadline)));
        }
    }

    #[test]
    fn a_halt_does_not_begin_if_the_word_differs() {
        Threads::halt(&AtomicU32::new(7), 8, None);
    }
}
