//! The recommended lock behind `pthread_rwlock_t`: a word that is the lock, and a gate for those that wait for it.
//!
//! Why not `overlock_rw` of overlock-core: there a writer holds the gate while it waits for the readers and while it writes, so a reader
//! that comes then cannot tell the two, and must wait. POSIX's readers may have to come in beside a writer that only waits (see
//! [the object's page](super)). And both unlocks of it look at the lock after the release. Here the gate is held by the first of those that wait, and
//! only while it waits; the word says the rest. (Mellor-Crummey and Scott, 1991, and the kernel's qrwlock have a queue beside a word in the
//! same way; theirs spin.)
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
//! (0, n)  --read-->         (0, n + 1)    closed: in vain, and it leaves again; through the gate then
//! (w, n)  --read past-->    (w, n + 1)    the caller owns its share as soon as writing is clear
//! (0, n)  --leave-->        (0, n - 1)    0 and asleep: kicks
//! (0, 0)  --write-->        (1, 0)
//! (1, n)  --leave-->        (0, n)        asleep and passing are cleared: kicks
//! ```
//!
//! Who cannot acquire at once waits for the gate, and its owner for the word:
//!
//! ```text
//! a reader: readers + 1, spins, sleeps until writing is clear
//! a writer: spins until the word is 0, sleeps; while readers are inside, or after PATIENCE: closed = 1
//! ```
//!
//! A reader that may pass waits for the gate for no longer than PATIENCE, then reads past: readers + 1, spins, sleeps until writing is clear.
//!
//! # Invariants
//!
//! - I1: writing is set only by an exchange that finds readers 0 and writing clear. So whoever has counted itself owns a share
//!   whenever writing is clear, until it takes itself out.
//! - I2: asleep and closed are set by the gate's owner alone, and it leaves the gate with neither: a reader's asleep is cleared by the unlock
//!   that it waits for, or by itself; a writer's exchange clears both.
//! - I3: passing is set only beside writing, by readers whose shares are counted. So while one of them sleeps on the word readers is not 0.
//! - I4: an unlock's change of the word is its last access: after that it needs the word's address and nothing else. And nobody gets
//!   through the gate, or gives up there, without owning the lock afterwards or being about to return from a call that waited. So whoever
//!   owns the lock last may free it, whatever the earlier owners' unlocks are at.
//!
//! # Orderings
//!
//! RA, acquire, a reader's addition or its look that finds writing clear; WA, acquire, a writer's exchange. They pair with RU, the release of a reader's
//! subtraction, and WU, the release of a writer's. All changes are read-modify-writes, so release sequences never break.
//!
//! # Why no wake-up is lost
//!
//! The gate's owner sets asleep in an exchange that expects what it cannot acquire, and halts on the result. Whoever changes the
//! word before the halt makes it return; after it, the one that makes the word what is waited for sees asleep, and kicks. A reader's kick is for one
//! thread, and reaches it: nobody but the gate's owner halts while there are no readers (I3). A writer's kick is for all, if there are readers that pass;
//! for them the same holds. What others still wait for is the gate, which has the bounds of `overlock`.
//!
//! # Bounds
//!
//! A writer at the gate is passed by other writers for PATIENCE, and by no reader that came later, but for those that may pass: they do
//! after PATIENCE. So writers that wait for readers whose sections are shorter than that do not starve.

use core::ffi::c_int;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use libc::{EAGAIN, EBUSY, ETIMEDOUT};
use overlock::Linux;
use overlock::core::raw::{RawFork, RawLock, RawTimedLock};
use overlock::core::spin::Overlock;
use overlock::core::{Instant, Platform, Spin};

use super::{Behind, PATIENCE_NS, Passing};
use crate::futex;
use crate::time::earlier;

/// See the [module's page](self).
#[derive(Debug)]
pub(super) struct Recommended {
    gate: Overlock<Linux>,
    pub(super) word: AtomicU32,
}

const READER: u32 = 1;
pub(super) const FULL: u32 = 1 << 27;
pub(super) const READERS: u32 = (FULL << 1) - 1;
pub(super) const CLOSED: u32 = 1 << 28;
const PASSING: u32 = 1 << 29;
const ASLEEP: u32 = 1 << 30;
pub(super) const WRITING: u32 = 1 << 31;

