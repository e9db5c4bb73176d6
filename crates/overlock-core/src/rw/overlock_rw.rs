//! The recommended reader-writer lock. `overlock::RwLock`, `ovl_rwlock_t` and the drop-in's
//! `pthread_rwlock_t` are built on it.
//!
//! It is a word that holds the lock's state, and a gate for threads that want to exclude others and
//! have to wait. Mellor-Crummey and Scott ("Scalable Reader-Writer Synchronization for
//! Shared-Memory Multiprocessors", 1991) and the kernel's qrwlock combine a queue and a word in the
//! same way. Theirs spin, and every waiter stands in the queue. Here only the first of the waiting
//! writers watches the word, and readers sleep on it together: one release lets them all in.
//!
//! # Layout
//!
//! `gate: Overlock`, the recommended mutex, and `word: u32`:
//!
//! ```text
//!     31       30       29       28        27          26          25       24   23      0
//! +---------+-------+--------+--------+-----------+------------+----------+------+---------+
//! | writing | first | others | closed | upgrading | upgradable | reserved | full | readers |
//! +---------+-------+--------+--------+-----------+------------+----------+------+---------+
//! ```
//!
//! | bits | who writes them, and when |
//! |---|---|
//! | writing | set by an acquisition for writing, cleared by its unlock |
//! | first | set by the gate's owner, which is about to halt on the word; cleared by it, and by the thread that kicks it |
//! | others | set by another thread that is about to halt on the word; cleared by the thread that kicks them |
//! | closed | set by a writer that owns the gate or has a rank, which newcomers may not bypass, or for the gate's owner by a fair unlock; cleared by it |
//! | reserved | set by an upgradable reader that owns the gate, which only readers may bypass; cleared by it |
//! | upgrading | set and cleared by the upgradable reader: it waits until the other readers have left |
//! | upgradable | set with the share of the upgradable reader, and cleared with it |
//! | readers | each reader, coming and going |
//! | full | the top bit of readers: too many of them |
//!
//! # States
//!
//! (writing, readers); U where one of the readers is the upgradable one:
//!
//! ```text
//! (0, n)   --read-->          (0, n + 1)     closed, upgrading or full: in vain, and it leaves again
//! (1, n)   --count itself-->  (1, n + 1)     the caller owns its share as soon as writing is clear
//! (w, n)   --leave-->         (w, n - 1)     a thread that waits for that is kicked
//! (0, n)   --upgradable-->    (0, n + 1) U
//! (0, 1) U --upgrade-->       (1, 0)
//! (0, 0)   --write-->         (1, 0)
//! (1, n)   --unlock-->        (0, n)         all sleepers are kicked
//! (1, n)   --downgrade-->     (0, n + 1)     as above; the share may be the upgradable one
//! ```
//!
//! A thread that cannot acquire at once first backs off and polls: 14 times, 6.3 us in all, besides
//! yields at the end of its time slice. Then
//!
//! ```text
//! a reader      sleeps, and begins again; after BARGE_DELAY it counts itself behind the writer
//! a writer, an  waits for the gate. Its owner spins on the word for 5 us, then sleeps on it. A writer that finds
//! upgradable    only readers closes the lock at once, another one at the first poll after BARGE_DELAY. An
//!               upgradable reserves it then
//! the upgrader  sets upgrading, spins for 5 us, sleeps
//! ```
//!
//! A thread with a [rank](Platform::rank) does not depend on the gate's owner, which may have lost
//! its CPU. A writer of rank waits for the word at once, and closes the lock. A reader of rank
//! takes a lock that nobody holds, and barges at once where others may later. Kicks are for all
//! that sleep there, and the system wakes the highest rank first.
//!
//! A reader that [may barge](Passing) ignores closed and upgrading, at once or after BARGE_DELAY,
//! and counts itself behind a writer from then on.
//!
//! # Invariants
//!
//! - I1: writing is set only by an exchange that finds writing clear and no reader, or only the
//!   upgrader's share. So a thread that has counted itself owns a share whenever writing is clear,
//!   until it leaves.
//! - I2: first and reserved are set only while a thread owns the gate, which clears them as it
//!   acquires or gives up. So a fair unlock that finds first closes the lock for a thread that will
//!   open it. Closed is set only while such a thread or a writer of rank waits, which clears it in
//!   the same way. A writer of rank that gives up clears all three, and kicks: others set them
//!   again.
//! - I3: others is set only together with what its sleepers wait for: writing, closed or upgrading;
//!   or, by a thread of rank, readers. A thread that ends one of the three clears others too and
//!   kicks all, or sets the next of the three. First is cleared only with a kick for all, or as
//!   writing is set and others is kept.
//! - I4: an unlock's change of the word is its last access: after that it needs only the word's
//!   address. A thread that passes the gate owns the lock afterwards, or gives up there and is
//!   about to return from a call that waited. So the last owner of the lock may free it, even while
//!   earlier owners' unlocks are under way.
//!
//! # Orderings
//!
//! RA, acquire: a reader's addition, or the load of a counted reader that finds writing clear. WA,
//! acquire: an exchange that sets writing. They pair with RU, the release of a reader's subtraction
//! (WA only), and WU, the release of a change that clears writing. All changes are
//! read-modify-writes, so release sequences never break.
//!
//! # Why no wake-up is lost
//!
//! A thread that goes to sleep sets its flag in an exchange that expects the word with which it
//! cannot acquire, and halts on the result. A change before the halt makes it return. Each change
//! after it that may end a wait finds the flag, and kicks. Those changes are:
//!
//! | sleeper | until | changed, and kicked, by |
//! |---|---|---|
//! | a writer with the gate; a thread of rank | no writer, no reader | the writer's unlock and downgrade; the last reader |
//! | an upgradable with the gate | no writer, no other upgradable | as above; the upgradable reader's unlock and downgrade |
//! | the upgrader | readers = 1 | the last other reader |
//! | a reader that is counted behind a writer | no writer | the writer's unlock and downgrade |
//! | a reader that is not counted | not writing, closed or upgrading (I3) | the same; a thread that gives up at the gate, or an upgrade; an upgradable that comes through the gate |
//!
//! Every kick is for all that sleep there: a kick for one thread might reach another that has come
//! since. Few are woken in vain, since with readers inside only the gate's owner, and the threads
//! that it keeps out, sleep there. There are no timers except the caller's deadline, and
//! BARGE_DELAY of a reader that may barge later.
//!
//! # Bounds
//!
//! - Writers and readers of rank bypass all others.
//! - A writer at the gate that finds only readers is bypassed by nobody after that, except by
//!   readers that may barge.
//! - A writer at the gate that finds writers may be bypassed by them until BARGE_DELAY has passed
//!   and it polls; each of their unlocks makes it poll. So it waits for the gate, which has the
//!   bounds of [`overlock`](crate::sleep::overlock), for BARGE_DELAY, and for those that are inside
//!   then. The same holds for an upgradable reader, and writers and upgradable readers.
//! - An upgradable reader keeps no reader out before it upgrades. So the one inside may wait for a
//!   reader while another waits.
//! - A reader may be bypassed by writers for BARGE_DELAY. At its first poll after that it is
//!   counted, if a writer is inside and the lock is not closed. It owns its share as soon as that
//!   writer leaves.
//! - A fair unlock closes the lock for a gate's owner that sleeps: that one is the next to exclude
//!   others. Threads that are awake, or have not come to the gate yet, are promised nothing.
//! - At most 2^24 readers.
//!
//! # Where this deviates from the published forms
//!
//! - Waiting readers do not queue. They sleep on the word, so that one release lets all in.
//! - The queue is a mutex that sleeps, not a spinlock, and only up to BARGE_DELAY may writers barge
//!   past its owner.
//! - Upgradable readers, fair unlocks, and readers that may barge are additions.

