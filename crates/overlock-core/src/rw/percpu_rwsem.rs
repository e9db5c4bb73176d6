//! The per-CPU reader-writer semaphore: readers write only to their own slot, writers pay.
//!
//! The kernel's (`percpu_rw_semaphore`) gives each lock a counter on every CPU. A reader increments
//! the one of its CPU. A writer makes all readers take a slow path, waits for a grace period of
//! RCU, and adds the counters up. Threads have no CPU of their own, and a counter on each of many
//! CPUs in each lock takes much memory. So here a reader writes the lock's id into an entry of its
//! thread's slot, one table for all locks, as in Dice and Kogan, "BRAVO: Biased Locking for
//! Reader-Writer Locks", 2019. And the grace period is a heavy barrier: microseconds instead of
//! milliseconds.
//!
//! It is for data that is read all the time and hardly ever written (configuration, routing
//! tables): a write costs a heavy barrier and a search of the slot of every thread.
//!
//! # Layout
//!
//! | field | who writes it |
//! |---|---|
//! | `lock: OverlockRw` | writers, and readers that count themselves: those that find a writer, and those without an entry |
//! | `id: u32` | once, the first reader: 0 before |
//! | an entry of a slot, `lock: u32` | its thread: the id of a lock that it reads, or 0 |
//! | the same, `waited: u32` | a writer that is about to sleep until that reader has left adds 1; afterwards it subtracts 1 |
//!
//! # States
//!
//! ```text
//! a visible reader   entry = id; no writer: it reads. A writer: in vain, entry = 0, then as a counted one
//!     leaves         entry = 0; kicks a writer that waits for it
//! a counted reader   has the inner lock for reading
//! a writer           has the inner lock for writing; heavy barrier; waits for one entry after the other, awake, then asleep
//! ```
//!
//! # Invariants
//!
//! - P1: an entry holds a lock's id from before its reader checks for a writer until the reader has
//!   left.
//! - P2: a writer writes only after it has acquired the inner lock, passed the heavy barrier, and
//!   then seen no entry with the lock's id.
//! - P3: a reader's unlock touches nothing of the lock: only its own slot, which is immortal.
//!
//! # Orderings
//!
//! - The reader: RE, the store of the entry; light barrier; RB, the load of the inner lock. The
//!   writer: WB, the acquisition of the inner lock for writing; heavy barrier; WE, the loads of the
//!   entries. The reader sees the writer, or the writer the reader. RB is an acquire, and pairs
//!   with the release of the last writer.
//! - The id, too: a reader that enters has loaded it before RE. So if a writer finds none after the
//!   heavy barrier, each reader that enters sees the writer.
//! - RU, the store that clears the entry, a release, pairs with WE, an acquire. WE may find the
//!   entry in use for another lock already: RE, a release, serves as well. Or WE may not load the
//!   entry at all, since the thread has exited: then `slots_in_use` has acquired its end.
//! - RU, light barrier, RK, the load of `waited`; WK, its increment, heavy barrier, then the halt's
//!   comparison: the reader kicks, or the halt does not sleep.
//!
//! # Where this deviates from the published form
//!
//! - Readers enter a table of thread slots, not per-CPU counters, and the grace period is a heavy
//!   barrier, as said above.
//! - A thread that reads more than eight such locks at once, or has no slot, counts itself in the
//!   lock, on a shared line.
//! - So does a reader that finds a writer, with the bounds of [`super::overlock_rw`].

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::overlock_rw::OverlockRw;
use crate::facts::{Facts, HasFacts};
use crate::platform::{Atomic, Deadline, FutexPlatform, Kick, Platform, Spin};
use crate::raw::{ConstLock, RawDowngradeRwLock, RawForkRwLock, RawRwLock, RawTimedRwLock};
use crate::sleep::Overlock;
use crate::slot::Entry;

/// How long a writer spins on an entry before it sleeps. Most sections are shorter, and a reader
/// that has lost its CPU is away for a thousand times as long.
const SPIN_NS: u64 = 5_000;

/// The per-CPU reader-writer semaphore: see the [module's page](self).
#[derive(Debug)]
pub struct PerCpuRwSem<P: Platform> {
    lock: OverlockRw<P>,
    id: P::U32,
}

