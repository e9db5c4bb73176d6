//! The hybrid lock: a paravirtual queued lock in queued mode, an unfair lock in unfair mode, chosen
//! by each waiter for itself.
//!
//! The subject of the document "locking/pvqspinlock: Implement hybrid PV queued/unfair locks"
//! (Long, 2017). A newcomer goes into unfair mode where waiters are queued but pending is clear:
//! the head of the queue sleeps (or has not begun to spin), so the lock would stand idle until it
//! runs. As soon as the head spins it sets pending, and newcomers and threads in unfair mode join
//! the queue. While all waiters have CPUs the lock is fair; the more of them sleep, the more unfair
//! it is. A head that runs is not bypassed for long.
//!
//! All but the stealing is shared with [`pv_queued`](super::pv_queued): [`pv`] has
//! the layout, the states, the invariants, the orderings, and why no wake-up is lost.
//!
//! # What a newcomer does
//!
//! (tail, pending, locked):
//!
//! ```text
//!               .------------------------------ unfair mode: (n, 0, locked), spin
//!               v                                  ^
//! fast path fails --> (*, 0, 0)  --> exchange --lost: (n, 0, *)
//!               |                       |     `-lost: (0, *, *), (*, 1, *) --> queue
//!               |                      won --> stolen
//!               '---> (0, *, locked), (*, 1, *) --> queued mode: join the queue
//! ```
//!
//! With [`Short`] a newcomer also joins the queue once it has been in unfair mode for too long.
//!
//! # Bounds
//!
//! While the head spins, pending keeps newcomers from stealing: at most those that loaded the word
//! before it was set take the lock before the head does. While it sleeps, wakes up, or has lost its
//! CPU between waking and setting pending, any number may. If it loses its CPU with pending set,
//! no thread steals, and newcomers queue and sleep until it runs again.

use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;

use super::pv::{self, Form, PvLock};
use super::queued::{LOCKED_BYTE, PENDING_BYTE};
use overlock_core::facts::{Facts, HasFacts};
use overlock_core::platform::{Platform, Spin};

/// The hybrid lock: see the [module's page](self). 4 bytes.
pub type Hybrid<P> = PvLock<P, Published>;

/// The hybrid lock with constants for threads: see [`Short`].
pub type HybridShort<P> = PvLock<P, Short>;

/// The published form: unfair mode without a limit.
#[derive(Clone, Copy, Debug)]
pub struct Published;

impl Form for Published {
    const NAME: &'static str = "hybrid";
    const UNFAIR: Option<Spin> = Some(Spin::Forever);
}

/// The form for threads: the spin budget is about the length of a wake-up, in unfair mode too.
///
/// A hypervisor sees a vCPU spin (each PAUSE in a tight loop counts) and gives its CPU to another
/// one; the operating system lets a thread spin until its time slice ends. So a thread in unfair
/// mode keeps the owner that it waits for from running. `results/locks/hybrid.md` has what that
/// costs.
#[derive(Clone, Copy, Debug)]
pub struct Short;

impl Form for Short {
    const NAME: &'static str = "hybrid_short";
    const UNFAIR: Option<Spin> = Some(Spin::Polls(1 << 10));
    const POLLS: u32 = 1 << 10;
    const ENTER_AGAIN: bool = true;
}

/// Whether a newcomer goes into queued mode: nobody is queued, or the head spins.
fn is_queued_mode(word: u32) -> bool {
    word & PENDING_BYTE != 0 || word & !LOCKED_BYTE == 0
}

/// Attempts as long as unfair mode lasts, within the limit. Returns whether it stole the lock.
///
/// `unfair` bounds the polls of all attempts together, so the waits count them. With the whole
/// limit after each attempt, a newcomer could lose every race and never join the queue.
pub(super) fn steal<P: Platform>(word: &P::U32, unfair: Spin) -> bool {
    let polls = Cell::new(0);
    loop {
        let limit = match unfair {
            Spin::Polls(most) => Spin::Polls(most.saturating_sub(polls.get())),
            limit => limit,
        };
        // Relaxed: `take` acquires.
        let ended = P::wait_until(word, Relaxed, limit, |seen: u32| {
            polls.set(polls.get().wrapping_add(1));
            pv::is_free(seen) || is_queued_mode(seen)
        });
        match ended {
            Ok(seen) if pv::is_free(seen) && pv::take::<P>(word) => return true,
            Ok(seen) if is_queued_mode(seen) => return false,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

impl<P: Platform> HasFacts for Hybrid<P> {
    const FACTS: Facts = Facts {
        about: "paravirtual queue with an unfair mode, chosen by each waiter",
        compared: true,
        ..pv::FACTS
    };
}

impl<P: Platform> HasFacts for HybridShort<P> {
    const FACTS: Facts = Facts {
        about: "hybrid with a spin threshold for user space",
        ..pv::FACTS
    };
}