mod fork;
mod recursive;
#[cfg(test)]
mod tests;
mod upgrade;
mod wait;

pub use recursive::RecursiveRw;
pub use wait::abandon;

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::facts::{Facts, HasFacts};
use crate::platform::{Atomic, Deadline, FutexPlatform, Kick, Platform};
use crate::raw::{ConstLock, RawDowngradeRwLock, RawLock, RawRwLock, RawTimedRwLock};
use crate::sleep::Overlock;

/// How long a waiter may be bypassed: longer than most sections take, and than a thread is away
/// that has lost its CPU.
pub const BARGE_DELAY_NS: u64 = 2_000_000;

const READER: u32 = 1;
const FULL: u32 = 1 << 24;
const READERS: u32 = (FULL << 1) - 1;
const RESERVED: u32 = 1 << 25;
const UPGRADABLE: u32 = 1 << 26;
const UPGRADING: u32 = 1 << 27;
const CLOSED: u32 = 1 << 28;
const OTHERS: u32 = 1 << 29;
const FIRST: u32 = 1 << 30;
const WRITING: u32 = 1 << 31;

/// The bits that keep out a reader that may not barge.
const SHUT: u32 = WRITING | CLOSED | UPGRADING;

/// When a reader may barge past waiting writers and upgraders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// At once: it waits only for the thread that writes.
    AtOnce,
    /// After [`BARGE_DELAY_NS`].
    Later,
    /// Never: it waits while the lock is closed.
    Never,
}

