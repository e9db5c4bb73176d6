//! The paravirtual queued lock: a queue whose waiters sleep, as it was before the hybrid one.
//!
//! The "pvqlock" of the hybrid lock's document (Long, Zijlstra, 2015; one attempt at stealing since
//! early 2016). A newcomer tries once to take the lock past the queue, and then waits its turn.
//! Under overcommit the waiters in the queue sleep, a handoff costs a wake-up, and the lock stands
//! idle meanwhile. Most slow acquisitions then succeed by that one attempt.
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
//! While the head spins, pending keeps newcomers from stealing: at most those that loaded the word
//! before it was set take the lock before the head does. While it sleeps or wakes up, any number
//! may.

use core::sync::atomic::Ordering::Relaxed;

use super::pv::{self, Form, PvLock};
use overlock_core::facts::{Facts, HasFacts};
use overlock_core::platform::{Atomic, Platform, Spin};

/// The paravirtual queued lock: see the [module's page](self). 4 bytes.
pub type PvQueued<P> = PvLock<P, OneSteal>;

/// The published form.
#[derive(Clone, Copy, Debug)]
pub struct OneSteal;

impl Form for OneSteal {
    const NAME: &'static str = "pv_queued";
    const UNFAIR: Option<Spin> = None;
}

/// One attempt. Returns whether it stole the lock.
pub(super) fn steal<P: Platform>(word: &P::U32) -> bool {
    // Relaxed: `take` acquires.
    pv::is_free(word.load(Relaxed)) && pv::take::<P>(word)
}

impl<P: Platform> HasFacts for PvQueued<P> {
    const FACTS: Facts = Facts {
        about: "paravirtual queue: waiters halt and are kicked",
        compared: true,
        ..pv::FACTS
    };
}
