//! The asymmetric fence: a compiler fence on the frequent side, `membarrier` on the other.
//!
//! `MEMBARRIER_CMD_PRIVATE_EXPEDITED` makes the kernel run a full fence on every CPU that is
//! running a thread of this process. A thread that is not running passed one when it lost its CPU.
//! So when the call returns, each other thread has passed a full fence at some point of its program
//! order since the call: the half of Dekker's pattern that the light side leaves out. If the kernel
//! refuses (before Linux 4.14, or a seccomp filter), both sides are full fences.

use std::sync::atomic::{Ordering, compiler_fence, fence};

use overlock_core::platform::backoff_sleep;

use super::asymmetric::Asymmetric;
use super::futex::Membarrier;
use super::{Linux, extras, futex};

/// On while the light side leaves its fence out and the heavy side runs membarrier.
static EXPEDITED: Asymmetric = Asymmetric::new();

/// Upper bound for a light side's way to the access behind it. The way is some instructions long,
/// and a thread that loses its CPU there passes a fence.
const ON_THE_WAY_NS: u64 = 10_000_000;

#[inline(always)]
pub(super) fn light() {
    if EXPEDITED.is_on() {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

fn expedite() -> bool {
    futex::membarrier(Membarrier::Expedited)
}

/// Registers the process, once, at load.
pub(super) fn register() {
    if futex::membarrier(Membarrier::RegisterExpedited) {
        EXPEDITED.begin();
    }
}

pub(super) fn heavy() {
    // Without extras, the thread that gave them up has passed the last barrier.
    if EXPEDITED.needs_barrier() && extras::ask(expedite_somehow) == Some(false) {
        EXPEDITED.end(|| backoff_sleep::<Linux>(ON_THE_WAY_NS));
    }
    fence(Ordering::SeqCst);
}

/// Runs membarrier; at the second attempt in a child of fork on a kernel that did not pass the
/// registration on. False if a filter was installed since.
fn expedite_somehow() -> bool {
    expedite() || futex::membarrier(Membarrier::RegisterExpedited) && expedite()
}

/// Makes both sides full fences. The system still grants membarrier.
pub(super) fn give_up() {
    EXPEDITED.end(|| {
        if !expedite() {
            backoff_sleep::<Linux>(ON_THE_WAY_NS);
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    /// Store buffering with one light and one heavy side: the two threads never both miss the
    /// other's store. With the heavy barrier taken out this fails within a few thousand rounds on
    /// x86-64.
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
