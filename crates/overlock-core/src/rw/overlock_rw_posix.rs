//! The recommended reader-writer lock in a form that may be freed as soon as it is free, and whose readers may pass writers that wait: what POSIX
//! asks of `pthread_rwlock_t`. A word that is the lock, and a gate for those that wait for it.
//!
//! Why not [`overlock_rw`](super::overlock_rw): there a writer holds the gate while it waits for the readers and while it writes, so a reader
//! that comes then cannot tell the two, and must wait. POSIX's readers may have to come in beside a writer that only waits: a thread that
//! reads already may read again. And both unlocks of it look at the lock after the release. Here the gate is held by the first of those that
//! wait for long, and only while it waits; the word says the rest. (Mellor-Crummey and Scott, 1991, and the kernel's qrwlock have a queue beside a word
//! in the same way; theirs spin.)
//!
//! # Layout
//!
//! `gate: Overlock`, 16 bytes, and `word: u32`:
//!
//! ```text
//!     31       30        29        28      27   26      0
//! +---------+--------+---------+--------+------+---------+
//! | writing | asleep | passing | closed | full | readers |
//! +---------+--------+---------+--------+------+---------+
//! ```
//!
//! | bits | who writes them, and when |
//! |---|---|
//! | writing | set by who acquires for writing, cleared by its unlock |
//! | asleep | set by the gate's owner, which is about to halt on the word; cleared with the bits that it waits for |
//! | passing | set by a reader without the gate that has counted itself and is about to halt on the word; cleared with writing |
//! | closed | set by the gate's owner, a writer that newcomers have to let pass; cleared by it |
//! | readers | by each reader, coming and going |
//! | full | the top bit of readers: too many of them |
//!
//! # States
//!
//! (writing, readers):
//!
//! ```text
//! (0, n)  --read-->         (0, n + 1)    closed, written or full: in vain, and it leaves again; waits then
//! (1, n)  --read beside-->  (1, n + 1)    the caller owns its share as soon as writing is clear
//! (w, n)  --leave-->        (w, n - 1)    0 and asleep: kicks
//! (0, 0)  --write-->        (1, 0)        closed and asleep are cleared
//! (1, n)  --unlock-->       (0, n)        asleep and passing are cleared: kicks
//! ```
//!
//! Who cannot acquire at once stays away from the word three times, 15 us in all, 26 us where [CPUs are far apart](crate::looks), and looks again each
//! time, but for readers that pass at once, and who has not the time for that. Then it waits for the gate, and the gate's owner for the word:
//!
//! ```text
//! a reader: readers + 1, spins, sleeps until writing is clear
//! a writer: spins until the word is 0, sleeps; while readers are inside, or after PATIENCE: closed = 1
//! ```
//!
//! A reader that [may pass](Passing) waits for the gate for no longer than PATIENCE, or not at all, then reads beside whoever waits there:
//! readers + 1, spins, sleeps until writing is clear.
//!
//! # Invariants
//!
//! - I1: writing is set only by an exchange that finds readers 0 and writing clear. So whoever has counted itself owns a share
//!   whenever writing is clear, until it takes itself out.
//! - I2: asleep and closed are set by the gate's owner alone, asleep only beside writing or with closed; and it leaves the gate with neither: a
//!   reader's asleep is cleared by the unlock that it waits for, or by itself; a writer's exchange clears both.
//! - I3: passing is set only beside writing, by readers whose shares are counted. So while one of them sleeps on the word readers is not 0.
//! - I4: an unlock's change of the word is its last access: after that it needs the word's address and nothing else. And nobody gets
//!   through the gate, or gives up there, without owning the lock afterwards or being about to return from a call that waited. So whoever
//!   owns the lock last may free it, whatever the earlier owners' unlocks are at.
//!
//! # Orderings
//!
//! RA, acquire, a reader's addition, or its look once it is counted, which finds writing clear; WA, acquire, a writer's exchange. They pair with RU, the
//! release of a reader's subtraction (WA only), and WU, the release of a writer's unlock. All changes are read-modify-writes, so release sequences never break.
//!
//! # Why no wake-up is lost
//!
//! The gate's owner sets asleep in an exchange that expects what it cannot acquire, and halts on the result. Whoever changes the
//! word before the halt makes it return; after it, the one that makes the word what is waited for sees asleep, and kicks. A reader's kick is for one
//! thread, and reaches it: nobody but the gate's owner halts while there are no readers (I3). A writer's kick is for all, if there are readers that pass;
//! for them the same holds. What others still wait for is the gate, which has the bounds of [`overlock`](crate::spin::overlock).
//!
//! # Bounds
//!
//! While it stays away from the word, everybody may pass it, and the lock may be free for 13 us though all the others wait. A writer at the gate is passed by
//! all who come, until it finds readers inside when it has spun for 5 us, or until it has been there for PATIENCE. From then on, while it sleeps and after, it is
//! passed by none but readers that may pass: they do at once, or after PATIENCE. So writers that wait for readers whose sections are shorter than that do
//! not starve, but where readers that pass at once never leave the lock to them. At most 2^27 readers.

