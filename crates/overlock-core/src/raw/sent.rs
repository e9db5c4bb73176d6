//! Locks whose acquisitions may be handed on to other threads.

use super::{
    ConstLock, RawCancelLock, RawDowngradeRwLock, RawFairLock, RawFairRwLock, RawFork,
    RawForkRwLock, RawLock, RawRecursiveRwLock, RawRwLock, RawTimedLock, RawTimedRwLock,
    RawUpgradeRwLock,
};
use crate::platform::{Deadline, Platform};
use crate::rw::{OverlockRw, RecursiveRw};
use crate::sleep::cancel::CancelToken;
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

// SAFETY: as for `L`, which is at the same address (`repr(transparent)`); so below.
unsafe impl<L: RawSendLock + ConstLock + RawLock<Token = ()>> RawLock for Sent<L> {
    type Token = ();

    const NAME: &'static str = L::NAME;
    const IS_SENT: bool = true;

    #[inline(always)]
    fn lock(&self) {
        self.0.lock();
    }

    #[inline(always)]
    fn try_lock(&self) -> Option<()> {
        self.0.try_lock()
    }

    #[inline(always)]
    unsafe fn unlock(&self, (): ()) {
        // SAFETY: the caller's promise; so below.
        unsafe { self.0.unlock(()) }
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    fn is_contended(&self) -> bool {
        self.0.is_contended()
    }

    fn is_overlock<Q: Platform>(&self) -> bool {
        self.0.is_overlock::<Q>()
    }

    fn lock_adopted(&self) {
        self.0.lock_adopted();
    }
}

// SAFETY: as above.
unsafe impl<L: RawSendLock + ConstLock + RawTimedLock<Token = ()>> RawTimedLock for Sent<L> {
    #[inline]
    fn lock_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.0.lock_until(deadline)
    }
}

// SAFETY: as above.
unsafe impl<P: Platform, L> RawCancelLock<P> for Sent<L>
where
    L: RawSendLock + ConstLock + RawCancelLock<P, Token = ()>,
{
    fn lock_cancellable(&self, cancel: &CancelToken<P>, deadline: Option<Deadline>) -> Option<()> {
        self.0.lock_cancellable(cancel, deadline)
    }
}

// SAFETY: as above.
unsafe impl<L: RawSendLock + ConstLock + RawFairLock<Token = ()>> RawFairLock for Sent<L> {
    unsafe fn unlock_fair(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_fair(()) }
    }
}

// SAFETY: as above.
unsafe impl<L: RawSendLock + RawFork> RawFork for Sent<L> {
    unsafe fn forget_waiters(&self) {
        // SAFETY: as above.
        unsafe { self.0.forget_waiters() }
    }
}

// SAFETY: as above.
unsafe impl<L: RawSendLock + RawRwLock<Read = (), Write = ()>> RawRwLock for Sent<L> {
    type Read = ();
    type Write = ();

    const NAME: &'static str = L::NAME;
    const IS_SENT: bool = true;
    const IS_RECURSIVE: bool = L::IS_RECURSIVE;

    #[inline(always)]
    fn read(&self) {
        self.0.read();
    }

    #[inline(always)]
    fn try_read(&self) -> Option<()> {
        self.0.try_read()
    }

    #[inline(always)]
    unsafe fn unlock_read(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_read(()) }
    }

    #[inline(always)]
    fn write(&self) {
        self.0.write();
    }

    #[inline(always)]
    fn try_write(&self) -> Option<()> {
        self.0.try_write()
    }

    #[inline(always)]
    unsafe fn unlock_write(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_write(()) }
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    fn is_write_locked(&self) -> bool {
        self.0.is_write_locked()
    }

    fn is_contended(&self) -> bool {
        self.0.is_contended()
    }
}

// SAFETY: as above.
unsafe impl<L: RawSendLock + RawTimedRwLock<Read = (), Write = ()>> RawTimedRwLock for Sent<L> {
    fn read_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.0.read_until(deadline)
    }

    fn write_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.0.write_until(deadline)
    }
}

// SAFETY: as above.
unsafe impl<L: RawSendLock + RawRecursiveRwLock<Read = (), Write = ()>> RawRecursiveRwLock
    for Sent<L>
{
    fn read_recursive(&self) {
        self.0.read_recursive();
    }

    fn try_read_recursive(&self) -> Option<()> {
        self.0.try_read_recursive()
    }

    fn read_recursive_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.0.read_recursive_until(deadline)
    }
}

// SAFETY: as above.
unsafe impl<L: RawSendLock + RawDowngradeRwLock<Read = (), Write = ()>> RawDowngradeRwLock
    for Sent<L>
{
    unsafe fn downgrade(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.downgrade(()) }
    }
}

// SAFETY: as above.
unsafe impl<L> RawUpgradeRwLock for Sent<L>
where
    L: RawSendLock + RawUpgradeRwLock<Read = (), Write = (), Upgradable = ()>,
{
    type Upgradable = ();

    fn upgradable(&self) {
        self.0.upgradable();
    }

    fn try_upgradable(&self) -> Option<()> {
        self.0.try_upgradable()
    }

    fn upgradable_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.0.upgradable_until(deadline)
    }

    unsafe fn unlock_upgradable(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_upgradable(()) }
    }

    unsafe fn upgrade(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.upgrade(()) }
    }

    unsafe fn try_upgrade(&self, (): ()) -> Result<(), ()> {
        // SAFETY: as above.
        unsafe { self.0.try_upgrade(()) }
    }

    unsafe fn upgrade_until(&self, (): (), deadline: impl Into<Deadline>) -> Result<(), ()> {
        // SAFETY: as above.
        unsafe { self.0.upgrade_until((), deadline) }
    }

    unsafe fn downgrade_upgradable(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.downgrade_upgradable(()) }
    }

    unsafe fn downgrade_to_upgradable(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.downgrade_to_upgradable(()) }
    }
}

// SAFETY: as above.
unsafe impl<L> RawFairRwLock for Sent<L>
where
    L: RawSendLock + RawFairRwLock<Read = (), Write = (), Upgradable = ()>,
{
    unsafe fn unlock_read_fair(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_read_fair(()) }
    }

    unsafe fn unlock_write_fair(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_write_fair(()) }
    }

    unsafe fn unlock_upgradable_fair(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_upgradable_fair(()) }
    }
}

// SAFETY: as above.
unsafe impl<L: RawSendLock + RawForkRwLock<Read = (), Write = ()>> RawForkRwLock for Sent<L> {
    unsafe fn forget_waiters(&self, written: bool) {
        // SAFETY: as above.
        unsafe { self.0.forget_waiters(written) }
    }
}
