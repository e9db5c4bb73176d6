//! The reader-writer lock that we recommend: `overlock::RwLock`, `ovl_rwlock_t` and the drop-in's
//! `pthread_rwlock_t` are built on it. A word that is the lock, and a gate for those that want to
//! exclude others and have to wait.
//!
//! Mellor-Crummey and Scott ("Scalable Reader-Writer Synchronization for Shared-Memory
//! Multiprocessors", 1991) and the kernel's qrwlock have a queue beside a word in the same way.
//! Theirs spin, and every waiter stands in the queue. Here only the first of the writers that wait
//! watches the word, and readers sleep on it together: one release lets them all in.
//!
//! # Layout
//!
//! `gate: Overlock`, the recommended mutex, and `word: u32`:
//!
//! ```text
//!     31       30       29       28        27          26        25   24      0
//! +---------+-------+--------+--------+-----------+------------+------+---------+
//! | writing | first | others | closed | upgrading | upgradable | full | readers |
//! +---------+-------+--------+--------+-----------+------------+------+---------+
//! ```
//!
//! | bits | who writes them, and when |
//! |---|---|
//! | writing | set by who acquires for writing, cleared by its unlock |
//! | first | set by the gate's owner, which is about to halt on the word; cleared by it, and by who kicks it |
//! | others | set by a reader or an upgrader that is about to halt on the word; cleared by who kicks them |
//! | closed | set by the gate's owner, whom newcomers have to let pass, or for it by a fair unlock; cleared by it |
//! | upgrading | set and cleared by the upgradable reader: it waits until the other readers have left |
//! | upgradable | set with the share of the upgradable reader, and cleared with it |
//! | readers | by each reader, coming and going |
//! | full | the top bit of readers: too many of them |
//!
//! # States
//!
//! (writing, readers); U where one of the readers is the upgradable one:
//!
//! ```text
//! (0, n)   --read-->         (0, n + 1)     closed, upgrading or full: in vain, and it leaves again
//! (1, n)   --read beside-->  (1, n + 1)     the caller owns its share as soon as writing is clear
//! (w, n)   --leave-->        (w, n - 1)     who waits for that is kicked
//! (0, n)   --upgradable-->   (0, n + 1) U
//! (0, 1) U --upgrade-->      (1, 0)
//! (0, 0)   --write-->        (1, 0)
//! (1, n)   --unlock-->       (0, n)         all that sleep are kicked
//! (1, n)   --downgrade-->    (0, n + 1)     as above; the share may be the upgradable one
//! ```
//!
//! A thread that cannot acquire at once stays away from the word eight times, 13 us in all, and
//! looks again each time. It gives its CPU away where its turn is over. Then
//!
//! ```text
//! a reader      sleeps, and begins anew; after BARGE_DELAY it counts itself beside a writer
//! a writer, an  waits for the gate. Its owner spins on the word for 5 us, then sleeps on it. A writer that finds
//! upgradable    readers alone closes the lock at once, everybody at the first look after BARGE_DELAY
//! the upgrader  sets upgrading, spins for 5 us, sleeps
//! ```
//!
//! A reader that [may pass](Passing) takes no notice of closed and upgrading, at once or after
//! BARGE_DELAY, and counts itself beside a writer from then on.
//!
//! # Invariants
//!
//! - I1: writing is set only by an exchange that finds writing clear and no reader, or the
//!   upgrader's share alone. So who has counted itself owns a share whenever writing is clear,
//!   until it leaves.
//! - I2: first and closed are there only while somebody owns the gate who has not looked since, and
//!   the gate's owner clears both as it acquires or gives up.
//! - I3: others is set only beside what those sleep for: writing, closed or upgrading. Whoever ends
//!   one of the three clears others too and kicks all, or goes over to the next of them.
//! - I4: an unlock's change of the word is its last access: after that it needs the word's address
//!   and nothing else. And nobody gets through the gate, or gives up there, without owning the lock
//!   afterwards or being about to return from a call that waited. So whoever owns the lock last may
//!   free it, whatever the earlier owners' unlocks are at.
//!
//! # Orderings
//!
//! RA, acquire, a reader's addition, or its look once it is counted, which finds writing clear; WA,
//! acquire, an exchange that sets writing. They pair with RU, the release of a reader's subtraction
//! (WA only), and WU, the release of a change that clears writing. All changes are
//! read-modify-writes, so release sequences never break.
//!
//! # Why no wake-up is lost
//!
//! Who goes to sleep sets its flag in an exchange that expects what it cannot acquire, and halts on
//! the result. A change before the halt makes it return; each change after it that may end a wait
//! finds the flag, and kicks. Those changes are:
//!
//! | who sleeps | until | who makes it so, and kicks |
//! |---|---|---|
//! | a writer with the gate | no writer, no reader | the writer's unlock and downgrade; the last reader |
//! | an upgradable with the gate | no writer, no other one | as above; the upgradable reader's unlock and downgrade |
//! | the upgrader | readers = 1 | the last other reader |
//! | a reader beside a writer | no writer | the writer's unlock and downgrade |
//! | a reader that is not counted | neither writing nor closed nor upgrading (I3) | the same; who gives up at the gate, or an upgrade; an upgradable that comes through the gate |
//!
//! Every kick is for all that sleep there, since one for a single thread might reach another that
//! has come since. It wakes few for nothing: beside readers there sleep the gate's owner and those
//! that it keeps out. Nobody has a timer but the caller's deadline, and a reader that may pass
//! later: one of BARGE_DELAY.
//!
//! # Bounds
//!
//! - A writer at the gate that finds readers alone is passed by nobody after that but readers that
//!   may pass. One that finds writers may be passed by them until it has been there for BARGE_DELAY
//!   and looks: each of their unlocks makes it look. So it waits for the gate, which has the bounds
//!   of [`overlock`](crate::sleep::overlock), for BARGE_DELAY, and for those that are inside then.
//! - A reader may be passed by writers for BARGE_DELAY; at its first look after that it is counted,
//!   if there is a writer and the lock is not closed, and owns its share as soon as that writer
//!   leaves.
//! - A fair unlock closes the lock for a gate's owner that sleeps: it is the next of those that
//!   want to exclude others. Who is awake, or has not come to the gate yet, is promised nothing.
//! - At most 2^25 readers.

