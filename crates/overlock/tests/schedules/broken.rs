//! A faulty lock: a checker that does not detect its fault proves nothing when it passes the
//! others.

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed};

use overlock_core::raw::{ConstLock, RawLock};

use crate::exclusive::excludes;
use crate::extras::Extras;

/// Excludes, but the release orders nothing, as `Relaxed` of core's `faulty`: x86 does not show it,
/// Miri has to.
struct ReleasesNothing(AtomicBool);

impl ConstLock for ReleasesNothing {
    const INIT: Self = ReleasesNothing(AtomicBool::new(false));
}

// SAFETY: there is none: writes inside may be seen late.
unsafe impl RawLock for ReleasesNothing {
    type Token = ();
    const NAME: &'static str = "releases_nothing";

    fn lock(&self) {
        while self.try_lock().is_none() {
            hint::spin_loop();
        }
    }
    fn try_lock(&self) -> Option<()> {
        // Acquire, and its partner is missing.
        (!self.0.swap(true, Acquire)).then_some(())
    }
    unsafe fn unlock(&self, (): ()) {
        self.0.store(false, Relaxed);
    }
    fn is_locked(&self) -> bool {
        self.0.load(Relaxed)
    }
    fn is_contended(&self) -> bool {
        false
    }
}

#[test]
#[ignore = "it is broken: scripts/miri wants Miri to find it"]
fn releases_nothing() {
    excludes(Extras::<ReleasesNothing>::basic);
}
