//! Upgradable readers: counted ones of which there is one at a time, and who can become the writer.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::states::Step;
use super::{OverlockRw, Policy, READER, Read, Write};
use crate::links::nap;
use crate::platform::{Atomic, Instant, Platform};
use crate::raw::{RawFairLock, RawFairRwLock, RawLock, RawRwLock, RawUpgradeRwLock};
use crate::sleep::wait_list::{self, Limit, Waiter};

/// What a waiter is told: look again.
const LOOK_AGAIN: u32 = 1;

/// An upgradable reader's acquisition.
#[derive(Debug)]
pub struct Upgradable(());

impl<P: Platform, Y: Policy> OverlockRw<P, Y> {
    /// Acquires the gate at a moment at which no upgradable reader holds the lock; without the gate once `limit` is
    /// reached.
    #[cold]
    pub(super) fn wait_for_gate_without_upgradable(&self, limit: &Limit<'_, P>) -> bool {
        let Some(waiter) = Waiter::<P>::new() else {
            return self.wait_without_node(limit);
        };
        let id = waiter.id();
        waiter.prepare();
        self.waiting.lock().push_back(id);
        Step::Join.taken::<P>();
        let acquired = loop {
            let first = self.waiting.lock().first() == Some(id);
            if first {
                if !self.close_gate(limit) {
                    break false;
                }
                // Acquire, pairs with the release in `release_upgradable`.
                if self.upgradable.load(Acquire) == 0 {
                    Step::FirstGoes.taken::<P>();
                    break true;
                }
                Step::FirstFindsIt.taken::<P>();
                self.release_gate();
            }
            if let wait_list::End::Deadline | wait_list::End::Cancelled = waiter.sleep(limit) {
                break false;
            }
            // Before the next look: a release after that is told once more.
            let _guard = self.waiting.lock();
            waiter.prepare();
        };
        let waiters = self.waiting.lock();
        waiters.unlink(id);
        if !acquired {
            Step::LeaveAtLimit.taken::<P>();
        }
        let next = waiters.first();
        if let Some(next) = next {
            wait_list::tell::<P>(next, LOOK_AGAIN);
        }
        drop(waiters);
        if let Some(next) = next {
            wait_list::kick::<P>(next);
        }
        acquired
    }

    #[cold]
    fn wait_without_node(&self, limit: &Limit<'_, P>) -> bool {
        while self.close_gate(limit) {
            if self.upgradable.load(Acquire) == 0 {
                return true;
            }
            self.release_gate();
            if limit.reached().is_some() {
                return false;
            }
            nap::<P>();
            Step::Nap.taken::<P>();
        }
        false
    }

    /// The caller holds the gate, and nobody is an upgradable reader: becomes it.
    fn enter_upgradable(&self) -> Upgradable {
        self.upgradable.store(1, Relaxed);
        // SeqCst, with WC of this reader's upgrade: who counted itself after this must be seen there. (C++20 asks for less; Miri, whose
        // order of sequentially consistent operations is weaker, does not.)
        self.readers.fetch_add(READER, SeqCst);
        Step::EnterUpgradable.taken::<P>();
        self.open_gate();
        Upgradable(())
    }

    /// Ends the reservation; the caller is a plain reader or the writer then.
    fn release_upgradable(&self) {
        // Release, pairs with the acquires of those that wait for it.
        self.upgradable.store(0, Release);
        Step::ReleaseUpgradable.taken::<P>();
        // Under the guard: who joins the list after this looks at `upgradable` after this.
        let waiters = self.waiting.lock();
        let first = waiters.first();
        if let Some(first) = first {
            wait_list::tell::<P>(first, LOOK_AGAIN);
        }
        drop(waiters);
        if let Some(first) = first {
            wait_list::kick::<P>(first);
        }
    }

    fn upgradable_within(&self, limit: &Limit<'_, P>) -> Option<Upgradable> {
        // Those that wait come first.
        let mut acquired = self.waiting.looks_empty() && self.close_gate(limit);
        if acquired && self.upgradable.load(Acquire) != 0 {
            self.release_gate();
            acquired = false;
        }
        (acquired || self.wait_for_gate_without_upgradable(limit)).then(|| self.enter_upgradable())
    }

    /// The caller is the upgradable reader and holds the gate: becomes the writer if no other reader is left.
    fn upgrade_at_gate(&self, clear: bool) -> Result<Write, Upgradable> {
        if !clear {
            Step::UpgradeInVain.taken::<P>();
            self.release_gate();
            return Err(Upgradable(()));
        }
        // SeqCst, as above, with WC of the next writer.
        self.readers.fetch_sub(1, SeqCst);
        Step::Upgrade.taken::<P>();
        self.release_upgradable();
        Ok(Write(()))
    }
}

// SAFETY: R4; the upgradable reader is a counted reader, and the writer once it has seen R1's conditions with the gate held.
unsafe impl<P: Platform, Y: Policy> RawUpgradeRwLock for OverlockRw<P, Y> {
    type Upgradable = Upgradable;

    fn upgradable(&self) -> Upgradable {
        let token = self.upgradable_within(&Limit::NONE);
        token.unwrap_or_else(|| unreachable!("a wait without a limit"))
    }

    fn try_upgradable(&self) -> Option<Upgradable> {
        self.gate.try_lock()?;
        if self.upgradable.load(Acquire) != 0 {
            self.release_gate();
            return None;
        }
        Some(self.enter_upgradable())
    }

    fn upgradable_until(&self, deadline: Instant) -> Option<Upgradable> {
        self.upgradable_within(&Limit::until(deadline))
    }

    unsafe fn unlock_upgradable(&self, Upgradable(()): Upgradable) {
        self.release_upgradable();
        self.leave_counted();
    }

    unsafe fn upgrade(&self, Upgradable(()): Upgradable) -> Write {
        self.close_gate(&Limit::NONE);
        let clear = self.drain(1, &Limit::NONE);
        let token = self.upgrade_at_gate(clear);
        token.unwrap_or_else(|_| unreachable!("a wait without a limit"))
    }

    unsafe fn try_upgrade(&self, token: Upgradable) -> Result<Write, Upgradable> {
        match self.gate.try_lock() {
            Some(()) => self.upgrade_at_gate(self.is_clear(1)),
            None => Err(token),
        }
    }

    unsafe fn upgrade_until(
        &self,
        token: Upgradable,
        deadline: Instant,
    ) -> Result<Write, Upgradable> {
        let limit = Limit::until(deadline);
        if !self.close_gate(&limit) {
            return Err(token);
        }
        self.upgrade_at_gate(self.drain(1, &limit))
    }

    unsafe fn downgrade_upgradable(&self, Upgradable(()): Upgradable) -> Read<P> {
        self.release_upgradable();
        Read(None)
    }

    unsafe fn downgrade_to_upgradable(&self, _: Write) -> Upgradable {
        self.enter_upgradable()
    }
}

// SAFETY: as above; a fair release of the gate is that of its lock.
unsafe impl<P: Platform, Y: Policy> RawFairRwLock for OverlockRw<P, Y> {
    /// The writer that waits has closed the gate already.
    unsafe fn unlock_read_fair(&self, token: Read<P>) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_read(token) }
    }

    unsafe fn unlock_write_fair(&self, Write(()): Write) {
        self.end_write();
        // SAFETY: the writer holds the gate, whose token is ().
        unsafe { self.gate.unlock_fair(()) }
        Step::Unlock.taken::<P>();
    }

    /// Those that wait for the upgradable reader stand in a list.
    unsafe fn unlock_upgradable_fair(&self, token: Upgradable) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_upgradable(token) }
    }
}