mod fork;
mod states;
#[cfg(test)]
mod tests;
mod wait;

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Atomic, ConstPlatform, Instant, Kick, Platform, Zero};
use crate::raw::{ConstLock, CreateError, RawLock, RawRwLock, RawTimedRwLock};
use crate::spin::Overlock;

use states::Step;

/// How long those that may pass wait behind those that wait, and writers let other writers pass: for longer than most sections take and a
/// thread that has lost its CPU is away.
pub const PATIENCE_NS: u64 = 2_000_000;

const READER: u32 = 1;
const FULL: u32 = 1 << 27;
const READERS: u32 = (FULL << 1) - 1;
const CLOSED: u32 = 1 << 28;
const PASSING: u32 = 1 << 29;
const ASLEEP: u32 = 1 << 30;
const WRITING: u32 = 1 << 31;

/// When a reader may pass writers that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It waits for none but the one that writes.
    AtOnce,
    /// After [`PATIENCE_NS`].
    Later,
    /// It passes no writer that has the gate and has closed the lock.
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

/// A reader-writer lock that may be freed as soon as it is free: see the [module's page](self). 20 bytes.
#[derive(Debug)]
pub struct OverlockRwPosix<P: Platform> {
    gate: Overlock<P>,
    word: P::U32,
}

impl<P: ConstPlatform> OverlockRwPosix<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        OverlockRwPosix {
            gate: Overlock::new(),
            word: Zero::ZERO,
        }
    }
}

impl<P: ConstPlatform> Default for OverlockRwPosix<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: ConstPlatform> ConstLock for OverlockRwPosix<P> {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new lock, as intended
    const INIT: Self = Self::new();
}

/// Without a writer, and nobody waits at the gate for readers to leave.
fn is_open(word: u32) -> bool {
    word & (WRITING | CLOSED | FULL) == 0
}

impl<P: Platform> OverlockRwPosix<P> {
    /// The shortest way to read: if nobody is in the way.
    #[inline]
    pub fn enter(&self) -> bool {
        // (w, n) -> (w, n + 1). RA: acquire, pairs with WU.
        let entered = is_open(self.word.fetch_add(READER, Acquire));
        if entered {
            Step::Read.taken::<P>();
        } else {
            Step::ReadInVain.taken::<P>();
            self.leave();
        }
        entered
    }

    /// The shortest way to write: if nobody is there.
    #[inline]
    pub fn seize(&self) -> bool {
        // (0, 0) -> (1, 0). WA: acquire, pairs with RU and WU.
        let seized = self
            .word
            .compare_exchange(0, WRITING, Acquire, Relaxed)
            .is_ok();
        if seized {
            Step::Write.taken::<P>();
        }
        seized
    }

    /// [`enter`](Self::enter) for those that have reason to look first: in vain it pulls the word to this CPU.
    fn enter_if_open(&self) -> bool {
        // Relaxed: entering acquires.
        is_open(self.word.load(Relaxed)) && self.enter()
    }

    /// [`seize`](Self::seize), as above.
    fn seize_if_free(&self) -> bool {
        self.word.load(Relaxed) == 0 && self.seize()
    }

