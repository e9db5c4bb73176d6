//! The lock type of all kinds: [`Core`] behind the traits.

use core::fmt::Debug;
use core::marker::PhantomData;

use super::{Core, Step, Tuning};
use crate::tables::FamilyPlatform;
use overlock_core::diagram::{Diagram, HasDiagram};
use overlock_core::platform::{ConstPlatform, Platform};
use overlock_core::raw::{CreateError, RawFork, RawLock};

/// The kinds that there are.
pub(in crate::spin) mod sealed {
    pub trait Sealed {}
}

/// A kind of paravirtual queued lock: what a newcomer does before it joins the queue.
pub trait Kind: sealed::Sealed + Debug + Send + Sync + 'static {
    /// The constants.
    type Tuning: Tuning;

    /// The lock's name in tables.
    const NAME: &'static str;

    /// As [`HasDiagram::DIAGRAMS`].
    #[doc(hidden)]
    const DIAGRAMS: &'static [&'static Diagram];

    /// As [`HasDiagram::UNREACHABLE`].
    #[doc(hidden)]
    const UNREACHABLE: &'static [&'static str];

    /// Tries to take the lock past the queue. Returns whether it succeeded.
    #[doc(hidden)]
    fn steal<P: Platform>(word: &P::U32) -> bool;
}

/// The transition that a head with the tuning `T` never takes after it was kicked and found the
/// lock stolen.
pub(in crate::spin) const fn unreachable_when_bypassed<T: Tuning>() -> &'static str {
    if T::ENTER_AGAIN {
        Step::SpinOn.text()
    } else {
        Step::EnterAgain.text()
    }
}

/// A paravirtual queued lock of the kind `K`: see [`Hybrid`](crate::spin::Hybrid) and
/// [`PvQueued`](crate::spin::PvQueued). 4 bytes.
#[derive(Debug)]
pub struct PvLock<P: Platform, K: Kind> {
    core: Core<P>,
    kind: PhantomData<K>,
}

impl<P: ConstPlatform, K: Kind> PvLock<P, K> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        PvLock {
            core: Core::new(),
            kind: PhantomData,
        }
    }
}

impl<P: ConstPlatform, K: Kind> Default for PvLock<P, K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, K: Kind> HasDiagram for PvLock<P, K> {
    const DIAGRAMS: &'static [&'static Diagram] = K::DIAGRAMS;
    const UNREACHABLE: &'static [&'static str] = K::UNREACHABLE;
}

// SAFETY: the tail, and the entry in the lock hash, which has gone with all others, are all that
// names a node.
unsafe impl<P: FamilyPlatform, K: Kind> RawFork for PvLock<P, K> {
    unsafe fn forget_waiters(&self) {
        self.core.forget_waiters();
    }
}

// SAFETY: `Core` excludes: its locked byte goes from 0 to a value that is not 0 by exchange alone,
// and back only in `unlock`.
unsafe impl<P: FamilyPlatform, K: Kind> RawLock for PvLock<P, K> {
    type Token = ();

    const NAME: &'static str = K::NAME;

    fn create() -> Result<Self, CreateError> {
        Ok(PvLock {
            core: Core::create(),
            kind: PhantomData,
        })
    }

    #[inline]
    fn lock(&self) {
        self.core.lock::<K>();
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
