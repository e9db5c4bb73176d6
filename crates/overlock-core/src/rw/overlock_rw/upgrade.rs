//! The upgradable reader: one reader at a time that can become the writer. And the fair releases.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::wait::{Want, is_over};
use super::{
    CLOSED, FIRST, FULL, OTHERS, OverlockRw, READER, READERS, RESERVED, SHUT, UPGRADABLE,
    UPGRADING, WRITING, kick_all,
};
use crate::platform::{Atomic, Deadline, FutexPlatform};
use crate::raw::{RawFairRwLock, RawRwLock, RawUpgradeRwLock};

impl<P: FutexPlatform> OverlockRw<P> {
    fn enter_upgradable(&self) -> bool {
        let mut seen = self.word.load(Relaxed);
        while seen & (SHUT | UPGRADABLE | RESERVED | FULL) == 0 {
            // (0, n) -> (0, n + 1) U. RA: acquire, pairs with WU.
            match self.word.compare_exchange_weak(
                seen,
                seen + (READER | UPGRADABLE),
                Acquire,
                Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    fn upgradable_within(&self, until: Option<Deadline>) -> bool {
        self.enter_upgradable() || self.pass_gate(Want::Upgradable, until, Self::enter_upgradable)
    }

    /// Releases `share` of the upgradable reader: all of it, or its upgradable part.
    fn release_upgradable(&self, share: u32, fair: bool) {
        let word = ptr::from_ref(&self.word);
        let mut seen = self.word.load(Relaxed);
        crate::check!(
            seen & UPGRADABLE != 0,
            "release of an upgradable reader where there is none"
        );
        loop {
            let mut next = seen - share;
            if fair && seen & FIRST != 0 {
                next |= CLOSED;
            }
            // (0, n) U -> (0, n - 1), or (0, n). RU: release, pairs with WA. The lock may be freed
            // from here on (I4).
            match self
                .word
                .compare_exchange_weak(seen, next, Release, Relaxed)
            {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        if seen & (FIRST | OTHERS) != 0 {
            kick_all::<P>(word);
        }
    }

    /// Makes the upgradable reader, the only one inside, the writer.
    fn finish_upgrade(&self, seen: u32) -> bool {
        // The gate's owner and the sleeping readers go on waiting.
        let next = WRITING | seen & (CLOSED | RESERVED | FIRST | OTHERS);
        // (0, 1) U -> (1, 0). WA: acquire, pairs with RU.
        self.word
            .compare_exchange(seen, next, Acquire, Relaxed)
            .is_ok()
    }

    fn try_to_upgrade(&self) -> bool {
        let mut seen = self.word.load(Relaxed);
        while seen & READERS == READER {
            if self.finish_upgrade(seen) {
                return true;
            }
            seen = self.word.load(Relaxed);
        }
        false
    }

    fn upgrade_within(&self, until: Option<Deadline>) -> bool {
        if self.try_to_upgrade() {
            return true;
        }
        // Newcomers wait from here on.
        self.word.fetch_or(UPGRADING, Relaxed);
        loop {
            // Relaxed: the exchange acquires.
            let seen = match self.spin(Relaxed, until, |word| word & READERS == READER) {
                Ok(seen) => {
                    if self.finish_upgrade(seen) {
                        return true;
                    }
                    continue;
                }
                Err(seen) => seen,
            };
            if is_over::<P>(until) {
                // I3
                let before = self.word.fetch_and(!(UPGRADING | OTHERS), Relaxed);
                if before & OTHERS != 0 {
                    kick_all::<P>(&self.word);
                }
                return false;
            }
            self.sleep(seen, OTHERS, until);
        }
    }
}

// SAFETY: I1; one upgradable reader at a time, since each sets the bit in an exchange that finds it
// clear.
unsafe impl<P: FutexPlatform> RawUpgradeRwLock for OverlockRw<P> {
    type Upgradable = ();

    fn upgradable(&self) {
        self.upgradable_within(None);
    }

    fn try_upgradable(&self) -> Option<()> {
        self.enter_upgradable().then_some(())
    }

    fn upgradable_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.upgradable_within(Some(deadline.into())).then_some(())
    }

    unsafe fn unlock_upgradable(&self, (): ()) {
        self.release_upgradable(READER | UPGRADABLE, false);
    }

    unsafe fn upgrade(&self, (): ()) {
        self.upgrade_within(None);
    }

    /// May fail while a reader backs out.
    unsafe fn try_upgrade(&self, (): ()) -> Result<(), ()> {
        self.try_to_upgrade().then_some(()).ok_or(())
    }

    unsafe fn upgrade_until(&self, (): (), deadline: impl Into<Deadline>) -> Result<(), ()> {
        self.upgrade_within(Some(deadline.into()))
            .then_some(())
            .ok_or(())
    }

    unsafe fn downgrade_upgradable(&self, (): ()) {
        self.release_upgradable(UPGRADABLE, false);
    }

    unsafe fn downgrade_to_upgradable(&self, (): ()) {
        self.end_write(READER | UPGRADABLE, false);
    }
}

// SAFETY: as above; a fair release also closes the lock.
unsafe impl<P: FutexPlatform> RawFairRwLock for OverlockRw<P> {
    /// As [`unlock_read`](RawRwLock::unlock_read): a writer that finds readers closes the lock
    /// itself.
    unsafe fn unlock_read_fair(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_read(()) }
    }

    /// Makes a gate's owner that sleeps the next thread to exclude others.
    unsafe fn unlock_write_fair(&self, (): ()) {
        self.end_write(0, true);
    }

    /// As above.
    unsafe fn unlock_upgradable_fair(&self, (): ()) {
        self.release_upgradable(READER | UPGRADABLE, true);
    }
}