/// A reader's acquisition: by an entry, or counted.
#[derive(Debug)]
pub struct Read<P: Platform>(Option<&'static Entry<P>>);

impl<P: Platform> PerCpuRwSem<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        PerCpuRwSem {
            lock: OverlockRw::new(),
            id: Atomic::ZERO,
        }
    }
}

impl<P: Platform> Default for PerCpuRwSem<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> ConstLock for PerCpuRwSem<P> {
    const INIT: Self = Self::new();
}

impl<P: FutexPlatform> PerCpuRwSem<P> {
    /// Enters without a write to the lock, if nobody writes and the thread has an entry left.
    #[inline]
    fn enter(&self) -> Option<&'static Entry<P>> {
        let id = self.id.load(Relaxed);
        if id == 0 {
            self.give_id();
            return None;
        }
        let entries = &P::tables().slot(P::slot()?).entries.0;
        let mut entry = &entries[0];
        if entry.holds.load(Relaxed) != 0 {
            entry = free_entry::<P>(entries)?;
        }
        // RE. Release: the entry may have named another lock before. To a writer of that one, this
        // store too says that its reader has left. (RU alone is not enough: a later relaxed store
        // is not part of its release sequence.)
        entry.holds.store(id, Release);
        P::light_barrier();
        // RB: acquire, pairs with WU of the inner lock.
        if !self.lock.is_write_locked_acquire() {
            return Some(entry);
        }
        clear(entry);
        None
    }

    /// Gives the lock its id. The first reader does so, and then counts itself.
    #[cold]
    #[inline(never)]
    fn give_id(&self) {
        // Relaxed, also where it fails: another reader was first.
        let _ = self.id.compare_exchange(0, new_id::<P>(), Relaxed, Relaxed);
    }

    /// Returns the entry of a reader that has not left.
    fn find_entry(&self) -> Option<&'static Entry<P>> {
        let id = self.id.load(Relaxed);
        if id == 0 {
            return None;
        }
        P::tables()
            .first(P::slots_in_use())
            .flat_map(|slot| &slot.entries.0)
            // WE: acquire, pairs with RU and RE.
            .find(|entry| entry.holds.load(Acquire) == id)
    }

    /// Waits until no reader is left. The caller has the inner lock for writing; at its limit this
    /// releases it.
    fn drain(&self, until: Option<Deadline>) -> bool {
        // WB was the acquisition.
        P::heavy_barrier();
        while let Some(entry) = self.find_entry() {
            if !self.wait_for_entry(entry, until) {
                // SAFETY: the caller has acquired it.
                unsafe { self.lock.unlock_write(()) };
                return false;
            }
        }
        true
    }

    /// Waits until the reader with this entry has left. Returns false at the limit.
    #[cold]
    fn wait_for_entry(&self, entry: &Entry<P>, until: Option<Deadline>) -> bool {
        // Not the entry's value: that may be 0 already, or another lock's id.
        let id = self.id.load(Relaxed);
        let left = |seen| seen != id;
        let end = Deadline::earlier::<P>(until, P::now().plus_nanos(SPIN_NS));
        // WE
        if P::wait_until(&entry.holds, Acquire, Spin::Until(end), left).is_ok() {
            return true;
        }
        // WK
        entry.waited.fetch_add(1, Relaxed);
        P::heavy_barrier();
        let gone = loop {
            // WE
            if left(entry.holds.load(Acquire)) {
                break true;
            }
            if until.is_some_and(Deadline::is_over::<P>) {
                break false;
            }
            P::halt(&entry.holds, id, until);
        };
        entry.waited.fetch_sub(1, Relaxed);
        gone
    }
}

/// Ends a read with this entry. The lock may be freed after the store (P3).
#[inline]
fn clear<P: FutexPlatform>(entry: &'static Entry<P>) {
    // RU: release, pairs with WE.
    entry.holds.store(0, Release);
    P::light_barrier();
    // RK
    if entry.waited.load(Relaxed) != 0 {
        kick_writers(entry);
    }
}

/// Kicks all writers that wait for this entry, also those of locks that it named before.
#[cold]
#[inline(never)]
fn kick_writers<P: FutexPlatform>(entry: &'static Entry<P>) {
    P::kick(&entry.holds, Kick::All);
}

/// Returns a free entry of a thread that reads another lock as well. It stays free: only this
/// thread uses it, and signal handlers leave it as they found it.
#[cold]
#[inline(never)]
fn free_entry<P: FutexPlatform>(entries: &[Entry<P>]) -> Option<&Entry<P>> {
    entries.iter().find(|entry| entry.holds.load(Relaxed) == 0)
}