/// Why an acquisition failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It would have to wait.
    Busy,
    /// Its deadline has passed.
    Late,
    /// There are too many readers.
    Full,
}

/// The recommended reader-writer lock: see the [module's page](self).
#[derive(Debug)]
pub struct OverlockRw<P: Platform> {
    gate: Overlock<P>,
    word: P::U32,
}

impl<P: Platform> OverlockRw<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        OverlockRw {
            gate: Overlock::new(),
            word: Atomic::ZERO,
        }
    }
}

impl<P: Platform> Default for OverlockRw<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> ConstLock for OverlockRw<P> {
    const INIT: Self = Self::new();
}

impl<P: FutexPlatform> OverlockRw<P> {
    /// Acquires for reading if no writer is inside or waits. The fast path.
    #[inline]
    pub fn enter(&self) -> bool {
        let entered = self.come_in();
        if !entered {
            self.back_out();
        }
        entered
    }

    /// The first half of [`enter`](Self::enter). A reader that fails is counted, and must [back
    /// out](Self::back_out) next.
    #[inline]
    pub fn come_in(&self) -> bool {
        // (w, n) -> (w, n + 1). RA: acquire, pairs with WU.
        self.word.fetch_add(READER, Acquire) & (SHUT | FULL) == 0
    }

    /// Acquires for writing if the word is 0. The fast path.
    #[inline]
    pub fn try_write_now(&self) -> bool {
        // (0, 0) -> (1, 0). WA: acquire, pairs with RU and WU.
        self.word
            .compare_exchange(0, WRITING, Acquire, Relaxed)
            .is_ok()
    }

    /// Acquires for reading, unless `until` passes first. Tries at least once.
    ///
    /// # Errors
    ///
    /// [`Refused::Late`], [`Refused::Full`].
    pub fn read_passing(&self, passing: Passing, until: Option<Deadline>) -> Result<(), Refused> {
        // Relaxed: `enter` acquires. Loaded first, since an addition in vain would take the line.
        if self.word.load(Relaxed) & (SHUT | FULL) == 0 && self.enter() {
            return Ok(());
        }
        self.read_slow(passing, until)
    }

