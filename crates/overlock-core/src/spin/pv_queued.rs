//! The paravirtual queued lock: a queue whose waiters sleep, as it was before the hybrid one.
//!
//! The "pvqlock" of the hybrid lock's document (Long, Zijlstra, 2015; one attempt at stealing since
//! early 2016). A newcomer tries once to take the lock past the queue, and then waits its turn.
//! Under overcommit those in the queue sleep, a handoff costs a wake-up, and the lock stands idle
//! meanwhile; most slow acquisitions are then by that one attempt.
//!
//! All but the stealing is shared with [`hybrid`](super::hybrid): [`pv`] has
//! the layout, the states, the invariants, the orderings, and why no wake-up is lost.
//!
//! # What a newcomer does
//!
//! ```text
//! fast path fails --> free, and no head spins for it?  --yes--> exchange --won--> stolen
//!                                  |                               |
//!                                  no ------------> queue <------lost
//! ```
//!
//! # Bounds
//!
//! While the head spins, pending keeps newcomers from stealing: at most those that looked before it
//! was set take the lock before the head does. While it sleeps or wakes up, any number may.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use super::pv::{self, Core, Kind, Published, Tuning};
use crate::diagram::{Diagram, HasDiagram, diagram};
use crate::facts::{Facts, HasFacts};
use crate::platform::{Atomic, ConstPlatform, Platform};
use crate::raw::{CreateError, RawFork, RawLock};

diagram! {
    "pv_queued" {
        Try = "free, and no head spins for it: exchange",
        Queue = "held, or a head spins for it: queue",
    }
}

/// The paravirtual queued lock: see the [module's page](self). 4 bytes.
#[derive(Debug)]
pub struct PvQueued<P: Platform, T: Tuning = Published> {
    core: Core<P>,
    tuning: PhantomData<T>,
}

impl<P: ConstPlatform, T: Tuning> PvQueued<P, T> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        PvQueued {
            core: Core::new(),
            tuning: PhantomData,
        }
    }
}

impl<P: ConstPlatform, T: Tuning> Default for PvQueued<P, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, T: Tuning> Kind for PvQueued<P, T> {
    type Tuning = T;

    /// One attempt.
    fn steal<Q: Platform>(word: &Q::U32) -> bool {
        // Relaxed: `take` acquires.
        let free = pv::is_free(word.load(Relaxed));
        let step = if free { Step::Try } else { Step::Queue };
        step.taken::<Q>();
        free && pv::take::<Q>(word)
    }
}

impl<P: Platform, T: Tuning> HasFacts for PvQueued<P, T> {
    const FACTS: Facts = Facts {
        about: "paravirtual queue: waiters halt and are kicked",
        compared: true,
        ..pv::FACTS
    };
}

impl<P: Platform, T: Tuning> HasDiagram for PvQueued<P, T> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&pv::DIAGRAM, &DIAGRAM];

    const UNREACHABLE: &'static [&'static str] = if T::ENTER_AGAIN {
        &[pv::Step::SpinOn.text()]
    } else {
        &[pv::Step::EnterAgain.text()]
    };
}

// SAFETY: the tail, and the entry in the lock hash, which has gone with all others, are all that
// names a node.
unsafe impl<P: Platform, T: Tuning> RawFork for PvQueued<P, T> {
    unsafe fn forget_waiters(&self) {
        self.core.forget();
    }
}

// SAFETY: `Core` excludes: its locked byte goes from 0 to a value that is not 0 by exchange alone,
// and back only in `unlock`.
unsafe impl<P: Platform, T: Tuning> RawLock for PvQueued<P, T> {
    type Token = ();

    const NAME: &'static str = T::PV_QUEUED;

    fn create() -> Result<Self, CreateError> {
        Ok(PvQueued {
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