mod fork;
mod states;
#[cfg(test)]
mod tests;
mod upgrade;
mod wait;

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Atomic, ConstPlatform, Deadline, Kick, Platform, Zero};
use crate::raw::{ConstLock, CreateError, RawDowngradeRwLock, RawLock, RawRwLock, RawTimedRwLock};
use crate::sleep::Overlock;

pub(super) use states::{DIAGRAM, Step};

/// For how long those that wait let others pass: for longer than most sections take and a thread
/// that has lost its CPU is backoff.
pub const BARGE_DELAY_NS: u64 = 2_000_000;

const READER: u32 = 1;
const FULL: u32 = 1 << 25;
const READERS: u32 = (FULL << 1) - 1;
const UPGRADABLE: u32 = 1 << 26;
const UPGRADING: u32 = 1 << 27;
const CLOSED: u32 = 1 << 28;
const OTHERS: u32 = 1 << 29;
const FIRST: u32 = 1 << 30;
const WRITING: u32 = 1 << 31;

/// What keeps out a reader that may not pass.
const SHUT: u32 = WRITING | CLOSED | UPGRADING;

/// When a reader may pass writers and upgraders that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It waits for none but the one that writes.
    AtOnce,
    /// After [`BARGE_DELAY_NS`].
    Later,
    /// It passes nobody who has closed the lock.
    Never,
}

/// Why somebody is not inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It would have had to wait.
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

impl<P: ConstPlatform> OverlockRw<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        OverlockRw {
            gate: Overlock::new(),
            word: Zero::ZERO,
        }
    }
}

impl<P: ConstPlatform> Default for OverlockRw<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: ConstPlatform> ConstLock for OverlockRw<P> {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new lock, as intended
    const INIT: Self = Self::new();
}

impl<P: Platform> OverlockRw<P> {
    /// The shortest way to read: if nobody is in the way.
    #[inline]
    pub fn enter(&self) -> bool {
        let entered = self.come_in();
        if !entered {
            self.back_out();
        }
        entered
    }

    /// The first half of [`enter`](Self::enter): whoever comes in vain is counted, and [backs
    /// out](Self::back_out) next.
    #[inline]
    pub fn come_in(&self) -> bool {
        // (w, n) -> (w, n + 1). RA: acquire, pairs with WU.
        let entered = self.word.fetch_add(READER, Acquire) & (SHUT | FULL) == 0;
        if entered {
            Step::Read.taken::<P>();
        }
        entered
    }

    /// The shortest way to write: if nobody is there.
    #[inline]
    pub fn try_write_now(&self) -> bool {
        // (0, 0) -> (1, 0). WA: acquire, pairs with RU and WU.
        let acquired = self
            .word
            .compare_exchange(0, WRITING, Acquire, Relaxed)
            .is_ok();
        if acquired {
            Step::Write.taken::<P>();
        }
        acquired
    }

    /// Reads, unless `until` passes first. Looks at least once.
    ///
    /// # Errors
    ///
    /// [`Refused::Late`], [`Refused::Full`].
    pub fn read_passing(&self, passing: Passing, until: Option<Deadline>) -> Result<(), Refused> {
        // Relaxed, a look first: entering acquires, and in vain it would pull the word to this CPU.
        if self.word.load(Relaxed) & (SHUT | FULL) == 0 && self.enter() {
            return Ok(());
        }
        self.read_slow(passing, until)
    }

