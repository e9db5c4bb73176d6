//! The asymmetric fence: a compiler fence on the side that runs often, `membarrier` on the other.
//!
//! `MEMBARRIER_CMD_PRIVATE_EXPEDITED` makes the kernel run a full fence on every CPU that is
//! running a thread of this process; a thread that is not running passed one when it lost its
//! CPU. So when it returns, each other thread has passed a full fence at some point of its
//! program order since the call: the half of Dekker's pattern that the light side leaves out.
//! Where the kernel refuses (before Linux 4.14, or a seccomp filter), both sides are full fences.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

use rustix::io::Errno;
use rustix::thread::{MembarrierCommand, membarrier};

const UNKNOWN: u8 = 0;
const EXPEDITED: u8 = 1;
const FENCES: u8 = 2;

/// Which form is in use: UNKNOWN until the first use, then one of the two for good.
///
/// The light side omits its fence only where it reads EXPEDITED; the heavy side omits membarrier only
/// where it reads FENCES, after which nobody reads EXPEDITED. So a stale UNKNOWN on either
/// side errs on the safe one, and Relaxed accesses suffice.
static MODE: AtomicU8 = AtomicU8::new(UNKNOWN);

#[inline(always)]
pub(super) fn light() {
    if MODE.load(Relaxed) == EXPEDITED {
        compiler_fence(Ordering::SeqCst);
    } else {
        light_slow();
    }
}

// Not inlined: each unlock would carry the system call behind `decide`.
#[cold]
#[inline(never)]
fn light_slow() {
    decide();
    fence(Ordering::SeqCst);
}

pub(super) fn heavy() {
    if decide() == FENCES {
        return fence(Ordering::SeqCst);
    }
    let mut result = membarrier(MembarrierCommand::PrivateExpedited);
    if result == Err(Errno::PERM) {
        // A child of fork on a kernel that did not pass the registration on.
        result = membarrier(MembarrierCommand::RegisterPrivateExpedited)
            .and_then(|()| membarrier(MembarrierCommand::PrivateExpedited));
    }
    if let Err(error) = result {
        // A filter installed since. Threads that omit their fence are under way, so there is no
        // correct way on.
        eprintln!("overlock: membarrier was granted and is now refused ({error})");
        std::process::abort();
    }
}

/// The mode, registering for membarrier at first use.
fn decide() -> u8 {
    match MODE.load(Relaxed) {
        UNKNOWN => {
            let granted =
                !cfg!(miri) && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
            let mode = if granted { EXPEDITED } else { FENCES };
            // The first answer counts for everybody.
            match MODE.compare_exchange(UNKNOWN, mode, Relaxed, Relaxed) {
                Ok(_) => mode,
                Err(first) => first,
            }
        }
        mode => mode,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// Store buffering with one light and one heavy side: never do both threads miss the other's store.
    /// With the heavy barrier taken out this fails within a few thousand rounds on x86-64.
    #[test]
    fn light_and_heavy_together_order_like_two_full_fences() {
        const ROUNDS: u32 = if cfg!(miri) { 20 } else { 20_000 };
        let [x, y, light_saw, heavy_saw, arrived] = [const { AtomicU32::new(0) }; 5];
        let meet = |times: u32| {
            arrived.fetch_add(1, Ordering::AcqRel);
            while arrived.load(Ordering::Acquire) < times {
                std::hint::spin_loop();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    meet(4 * round - 2);
                    x.store(round, Relaxed);
                    light();
                    light_saw.store(y.load(Relaxed), Relaxed);
                    meet(4 * round);
                }
            });
            for round in 1..=ROUNDS {
                meet(4 * round - 2);
                y.store(round, Relaxed);
                heavy();
                heavy_saw.store(x.load(Relaxed), Relaxed);
                meet(4 * round);
                let saw = [light_saw.load(Relaxed), heavy_saw.load(Relaxed)];
                // The other side may be a round ahead, never behind.
                assert!(
                    saw.iter().any(|&saw| saw >= round),
                    "round {round}: {saw:?}"
                );
            }
        });
    }
}