    /// Acquires for reading if that needs no waiting.
    ///
    /// # Errors
    ///
    /// [`Refused::Busy`], [`Refused::Full`].
    pub fn try_read_passing(&self, passing: Passing) -> Result<(), Refused> {
        let shut = match passing {
            Passing::Never => SHUT,
            _ => WRITING,
        };
        let mut seen = self.word.load(Relaxed);
        while seen & shut == 0 {
            if seen & FULL != 0 {
                return Err(Refused::Full);
            }
            // (0, n) -> (0, n + 1). RA: acquire, pairs with WU.
            match self
                .word
                .compare_exchange_weak(seen, seen + READER, Acquire, Relaxed)
            {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
        Err(Refused::Busy)
    }

    /// Acquires for writing, unless `until` passes first. Tries at least once. Returns whether it
    /// succeeded.
    pub fn write_within(&self, until: Option<Deadline>) -> bool {
        self.try_write_if_free() || self.write_slow(until)
    }

    /// Whether a writer holds the lock. If not, the last writer's changes are visible.
    #[inline]
    pub(super) fn is_write_locked_acquire(&self) -> bool {
        // Acquire, pairs with WU.
        self.word.load(Acquire) & WRITING != 0
    }

    /// Ends a read.
    #[inline]
    fn leave(&self) {
        let word = ptr::from_ref(&self.word);
        // (w, n) -> (w, n - 1). RU: release, pairs with WA. The lock may be freed from here on
        // (I4).
        let before = self.word.fetch_sub(READER, Release);
        crate::check!(before & READERS != 0, "unlock of a lock that nobody reads");
        if before & (FIRST | OTHERS) != 0 {
            kick_after_reader::<P>(word, before);
        }
    }

    /// Ends a write, and keeps `share`. With `fair`, closes the lock for a gate's owner that
    /// sleeps.
    #[inline]
    fn end_write(&self, share: u32, fair: bool) {
        // (1, 0) -> (0, share). WU: release, pairs with RA and WA. The lock may be freed from here
        // on (I4).
        let alone = self
            .word
            .compare_exchange(WRITING, share, Release, Relaxed)
            .is_ok();
        if !alone {
            self.end_write_slow(share, fair);
        }
    }

    /// Ends a write while other threads sleep, wait counted, or are just backing out.
    #[cold]
    #[inline(never)] // so that releases stay small where they are inlined
    fn end_write_slow(&self, share: u32, fair: bool) {
        let word = ptr::from_ref(&self.word);
        let mut seen = self.word.load(Relaxed);
        crate::check!(seen & WRITING != 0, "unlock of a lock that nobody writes");
        loop {
            let mut next = (seen & !(WRITING | FIRST | OTHERS)) + share;
            if fair && seen & FIRST != 0 {
                next |= CLOSED;
            }
            // (1, n) -> (0, n + share). WU, as above.
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
}

/// Whether a sleeper waits for the reader that leaves, with `before` the word before, which says
/// that some sleep: it was the last reader, or the last one except the upgrader. While a writer is
/// inside, nobody waits for readers.
fn is_awaited(before: u32) -> bool {
    before & WRITING == 0
        && match before & READERS {
            1 => true,
            2 => before & UPGRADING != 0,
            _ => false,
        }
}

/// Kicks after a reader has left, if a sleeper waits for that.
#[cold]
#[inline(never)] // as above
fn kick_after_reader<P: FutexPlatform>(word: *const P::U32, before: u32) {
    if is_awaited(before) {
        kick_all::<P>(word);
    }
}

/// Wakes all that sleep on the word.
fn kick_all<P: FutexPlatform>(word: *const P::U32) {
    P::kick(word, Kick::All);
}

/// Panics on a refusal, for trait methods that cannot return one.
fn counted(result: Result<(), Refused>) {
    assert!(
        result.is_ok(),
        "more than {FULL} readers of one lock: {result:?}"
    );
}

// SAFETY: I1, by the orderings above.
unsafe impl<P: FutexPlatform> RawRwLock for OverlockRw<P> {
    type Read = ();
    type Write = ();

    const NAME: &'static str = "overlock_rw";

    /// Does not barge past a closed lock.
    #[inline]
    fn read(&self) {
        if !self.come_in() {
            self.read_after_conflict();
        }
    }

    /// Does not barge past a closed lock.
    fn try_read(&self) -> Option<()> {
        self.try_read_passing(Passing::Never).ok()
    }

    #[inline]
    unsafe fn unlock_read(&self, (): ()) {
        self.leave();
    }

    #[inline]
    fn write(&self) {
        if !self.try_write_now() {
            self.write_slow(None);
        }
    }

    /// May fail while a reader backs out.
    #[inline]
    fn try_write(&self) -> Option<()> {
        self.try_write_now().then_some(())
    }

    #[inline]
    unsafe fn unlock_write(&self, (): ()) {
        self.end_write(0, false);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & (WRITING | READERS) != 0
    }

    #[inline]
    fn is_write_locked(&self) -> bool {
        self.word.load(Relaxed) & WRITING != 0
    }

    /// Misses threads that back off before they sleep or come to the gate.
    #[inline]
    fn is_contended(&self) -> bool {
        self.word.load(Relaxed) & (FIRST | OTHERS | CLOSED | UPGRADING) != 0
            || self.gate.is_locked()
            || self.gate.is_contended()
    }
}

// SAFETY: as above; a thread that gives up has not entered, or has left.
unsafe impl<P: FutexPlatform> RawTimedRwLock for OverlockRw<P> {
    fn read_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        let result = self.read_passing(Passing::Never, Some(deadline.into()));
        (result != Err(Refused::Late)).then(|| counted(result))
    }

    fn write_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.write_within(Some(deadline.into())).then_some(())
    }
}

// SAFETY: as above; the writer becomes a reader in one step.
unsafe impl<P: FutexPlatform> RawDowngradeRwLock for OverlockRw<P> {
    unsafe fn downgrade(&self, (): ()) {
        self.end_write(READER, false);
    }
}

impl<P: Platform> HasFacts for OverlockRw<P> {
    const FACTS: Facts = Facts {
        about: "the one we recommend: readers count, writers that wait do so at a gate",
        freed_by_last_user: true,
        tried_in_handlers: true,
        compared: true,
        ..Facts::SLEEPING
    };
}
