//! The upgradable reader: one of the readers, which can become the writer without a release.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::policy::Policy;
use super::queue::{GRANTED, WANTS_UPGRADE, wants};
use super::states::Step;
use super::word::{READ, UPGRADABLE_READ};
use super::{READER, READERS, RwSem, UPGRADABLE, WAITERS, WRITER};
use overlock_core::links::backoff_sleep;
use overlock_core::platform::{Atomic, Deadline, Platform};
use overlock_core::raw::RawUpgradeRwLock;
use overlock_core::sleep::wait_list::{End, Limit, Waiter};
use overlock_core::stat::{self, Event};

impl<P: Platform, Y: Policy> RwSem<P, Y> {
    #[inline]
    fn upgradable_within(&self, limit: &Limit<'_, P>) -> bool {
        self.take_share(UPGRADABLE_READ).is_ok() || self.upgradable_slow(limit)
    }

    #[cold]
    fn upgradable_slow(&self, limit: &Limit<'_, P>) -> bool {
        self.spin_share(UPGRADABLE_READ, limit) || self.sleep_share(UPGRADABLE_READ, limit)
    }

    fn assert_upgradable(&self) {
        overlock_core::check!(
            self.count.load(Relaxed) & (UPGRADABLE | WRITER) == UPGRADABLE,
            "the lock has no upgradable reader"
        );
    }

    /// Reduces the upgradable reader's share to `keeps`.
    #[inline]
    fn end_upgradable(&self, keeps: u32) {
        self.assert_upgradable();
        let gives = UPGRADABLE_READ.adds - keeps;
        // (0, 1, n) -> (0, 0, n), or one reader less. RU: release, pairs with WA and UA.
        let before = self.count.fetch_sub(gives, Release);
        Step::of_end_upgradable(keeps).taken::<P>();
        if before & WAITERS != 0 {
            // Another upgradable reader may get in, even where readers stay.
            self.wake_waiters();
        }
    }

    /// Upgrades if there is no other reader.
    #[inline]
    fn upgrade_alone(&self) -> bool {
        self.assert_upgradable();
        let mut seen = self.count.load(Relaxed);
        while seen & READERS == READER {
            // (0, 1, 1) -> (1, 0, 0). UA: acquire, pairs with RU.
            let next = seen - UPGRADABLE_READ.adds + WRITER;
            match self
                .count
                .compare_exchange_weak(seen, next, Acquire, Relaxed)
            {
                Ok(_) => {
                    Step::UpgradeAlone.taken::<P>();
                    self.set_owner();
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        false
    }

    #[inline]
    fn upgrade_within(&self, limit: &Limit<'_, P>) -> bool {
        self.upgrade_alone() || self.upgrade_slow(limit)
    }

    #[cold]
    fn upgrade_slow(&self, limit: &Limit<'_, P>) -> bool {
        // (0, 1, n) -> (1, 1, n - 1): no further readers. Relaxed: this thread reads already, and
        // the releases of other readers may be still to come.
        self.count.fetch_add(WRITER.wrapping_sub(READER), Relaxed);
        Step::Upgrade.taken::<P>();
        let gone = self.spin_alone(READERS, limit);
        if gone {
            self.finish_upgrade();
        }
        let upgraded = gone || self.sleep_upgrade(limit);
        if upgraded {
            self.set_owner();
        }
        upgraded
    }

    /// Completes the upgrade: all other readers have left.
    fn finish_upgrade(&self) {
        // (1, 1, 0) -> (1, 0, 0). Relaxed: UA came before.
        self.count.fetch_and(!UPGRADABLE, Relaxed);
        Step::UpgradeSees.taken::<P>();
    }

    /// Cancels the upgrade: others may read again.
    fn cancel_upgrade(&self) -> u32 {
        // (1, 1, n) -> (0, 1, n + 1). Relaxed: nothing was written, and this thread reads as
        // before.
        let before = self.count.fetch_add(READER.wrapping_sub(WRITER), Relaxed);
        Step::CancelUpgrade.taken::<P>();
        before
    }

    pub(super) fn sleep_upgrade(&self, limit: &Limit<'_, P>) -> bool {
        let Some(waiter) = Waiter::new() else {
            return self.upgrade_without_node(limit);
        };
        let list = self.waiters.lock();
        self.make_ready(&waiter, WANTS_UPGRADE);
        // In front (I7): the present first has to wait for it anyway.
        list.push_front(waiter.id());
        // f -> f, waiters. Relaxed: as for any waiter that joins.
        self.count.fetch_or(WAITERS, Relaxed);
        Step::JoinInFront.taken::<P>();
        self.wake(list);
        stat::count::<P>(Event::RwsemSleepWriter);
        if let End::Signalled(_) = waiter.sleep(limit) {
            return true;
        }
        let list = self.waiters.lock();
        let granted = wants::<P>(waiter.id()) == GRANTED;
        if granted {
            Step::GrantedAtLimit.taken::<P>();
            drop(list);
            waiter.sleep(&Limit::NONE);
        } else {
            self.cancel_upgrade();
            self.give_up(list, waiter.id());
        }
        granted
    }

    #[cold]
    fn upgrade_without_node(&self, limit: &Limit<'_, P>) -> bool {
        stat::count::<P>(Event::LockNoNode);
        loop {
            // UA: acquire, pairs with RU.
            if self.count.load(Acquire) & READERS == 0 {
                self.finish_upgrade();
                return true;
            }
            if limit.reached().is_some() {
                if self.cancel_upgrade() & WAITERS != 0 {
                    self.wake_waiters();
                }
                return false;
            }
            backoff_sleep::<P>();
            Step::BackoffSleep.taken::<P>();
        }
    }
}

// SAFETY: an exchange that expects upgradable and writer clear sets upgradable, together with a
// reader's share, and only its reader clears it. That one writes when it has seen readers 0 after
// it set writer (I1), or in an exchange that expects no reader but itself.
unsafe impl<P: Platform, Y: Policy> RawUpgradeRwLock for RwSem<P, Y> {
    type Upgradable = ();

    #[inline]
    fn upgradable(&self) {
        self.upgradable_within(&Limit::NONE);
    }

    #[inline]
    fn try_upgradable(&self) -> Option<()> {
        self.take_share(UPGRADABLE_READ).is_ok().then_some(())
    }

    fn upgradable_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.upgradable_within(&Limit::until(deadline))
            .then_some(())
    }

    #[inline]
    unsafe fn unlock_upgradable(&self, (): ()) {
        self.end_upgradable(0);
    }

    #[inline]
    unsafe fn upgrade(&self, (): ()) {
        self.upgrade_within(&Limit::NONE);
    }

    #[inline]
    unsafe fn try_upgrade(&self, (): ()) -> Result<(), ()> {
        if self.upgrade_alone() {
            Ok(())
        } else {
            Err(())
        }
    }

    unsafe fn upgrade_until(&self, (): (), deadline: impl Into<Deadline>) -> Result<(), ()> {
        if self.upgrade_within(&Limit::until(deadline)) {
            Ok(())
        } else {
            Err(())
        }
    }

    #[inline]
    unsafe fn downgrade_upgradable(&self, (): ()) {
        self.end_upgradable(READ.adds);
    }

    unsafe fn downgrade_to_upgradable(&self, (): ()) {
        self.assert_written();
        self.end_write(UPGRADABLE_READ.adds);
    }
}
