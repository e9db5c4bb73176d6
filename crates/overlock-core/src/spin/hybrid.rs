//! The hybrid lock: a paravirtual queued lock in queued mode, an unfair lock in unfair mode, chosen
//! by each waiter for itself.
//!
//! The subject of the document "locking/pvqspinlock: Implement hybrid PV queued/unfair locks"
//! (Long, 2017). A newcomer goes into unfair mode where waiters are queued but pending is clear:
//! the head of the queue sleeps (or has not begun to spin), so the lock would stand idle until it
//! runs. As soon as the head spins it sets pending, and everybody who comes or spins in unfair mode
//! joins the queue. While all waiters have CPUs the lock is fair; the more of them sleep, the more
//! it is unfair; and the head, once it runs, is never passed for long.
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
//! With [`Short`] also where unfair mode has lasted for too long.
//!
//! # Bounds
//!
//! While the head spins, pending keeps newcomers from stealing: at most those that looked before it
//! was set take the lock before the head does. While it sleeps, wakes up, or has lost its CPU
//! between waking and setting pending, any number may. If it loses its CPU with pending set, nobody
//! steals, and those that come queue and sleep until it runs again.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use super::pv::{self, Core, Kind, Published, Short, Tuning};
use super::queued::{LOCKED_BYTE, PENDING_BYTE};
use crate::diagram::{Diagram, HasDiagram, diagram};
use crate::facts::{Facts, HasFacts};
use crate::platform::{ConstPlatform, Platform, Spin};
use crate::raw::{CreateError, RawFork, RawLock};

diagram! {
    "hybrid" {
        Unfair = "(n, 0, *): unfair mode, spins",
        Stolen = "unfair mode, or free: stolen",
        Queue = "(0, *, *), (*, 1, *): queued mode",
        GiveUp = "(n, 0, *): unfair mode for too long, queue",
    }
}

/// The hybrid lock: see the [module's page](self). 4 bytes.
#[derive(Debug)]
pub struct Hybrid<P: Platform, T: Tuning = Published> {
    core: Core<P>,
    tuning: PhantomData<T>,
}

/// The hybrid lock with constants for threads: see [`Short`].
pub type HybridShort<P> = Hybrid<P, Short>;

impl<P: ConstPlatform, T: Tuning> Hybrid<P, T> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        Hybrid {
            core: Core::new(),
            tuning: PhantomData,
        }
    }
}

impl<P: ConstPlatform, T: Tuning> Default for Hybrid<P, T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a newcomer goes into queued mode: nobody is queued, or the head spins.
fn is_queued_mode(word: u32) -> bool {
    word & PENDING_BYTE != 0 || word & !LOCKED_BYTE == 0
}

impl<P: Platform, T: Tuning> Kind for Hybrid<P, T> {
    type Tuning = T;

    /// Attempts as long as unfair mode lasts, within the limit.
    fn steal<Q: Platform>(word: &Q::U32) -> bool {
        let mut stolen = false;
        // Relaxed: `take` acquires.
        let ended = Q::wait_until(word, Relaxed, T::UNFAIR, |seen: u32| {
            stolen = pv::is_free(seen) && pv::take::<Q>(word);
            let ends = stolen || is_queued_mode(seen);
            if !ends {
                Step::Unfair.taken::<Q>();
            }
            ends
        });
        let step = match ended {
            Ok(_) if stolen => Step::Stolen,
            Ok(_) => Step::Queue,
            Err(_) => Step::GiveUp,
        };
        step.taken::<Q>();
        stolen
    }
}

impl<P: Platform> HasFacts for Hybrid<P, Published> {
    const FACTS: Facts = Facts {
        about: "paravirtual queue with an unfair mode, chosen by each waiter",
        compared: true,
        ..pv::FACTS
    };
}

impl<P: Platform> HasFacts for Hybrid<P, Short> {
    const FACTS: Facts = Facts {
        about: "hybrid with a spin threshold for user space",
        ..pv::FACTS
    };
}

impl<P: Platform, T: Tuning> HasDiagram for Hybrid<P, T> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&pv::DIAGRAM, &DIAGRAM];

    const UNREACHABLE: &'static [&'static str] = {
        const AGAIN: &str = pv::Step::EnterAgain.text();
        const ON: &str = pv::Step::SpinOn.text();
        const GIVE_UP: &str = Step::GiveUp.text();
        match (T::ENTER_AGAIN, T::UNFAIR) {
            (false, Spin::Forever) => &[AGAIN, GIVE_UP],
            (false, _) => &[AGAIN],
            (true, Spin::Forever) => &[ON, GIVE_UP],
            (true, _) => &[ON],
        }
    };
}

// SAFETY: the tail, and the entry in the lock hash, which has gone with all others, are all that
// names a node.
unsafe impl<P: Platform, T: Tuning> RawFork for Hybrid<P, T> {
    unsafe fn forget_waiters(&self) {
        self.core.forget();
    }
}

// SAFETY: `Core` excludes: its locked byte goes from 0 to a value that is not 0 by exchange alone,
// and back only in `unlock`.
unsafe impl<P: Platform, T: Tuning> RawLock for Hybrid<P, T> {
    type Token = ();

    const NAME: &'static str = T::HYBRID;

    fn create() -> Result<Self, CreateError> {
        Ok(Hybrid {
            core: Core::create(),
            tuning: PhantomData,
        })
    }

    #[inline]
    fn lock(&self) {
        self.core.lock::<Self>();
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.core.try_lock().then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        self.core.unlock();
    }

    fn is_locked(&self) -> bool {
        self.core.is_locked()
    }

    fn is_contended(&self) -> bool {
        self.core.is_contended()
    }
}