/// Returns an id that no other lock has, as long as fewer than 2^32 locks were read. (Two locks
/// with one id wait for each other's readers.)
fn new_id<P: FutexPlatform>() -> u32 {
    loop {
        // Relaxed: only that it is new.
        let id = P::tables().numbers.0.fetch_add(1, Relaxed).wrapping_add(1);
        if id != 0 {
            return id;
        }
    }
}

// SAFETY: P2, by the orderings above; counted readers and writers exclude each other by the inner
// lock.
unsafe impl<P: FutexPlatform> RawRwLock for PerCpuRwSem<P> {
    type Read = Read<P>;
    type Write = ();

    const NAME: &'static str = "percpu_rwsem";

    #[inline]
    fn read(&self) -> Read<P> {
        let entry = self.enter();
        if entry.is_none() {
            self.lock.read();
        }
        Read(entry)
    }

    #[inline]
    fn try_read(&self) -> Option<Read<P>> {
        match self.enter() {
            Some(entry) => Some(Read(Some(entry))),
            None => self.lock.try_read().map(|()| Read(None)),
        }
    }

    #[inline]
    unsafe fn unlock_read(&self, token: Read<P>) {
        match token.0 {
            Some(entry) => {
                crate::check!(
                    entry.holds.load(Relaxed) == self.id.load(Relaxed),
                    "unlock of a lock that this reader does not hold"
                );
                clear(entry);
            }
            // SAFETY: the caller's promise; it has counted itself.
            None => unsafe { self.lock.unlock_read(()) },
        }
    }

    fn write(&self) {
        self.lock.write();
        self.drain(None);
    }

    fn try_write(&self) -> Option<()> {
        self.lock.try_write()?;
        P::heavy_barrier();
        if self.find_entry().is_none() {
            return Some(());
        }
        // SAFETY: acquired above.
        unsafe { self.lock.unlock_write(()) };
        None
    }

    #[inline]
    unsafe fn unlock_write(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.unlock_write(()) }
    }

    fn is_locked(&self) -> bool {
        self.lock.is_locked() || self.find_entry().is_some()
    }

    fn is_write_locked(&self) -> bool {
        self.lock.is_write_locked()
    }

    fn is_contended(&self) -> bool {
        let waited = |entry: &Entry<P>| entry.waited.load(Relaxed) != 0;
        self.lock.is_contended() || self.find_entry().is_some_and(waited)
    }
}

// SAFETY: as above; a thread that gives up has not entered, or has left.
unsafe impl<P: FutexPlatform> RawTimedRwLock for PerCpuRwSem<P> {
    fn read_until(&self, deadline: impl Into<Deadline>) -> Option<Read<P>> {
        match self.enter() {
            Some(entry) => Some(Read(Some(entry))),
            None => self.lock.read_until(deadline).map(|()| Read(None)),
        }
    }

    fn write_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        let deadline = deadline.into();
        self.lock.write_until(deadline)?;
        self.drain(Some(deadline)).then_some(())
    }
}

// SAFETY: as above; the writer becomes a counted reader in one step.
unsafe impl<P: FutexPlatform> RawDowngradeRwLock for PerCpuRwSem<P> {
    unsafe fn downgrade(&self, (): ()) -> Read<P> {
        // SAFETY: the caller's promise.
        unsafe { self.lock.downgrade(()) };
        Read(None)
    }
}

// SAFETY: only the inner lock may name a thread; entries of threads that exist only in the parent
// are cleared with their slots.
unsafe impl<P: FutexPlatform> RawForkRwLock for PerCpuRwSem<P> {
    unsafe fn forget_waiters(&self, written: bool) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.forget_waiters(written) };
        if !written && self.lock.is_write_locked() && self.find_entry().is_some() {
            // SAFETY: P2: that writer, which exists only in the parent, was still waiting for the
            // calling thread. Nobody else uses the lock.
            unsafe { self.lock.unlock_write(()) };
        }
    }
}

impl<P: Platform> HasFacts for PerCpuRwSem<P> {
    const FACTS: Facts = Facts {
        about: "reading touches no shared line, writing checks every thread",
        bound: Overlock::<P>::FACTS.bound,
        tried_in_handlers: true,
        ..Facts::SLEEPING
    };
}

#[cfg(test)]
mod tests;