    /// Reads, unless `until` passes first. Looks at least once.
    ///
    /// # Errors
    ///
    /// [`Refused::Late`], [`Refused::Full`].
    pub fn read_passing(&self, passing: Passing, until: Option<Instant>) -> Result<(), Refused> {
        if self.enter_if_open() {
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
        let blocked = match passing {
            Passing::Never => WRITING | CLOSED,
            _ => WRITING,
        };
        let mut seen = self.word.load(Relaxed);
        while seen & blocked == 0 {
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
    pub fn write_within(&self, until: Option<Instant>) -> bool {
        self.seize_if_free() || self.write_slow(until)
    }

    /// Whether somebody waits, as far as one look tells: the first of them has the gate, but for moments between two. Who reads past it does not show, nor
    /// who stays away from the word before it goes there.
    #[inline(always)]
    pub fn has_queue(&self) -> bool {
        self.gate.is_locked()
    }

    /// A reader takes itself out.
    #[inline]
    fn leave(&self) {
        let word = ptr::from_ref(&self.word);
        // (w, n) -> (w, n - 1). RU: release, pairs with WA. From here on the lock may be gone (I4).
        let before = self.word.fetch_sub(READER, Release);
        Step::Leave.taken::<P>();
        crate::check!(before & READERS != 0, "unlock of a lock that nobody reads");
        if before & ASLEEP != 0 && before & READERS == READER {
            kick_gate_owner::<P>(word);
        }
    }
}

/// The last reader has left.
#[cold]
#[inline(never)] // or it is merged with the next, and the releases with it
fn kick_gate_owner<P: Platform>(word: *const P::U32) {
    Step::LeaveKicks.taken::<P>();
    P::kick_at(word, Kick::One);
}

/// A writer has left, and this was in the word.
#[cold]
#[inline(never)] // as above
fn kick_sleepers<P: Platform>(word: *const P::U32, before: u32) {
    if before & PASSING != 0 {
        Step::UnlockKicksAll.taken::<P>();
        P::kick_at(word, Kick::All);
    } else {
        Step::UnlockKicks.taken::<P>();
        P::kick_at(word, Kick::One);
    }
}

/// For a trait's method that has no way to refuse.
fn counted(result: Result<(), Refused>) {
    assert!(
        result.is_ok(),
        "more than {FULL} readers of one lock: {result:?}"
    );
}

// SAFETY: I1, by the orderings above.
unsafe impl<P: Platform> RawRwLock for OverlockRwPosix<P> {
    type Read = ();
    type Write = ();

    const NAME: &'static str = "overlock_rw_posix";

    fn create() -> Result<Self, CreateError> {
        Ok(OverlockRwPosix {
            gate: Overlock::create()?,
            word: P::U32::new(0),
        })
    }

    /// Passes nobody.
    #[inline]
    fn read(&self) {
        if !self.enter() {
            counted(self.read_slow(Passing::Never, None));
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
        if !self.seize() {
            self.write_slow(None);
        }
    }

    /// May fail where a reader finds out that it has to wait.
    fn try_write(&self) -> Option<()> {
        self.seize().then_some(())
    }

    #[inline]
    unsafe fn unlock_write(&self, (): ()) {
        let word = ptr::from_ref(&self.word);
        // (1, n) -> (0, n). WU: release, pairs with RA and WA. From here on the lock may be gone (I4).
        let before = self.word.fetch_and(!(WRITING | ASLEEP | PASSING), Release);
        Step::Unlock.taken::<P>();
        crate::check!(before & WRITING != 0, "unlock of a lock that nobody writes");
        if before & (ASLEEP | PASSING) != 0 {
            kick_sleepers::<P>(word, before);
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & (WRITING | READERS) != 0
    }

    #[inline]
    fn is_write_locked(&self) -> bool {
        self.word.load(Relaxed) & WRITING != 0
    }

    fn is_contended(&self) -> bool {
        let word = self.word.load(Relaxed);
        self.gate.is_locked() || self.gate.is_contended() || word & (ASLEEP | PASSING | CLOSED) != 0
    }
}

// SAFETY: as above; who gives up has not entered, or has left.
unsafe impl<P: Platform> RawTimedRwLock for OverlockRwPosix<P> {
    fn read_until(&self, deadline: Instant) -> Option<()> {
        let result = self.read_passing(Passing::Never, Some(deadline));
        (result != Err(Refused::Late)).then(|| counted(result))
    }

    fn write_until(&self, deadline: Instant) -> Option<()> {
        self.write_within(Some(deadline)).then_some(())
    }
}