/// How long the gate's owner watches the word before it sleeps. Most sections are shorter, and an owner that has lost its CPU
/// is away for a thousand times as long.
const SPIN_NS: u64 = 5_000;

/// Waits awake, for a while, until the word is such.
fn spin(word: &AtomicU32, until: Option<Instant>, done: impl Fn(u32) -> bool) -> Result<u32, u32> {
    let end = earlier(until, Linux::now().plus_nanos(SPIN_NS));
    // RA
    Linux::wait_until(word, Acquire, Spin::Until(end), done)
}

fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Linux::now() >= until)
}

impl Recommended {
    pub(super) fn lock_gate(&self, until: Option<Instant>) -> bool {
        match until {
            None => {
                self.gate.lock();
                true
            }
            Some(until) => self.gate.lock_until(until).is_some(),
        }
    }

    fn open_gate(&self) {
        // SAFETY: the callers own it.
        unsafe { self.gate.unlock(()) };
    }

    /// A reader takes itself out.
    #[inline]
    fn leave(&self) {
        let word = self.word.as_ptr().addr();
        // (w, n) -> (w, n - 1). RU: release, pairs with WA. From here on the lock may be gone (I4).
        let before = self.word.fetch_sub(READER, Release);
        if before & ASLEEP != 0 && before & READERS == READER {
            futex::wake(word, 1);
        }
    }

    /// A reader counts itself; what it saw, or `EAGAIN`.
    fn count_in(&self) -> Result<u32, c_int> {
        // (w, n) -> (w, n + 1). RA: acquire, pairs with WU.
        let before = self.word.fetch_add(READER, Acquire);
        if before & FULL == 0 {
            return Ok(before);
        }
        self.leave();
        Err(EAGAIN)
    }

    /// Reads, if nobody is in the way.
    #[inline]
    pub(super) fn enter(&self) -> bool {
        // RA, as in `count_in`.
        let before = self.word.fetch_add(READER, Acquire);
        let entered = before & (WRITING | CLOSED | FULL) == 0;
        if !entered {
            self.leave_again();
        }
        entered
    }

    /// Out of the fast path.
    #[cold]
    #[inline(never)]
    fn leave_again(&self) {
        self.leave();
    }

    /// Writes, if nobody is there.
    #[inline]
    pub(super) fn seize(&self) -> bool {
        // (0, 0) -> (1, 0). WA: acquire, pairs with RU and WU.
        self.word
            .compare_exchange(0, WRITING, Acquire, Relaxed)
            .is_ok()
    }

    /// A reader counts itself, whoever waits, and waits until no writer is inside. `flag` says who it is to sleepers' wakers: ASLEEP for the
    /// gate's owner, else PASSING.
    fn read_beside(&self, flag: u32, until: Option<Instant>) -> c_int {
        match self.count_in() {
            Ok(before) if before & WRITING == 0 => return 0,
            Ok(_) => {}
            Err(error) => return error,
        }
        loop {
            // RA: acquire, pairs with WU.
            let seen = match spin(&self.word, until, |word| word & WRITING == 0) {
                Ok(_) => return 0,
                Err(seen) => seen,
            };
            if is_over(until) {
                // I2. Others may still need PASSING.
                self.word.fetch_and(!(flag & ASLEEP), Relaxed);
                self.leave();
                return ETIMEDOUT;
            }
            let asleep = seen | flag;
            let exchange = self.word.compare_exchange(seen, asleep, Relaxed, Relaxed);
            if exchange.is_ok() {
                Linux::halt(&self.word, asleep, until);
            }
        }
    }

    /// A writer that has the gate.
    fn write_at_gate(&self, until: Option<Instant>) -> c_int {
        let free = |word| word & !(CLOSED | ASLEEP) == 0;
        let patience = Linux::now().plus_nanos(PATIENCE_NS);
        loop {
            let seen = match spin(&self.word, until, free) {
                // (0, 0) -> (1, 0). WA: acquire, pairs with RU and WU.
                Ok(seen) => match self.word.compare_exchange(seen, WRITING, Acquire, Relaxed) {
                    Ok(_) => return 0,
                    Err(_) => continue,
                },
                Err(seen) => seen,
            };
            if is_over(until) {
                self.word.fetch_and(!(CLOSED | ASLEEP), Relaxed);
                return ETIMEDOUT;
            }
            let closes = seen & READERS != 0 || Linux::now() >= patience;
            let asleep = seen | ASLEEP | if closes { CLOSED } else { 0 };
            let exchange = self.word.compare_exchange(seen, asleep, Relaxed, Relaxed);
            if exchange.is_ok() {
                let until = match asleep & CLOSED {
                    0 => Some(earlier(until, patience)),
                    _ => until,
                };
                Linux::halt(&self.word, asleep, until);
            }
        }
    }

