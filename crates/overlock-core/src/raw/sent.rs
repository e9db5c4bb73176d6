//! Locks whose acquisitions may be handed on to other threads.

use super::{
    ConstLock, RawCancelLock, RawDowngradeRwLock, RawFairLock, RawFairRwLock, RawFork,
    RawForkRwLock, RawLock, RawRecursiveRwLock, RawRwLock, RawTimedLock, RawTimedRwLock,
    RawUpgradeRwLock, forward,
};
use crate::platform::Platform;
use crate::rw::{OverlockRw, RecursiveRw};
use crate::sleep::{FairOverlock, Overlock};

/// A lock that any thread may release: nothing in it or in a token belongs to the thread that
/// acquired.
///
/// # Safety
///
/// Tokens are `()`. The traits of raw locks ask that the calling thread has acquired the lock:
/// another one may have instead, if its acquisition happens before the call.
pub unsafe trait RawSendLock {}

// SAFETY: the words say that the lock is held, and not by whom; so below.
unsafe impl<P: Platform> RawSendLock for Overlock<P> {}
// SAFETY: as above.
unsafe impl<P: Platform> RawSendLock for FairOverlock<P> {}
// SAFETY: as above; readers are counted.
unsafe impl<P: Platform> RawSendLock for OverlockRw<P> {}
// SAFETY: as above.
unsafe impl<P: Platform> RawSendLock for RecursiveRw<P> {}

/// The lock `L`, whose guards are `Send`: a task of an executor that moves between threads may hold
/// one across an `.await`.
///
/// It is a type of its own, so that a program which means the other kind is told by the compiler.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Sent<L>(L);

impl<L: RawSendLock> Sent<L> {
    /// Around `lock`.
    pub const fn new(lock: L) -> Self {
        Sent(lock)
    }

    /// The lock inside.
    #[inline]
    pub const fn inner(&self) -> &L {
        &self.0
    }
}

// SAFETY: it has the releases of `L`.
unsafe impl<L: RawSendLock> RawSendLock for Sent<L> {}

impl<L: RawSendLock + ConstLock> ConstLock for Sent<L> {
    const INIT: Self = Sent(L::INIT);
}

// SAFETY: as for `L`, which is at the same address (`repr(transparent)`).
unsafe impl<L: RawSendLock + ConstLock + RawLock<Token = ()>> RawLock for Sent<L> {
    type Token = ();

    const NAME: &'static str = L::NAME;
    const IS_SENT: bool = true;

    forward! {
        methods RawLock
    }
    forward! {
        #[inline(always)]
        unsafe fn unlock(&self, (): ());
    }
}

// SAFETY: as above.
unsafe impl<L: RawSendLock + RawRwLock<Read = (), Write = ()>> RawRwLock for Sent<L> {
    type Read = ();
    type Write = ();

    const NAME: &'static str = L::NAME;
    const IS_SENT: bool = true;
    const IS_RECURSIVE: bool = L::IS_RECURSIVE;

    forward! {
        methods RawRwLock
    }
    forward! {
        #[inline(always)]
        fn read(&self);
        #[inline(always)]
        fn try_read(&self) -> Option<()>;
    }
}

// SAFETY: as above.
unsafe impl<L> RawFairRwLock for Sent<L>
where
    L: RawSendLock + RawFairRwLock<Read = (), Write = (), Upgradable = ()>,
{
    forward! {
        methods RawFairRwLock
    }
    forward! {
        unsafe fn bump_read(&self, (): ());
    }
}

forward! {
    impl [L: RawSendLock + ConstLock + RawTimedLock<Token = ()>] RawTimedLock for Sent<L>;
    impl [L: RawSendLock + ConstLock + RawCancelLock<P, Token = ()>, P: Platform] RawCancelLock<P> for Sent<L>;
    impl [L: RawSendLock + ConstLock + RawFairLock<Token = ()>] RawFairLock for Sent<L>;
    impl [L: RawSendLock + RawFork] RawFork for Sent<L>;
    impl [L: RawSendLock + RawTimedRwLock<Read = (), Write = ()>] RawTimedRwLock for Sent<L>;
    impl [L: RawSendLock + RawRecursiveRwLock<Read = (), Write = ()>] RawRecursiveRwLock for Sent<L>;
    impl [L: RawSendLock + RawDowngradeRwLock<Read = (), Write = ()>] RawDowngradeRwLock for Sent<L>;
    impl [L: RawSendLock + RawUpgradeRwLock<Read = (), Write = (), Upgradable = ()>] RawUpgradeRwLock for Sent<L>;
    impl [L: RawSendLock + RawForkRwLock<Read = (), Write = ()>] RawForkRwLock for Sent<L>;
}
