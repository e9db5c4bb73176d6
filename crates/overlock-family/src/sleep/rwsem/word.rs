//! Changes of the lock's words: taking a share, taking it for writing, and releasing.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::policy::Policy;
use super::{DISABLED, FULL, HANDOFF, HELD, READER, READERS, RwSem, WAITERS, WOKEN, WRITER};
use overlock_core::platform::{Atomic, Cpu, Platform};

/// Whether a newcomer must not barge past the waiters (I5).
pub(super) fn must_queue(seen: u32) -> bool {
    seen & HANDOFF != 0 || seen & WAITERS != 0 && seen & HELD != 0
}

/// Returns the owner word of a writer that acquired on `cpu`. An unknown CPU, the largest number,
/// becomes 0.
pub(super) const fn owner_on(cpu: Cpu) -> u32 {
    cpu.0.wrapping_add(1) << 1
}

impl<P: Platform, Y: Policy> RwSem<P, Y> {
    /// Acquires for reading as a newcomer. `Err` carries the word with which it could not.
    #[inline]
    pub(super) fn take_read(&self) -> Result<u32, u32> {
        self.take_read_if(|seen| !must_queue(seen))
    }

    /// Acquires for reading if readers are inside, even where others wait. So waiters may starve,
    /// and a thread may read what it reads already.
    pub fn try_read_along(&self) -> bool {
        let allowed = |seen| seen & READERS != 0 || !must_queue(seen);
        self.take_read_if(allowed).is_ok()
    }

    #[inline]
    pub(super) fn take_read_if(&self, allowed: impl Fn(u32) -> bool) -> Result<u32, u32> {
        let mut seen = self.count.load(Relaxed);
        while seen & (WRITER | FULL) == 0 && allowed(seen) {
            // (0, n) -> (0, n + 1). RA: acquire, pairs with WU. An addition cannot overflow:
            // FULL is clear.
            match self
                .count
                .compare_exchange_weak(seen, seen + READER, Acquire, Relaxed)
            {
                Ok(_) => return Ok(seen),
                Err(now) => seen = now,
            }
        }
        Err(seen)
    }

    /// Acquires for writing as a newcomer.
    #[inline]
    pub(super) fn take_write(&self) -> bool {
        let mut seen = self.count.load(Relaxed);
        while seen & (HELD | HANDOFF) == 0 {
            // (0, 0) -> (1, 0). WA: acquire, pairs with WU and RU.
            match self
                .count
                .compare_exchange_weak(seen, seen | WRITER, Acquire, Relaxed)
            {
                Ok(_) => {
                    self.set_owner();
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Publishes the writer's CPU, so that others can see whether it runs, and enables spinning.
    #[inline(always)]
    pub(super) fn set_owner(&self) {
        self.owner.store(owner_on(P::cpu()), Relaxed);
    }

    /// Whether the last writer is known not to run.
    pub(super) fn owner_lost_its_cpu(&self) -> bool {
        let owner = self.owner.load(Relaxed);
        owner > DISABLED && P::preempted(Cpu((owner >> 1) - 1))
    }

    /// Takes a reader out: one that leaves, or one that came in vain.
    #[inline]
    pub(super) fn leave(&self) {
        // (w, n) -> (w, n - 1). RU: release, pairs with WA.
        let left = self.count.fetch_sub(READER, Release).wrapping_sub(READER);
        if left & WAITERS != 0 && left < READER {
            self.readers_are_gone(left);
        }
    }

    /// Wakes after the last reader has left a lock with waiters, or one that came in vain.
    #[cold]
    fn readers_are_gone(&self, left: u32) {
        self.reenable_spinning();
        // A writer inside will see waiters when it leaves.
        if left & (WRITER | WOKEN) == 0 {
            self.wake(self.waiters.lock());
        }
    }

    /// Wakes the waiters that a release or a downgrade lets in.
    #[cold]
    pub(super) fn wake_waiters(&self) {
        self.wake(self.waiters.lock());
    }

    /// Ends a write, and keeps `share`: none, or a reader's.
    #[inline]
    pub(super) fn end_write(&self, share: u32) {
        // Before the release: the next writer's own store comes after it.
        self.owner.store(0, Relaxed);
        // (1, 0) -> (0, 0), or to the share that stays. WU: release, pairs with RA, WA and
        // GA.
        let before = self.count.fetch_add(share.wrapping_sub(WRITER), Release);
        // A woken first is a writer: it is on its way, and nobody else can be let in.
        if before & (WAITERS | WOKEN) == WAITERS {
            self.wake_waiters();
        }
    }

    pub(super) fn assert_written(&self) {
        overlock_core::check!(
            self.count.load(Relaxed) & WRITER != 0,
            "write unlock of a lock that nobody writes"
        );
    }
}