    #[cold]
    fn read_slow(&self, passing: Passing, until: Option<Instant>) -> c_int {
        let patience = match passing {
            Passing::AtOnce => return self.read_beside(PASSING, until),
            Passing::Later => Some(earlier(until, Linux::now().plus_nanos(PATIENCE_NS))),
            Passing::Never => until,
        };
        if !self.lock_gate(patience) {
            return match passing {
                Passing::Later if !is_over(until) => self.read_beside(PASSING, until),
                _ => ETIMEDOUT,
            };
        }
        let result = self.read_beside(ASLEEP, until);
        self.open_gate();
        result
    }

    #[cold]
    fn write_slow(&self, until: Option<Instant>) -> c_int {
        if !self.lock_gate(until) {
            return ETIMEDOUT;
        }
        let result = self.write_at_gate(until);
        self.open_gate();
        result
    }
}

impl Behind for Recommended {
    fn read(&self, passing: Passing, until: Option<Instant>) -> c_int {
        if self.enter() {
            return 0;
        }
        self.read_slow(passing, until)
    }

    fn try_read(&self, passing: Passing) -> c_int {
        let blocked = match passing {
            Passing::Never => WRITING | CLOSED,
            _ => WRITING,
        };
        let mut seen = self.word.load(Relaxed);
        while seen & blocked == 0 {
            if seen & FULL != 0 {
                return EAGAIN;
            }
            // (0, n) -> (0, n + 1). RA: acquire, pairs with WU.
            match self
                .word
                .compare_exchange_weak(seen, seen + READER, Acquire, Relaxed)
            {
                Ok(_) => return 0,
                Err(now) => seen = now,
            }
        }
        EBUSY
    }

    fn write(&self, until: Option<Instant>) -> c_int {
        if self.seize() {
            return 0;
        }
        self.write_slow(until)
    }

    fn try_write(&self) -> c_int {
        let mut seen = self.word.load(Relaxed);
        while seen & !ASLEEP == 0 {
            // (0, 0) -> (1, 0). WA: acquire, pairs with RU and WU.
            match self
                .word
                .compare_exchange_weak(seen, seen | WRITING, Acquire, Relaxed)
            {
                Ok(_) => return 0,
                Err(now) => seen = now,
            }
        }
        EBUSY
    }

    /// The first of those that wait has the gate, but for moments between two. Who reads past it does not show.
    #[inline(always)]
    fn is_waited_for(&self) -> bool {
        self.gate.is_locked()
    }

    #[inline]
    fn is_written(&self) -> bool {
        // Relaxed: asked by who holds the lock, and so has written it or cannot see it set.
        self.word.load(Relaxed) & WRITING != 0
    }

    fn is_read(&self) -> bool {
        self.word.load(Relaxed) & READERS != 0
    }

    #[inline]
    unsafe fn unlock_read(&self) {
        self.leave();
    }

    #[inline]
    unsafe fn unlock_write(&self) {
        let word = self.word.as_ptr().addr();
        // (1, n) -> (0, n). WU: release, pairs with RA and WA. From here on the lock may be gone (I4).
        let before = self.word.fetch_and(!(WRITING | ASLEEP | PASSING), Release);
        if before & (ASLEEP | PASSING) != 0 {
            let most = if before & PASSING != 0 { futex::ALL } else { 1 };
            futex::wake(word, most);
        }
    }

    unsafe fn settle(&self, written: bool) {
        // SAFETY: the caller's promise.
        unsafe { self.gate.forget_waiters() };
        if self.gate.is_locked() {
            // SAFETY: a thread that forks is in no call, so the gate's owner is one that is gone.
            unsafe { self.gate.unlock(()) };
        }
        // Beside a writer all readers are such that waited. Else they cannot be told from those that hold the lock.
        let kept = if written {
            WRITING
        } else {
            self.word.load(Relaxed) & (WRITING | READERS)
        };
        self.word.store(kept, Relaxed);
    }
}