    /// Reads if that needs no waiting.
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
                Ok(_) => {
                    Step::TryRead.taken::<P>();
                    return Ok(());
                }
                Err(now) => seen = now,
            }
        }
        Err(Refused::Busy)
    }

    /// Writes, unless `until` passes first; whether it does. Looks at least once.
    pub fn write_within(&self, until: Option<Deadline>) -> bool {
        self.try_write_if_free() || self.write_slow(until)
    }

    /// Whether a writer holds the lock; if not, with what the last one did.
    #[inline]
    pub(super) fn is_write_locked_acquire(&self) -> bool {
        // Acquire, pairs with WU.
        self.word.load(Acquire) & WRITING != 0
    }

    /// A reader takes itself out.
    #[inline]
    fn leave(&self) {
        let word = ptr::from_ref(&self.word);
        // (w, n) -> (w, n - 1). RU: release, pairs with WA. From here on the lock may be gone (I4).
        let before = self.word.fetch_sub(READER, Release);
        Step::Leave.taken::<P>();
        crate::check!(before & READERS != 0, "unlock of a lock that nobody reads");
        if before & (FIRST | OTHERS) != 0 {
            kick_after_reader::<P>(word, before);
        }
    }

    /// The writer goes, or stays as a reader: with `share`. `fair`: lets nobody pass the gate's
    /// owner if that one sleeps.
    #[inline]
    fn end_write(&self, share: u32, fair: bool) {
        // (1, 0) -> (0, share). WU: release, pairs with RA and WA. From here on the lock may be
        // gone (I4).
        let alone = self
            .word
            .compare_exchange(WRITING, share, Release, Relaxed)
            .is_ok();
        if alone {
            Step::Unlock.taken::<P>();
        } else {
            self.end_write_slow(share, fair);
        }
    }

    /// Others are there: they sleep, wait for their share, or are just finding the writer.
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
        Step::Unlock.taken::<P>();
        if seen & (FIRST | OTHERS) != 0 {
            Step::UnlockKicks.taken::<P>();
            kick_all::<P>(word);
        }
    }
}

/// Whether a reader that leaves this behind it is waited for: it was the last one, or the last
/// beside the upgrader. (Beside a writer nobody waits for readers alone.)
fn is_awaited(before: u32) -> bool {
    before & WRITING == 0
        && match before & READERS {
            1 => before & FIRST != 0,
            2 => before & UPGRADING != 0,
            _ => false,
        }
}

/// A reader has left, and somebody sleeps.
#[cold]
#[inline(never)] // as above
fn kick_after_reader<P: Platform>(word: *const P::U32, before: u32) {
    if is_awaited(before) {
        Step::LeaveKicks.taken::<P>();
        kick_all::<P>(word);
    }
}

/// Whoever sleeps on the word looks again.
fn kick_all<P: Platform>(word: *const P::U32) {
    P::kick_at(word, Kick::All);
}

/// For a trait's method that has no way to refuse.
fn counted(result: Result<(), Refused>) {
    assert!(
        result.is_ok(),
        "more than {FULL} readers of one lock: {result:?}"
    );
}

// SAFETY: I1, by the orderings above.
unsafe impl<P: Platform> RawRwLock for OverlockRw<P> {
    type Read = ();
    type Write = ();

    const NAME: &'static str = "overlock_rw";

    fn create() -> Result<Self, CreateError> {
        Ok(OverlockRw {
            gate: Overlock::create()?,
            word: P::U32::new(0),
        })
    }

    /// Passes nobody.
    #[inline]
    fn read(&self) {
        if !self.come_in() {
            self.read_after_conflict();
        }
    }

    /// Passes nobody.
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

    /// May fail where a reader finds out that it has to wait.
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

    /// Who stays away from the word before it goes to sleep or to the gate does not show.
    #[inline]
    fn is_contended(&self) -> bool {
        self.word.load(Relaxed) & (FIRST | OTHERS | CLOSED | UPGRADING) != 0
            || self.gate.is_locked()
            || self.gate.is_contended()
    }
}

// SAFETY: as above; who gives up has not entered, or has left.
unsafe impl<P: Platform> RawTimedRwLock for OverlockRw<P> {
    fn read_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        let result = self.read_passing(Passing::Never, Some(deadline.into()));
        (result != Err(Refused::Late)).then(|| counted(result))
    }

    fn write_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.write_within(Some(deadline.into())).then_some(())
    }
}

// SAFETY: as above; the writer becomes a reader in one step.
unsafe impl<P: Platform> RawDowngradeRwLock for OverlockRw<P> {
    unsafe fn downgrade(&self, (): ()) {
        self.end_write(READER, false);
        Step::Downgrade.taken::<P>();
    }
}
