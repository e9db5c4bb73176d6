//! The queued reader-writer spinlock: fair to readers and writers, in 8 bytes.
//!
//! The kernel's rwlock since 2014 (Long). Readers count themselves in with one addition as long as
//! there is no writer. Everybody who has to wait does so in one queue, that of a spinlock: its
//! owner alone watches the count, and it is let in before those behind it. A writer at the head of
//! the queue sets a bit that sends newcomers to the queue. Nobody sleeps, so this lock is for
//! sections that are short, and for no more threads than CPUs.
//!
//! # Layout
//!
//! ```text
//!  31     30      9   8        7    0
//! +------+---------+---------+--------+
//! | full | readers | waiting | writer |    and the queue: a lock of 4 bytes
//! +------+---------+---------+--------+
//! ```
//!
//! | part | who writes it, and when |
//! |---|---|
//! | `writer` | 0 or 0xff: the writer that acquires, and releases |
//! | `waiting` | the owner of the queue, a writer, until it is the lock's writer |
//! | `readers` | each reader, coming and going; also one that has to wait, for a moment |
//! | `full` | the top bit of `readers`: see [below](#where-this-deviates-from-the-published-form) |
//! | `queue` | see [`queued`] |
//!
//! # States
//!
//! (readers, waiting, writer):
//!
//! ```text
//! (r, 0, 0)  --read-->              (r + 1, 0, 0)    a reader
//! (r, w, l)  --read-->              (r + 1, w, l)    not yet: there is a writer, or one waits ...
//! (r, w, l)  --back off-->          (r - 1, w, l)    ... so it goes to the queue; at its head
//! (r, w, l)  --come again-->        (r + 1, w, l)    it stays, a reader as soon as writer is 0
//! (r, 1, 0)  --read_in_handler-->   (r + 1, 1, 0)    a reader, past the writer that waits
//! (r, *, 1)  --read_in_handler-->   (r + 1, *, 1)    it stays, a reader as soon as writer is 0
//! (r, *, *)  --unlock_read-->       (r - 1, *, *)
//! (0, 0, 0)  --write-->             (0, 0, 1)        the writer
//! (r, 0, l)  --wait-->              (r, 1, l)        the writer at the head of the queue
//! (0, 1, 0)  --take-->              (0, 0, 1)        it has the lock
//! (r, *, 1)  --unlock_write-->      (r, *, 0)
//! ```
//!
//! # Invariants
//!
//! - I1: writer is set by an exchange that expects no reader and no writer, and cleared by the
//!   writer alone.
//! - I2: a reader holds the lock where it has counted itself in and has seen writer clear after
//!   that. While it counts, I1's exchange fails.
//! - I3: only the owner of the queue sets waiting, and it goes on to be the writer. While it is set
//!   newcomers queue; the readers there are leave, and only handlers come on top
//!   ([`read_in_handler`](Qrwlock::read_in_handler)).
//! - I4: those in the queue are served in its order. While its head is a writer that waits nobody
//!   passes; while it is on its way to setting waiting, or a reader is, newcomers may.
//!
//! # Orderings
//!
//! - WU, the release store of writer = 0, pairs with RA, the acquire addition or look by which a
//!   reader finds it so, and with WA.
//! - RU, the release subtraction of a reader, pairs with WA, the acquire exchange that makes a
//!   writer. WA must be the exchange: a look that has seen (0, 1, 0) with acquire has not seen what
//!   a reader did that came and went between the two, by `read_in_handler`, and its exchange
//!   succeeds all the same. (A bug of 2021: the look acquired, the exchange did not.)
//!
//! # Why no wake-up is lost
//!
//! Nobody sleeps. The head of the queue watches the word until those leave that keep it out; the
//! others watch for their turn in the queue.
//!
//! # Where this deviates from the published form
//!
//! - Readers have 22 bits. Once they are all in use `full` stops newcomers as a writer does, where
//!   the published count would come round, and let a writer in beside readers. Only guards that
//!   were leaked get there: the `checked` feature panics.
//! - What a reader does depends on which of two methods it calls, instead of on whether an
//!   interrupt is being handled.
//! - The lock of the queue is a type parameter.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::diagram::{Diagram, HasDiagram, diagram};
use crate::facts::{Bound, Facts, HasFacts};
use crate::platform::{Atomic, ByteLanes, ConstPlatform, Platform, Spin, Zero};
use crate::raw::{ConstLock, CreateError, RawLock, RawRwLock};
use crate::spin::{Queued, queued};

diagram! {
    "qrwlock" {
        Read = "(r, 0, 0) -> (r + 1, 0, 0)",
        NotYet = "(r, w, l) -> (r + 1, w, l): not yet",
        BackOff = "(r, w, l) -> (r - 1, w, l)",
        ComeAgain = "(r, w, l) -> (r + 1, w, l): at the head of the queue",
        ReadPast = "(r, 1, 0) -> (r + 1, 1, 0): in a handler",
        Stay = "(r, *, 1) -> (r + 1, *, 1): in a handler",
        SeeNoWriter = "(r, w, 0): a reader that stays is one",
        UnlockRead = "(r, *, *) -> (r - 1, *, *)",
        Write = "(0, 0, 0) -> (0, 0, 1)",
        Wait = "(r, 0, l) -> (r, 1, l)",
        Take = "(0, 1, 0) -> (0, 0, 1)",
        UnlockWrite = "(r, *, 1) -> (r, *, 0)",
    }
}

/// The queued reader-writer spinlock: see the [module's page](self). 8 bytes.
#[derive(Debug)]
pub struct Qrwlock<P: Platform, L: RawLock = Queued<P>> {
    word: P::U32,
    queue: L,
}

const WRITER: u32 = 0xff;
const WAITING: u32 = 1 << 8;
const READER: u32 = 1 << 9;
const FULL: u32 = 1 << 31;

impl<P: ConstPlatform, L: RawLock + ConstLock> Qrwlock<P, L> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        Qrwlock {
            word: Zero::ZERO,
            queue: L::INIT,
        }
    }
}

impl<P: ConstPlatform, L: RawLock + ConstLock> Default for Qrwlock<P, L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: ConstPlatform, L: RawLock + ConstLock> ConstLock for Qrwlock<P, L> {
    const INIT: Self = Self::new();
}

impl<P: Platform, L: RawLock> Qrwlock<P, L> {
    /// As [`read`](RawRwLock::read), for a signal handler that may have interrupted a reader of
    /// this lock, or somebody who waits for it. It waits for the writer that holds the lock and
    /// for nobody else: a writer that waits may be waiting for the interrupted reader. What
    /// holds the lock for writing must not be interrupted so.
    #[inline]
    pub fn read_in_handler(&self) {
        let seen = self.come();
        if seen & (WRITER | FULL) != 0 {
            Step::Stay.taken::<P>();
            self.report_full(seen);
            self.wait_for_writer();
        } else if seen & WAITING != 0 {
            Step::ReadPast.taken::<P>();
        } else {
            Step::Read.taken::<P>();
        }
    }

    /// Counts a reader in; the word from before.
    #[inline]
    fn come(&self) -> u32 {
        // (r, w, l) -> (r + 1, w, l). RA: acquire, pairs with WU.
        self.word.fetch_add(READER, Acquire)
    }

    #[inline]
    fn take(&self) -> bool {
        // (0, 0, 0) -> (0, 0, 1). WA: acquire, pairs with WU and RU.
        self.word
            .compare_exchange(0, WRITER, Acquire, Relaxed)
            .inspect(|_| Step::Write.taken::<P>())
            .is_ok()
    }

    #[cold]
    fn read_slow(&self, seen: u32) {
        Step::NotYet.taken::<P>();
        self.report_full(seen);
        self.back_off();
        let token = self.queue.lock();
        self.come();
        Step::ComeAgain.taken::<P>();
        self.wait_for_writer();
        // SAFETY: locked above.
        unsafe { self.queue.unlock(token) };
    }

    #[inline]
    fn back_off(&self) {
        // (r, w, l) -> (r - 1, w, l). Relaxed: it has seen nothing.
        self.word.fetch_sub(READER, Relaxed);
        Step::BackOff.taken::<P>();
    }

    /// Waits, counted in, until there is no writer.
    #[cold]
    fn wait_for_writer(&self) {
        // RA: acquire, pairs with WU.
        let _ = P::wait_until(&self.word, Acquire, Spin::Forever, |word: u32| {
            word & (WRITER | FULL) == 0
        });
        Step::SeeNoWriter.taken::<P>();
    }

    /// The misuse of a reader that has counted itself in, and that is one too many.
    fn report_full(&self, seen: u32) {
        if seen & FULL != 0 {
            self.word.fetch_sub(READER, Relaxed);
            crate::check!(false, "more readers than a qrwlock counts");
            self.come();
        }
    }

    #[cold]
    fn write_slow(&self) {
        let token = self.queue.lock();
        if !self.take() {
            // (r, 0, l) -> (r, 1, l). Relaxed: it protects no data.
            self.word.fetch_or(WAITING, Relaxed);
            Step::Wait.taken::<P>();
            // Relaxed: the exchange acquires. (0, 1, 0) -> (0, 0, 1). WA: acquire, pairs with WU
            // and RU.
            let _ = P::wait_until(&self.word, Relaxed, Spin::Forever, |word: u32| {
                word == WAITING
                    && self
                        .word
                        .compare_exchange(WAITING, WRITER, Acquire, Relaxed)
                        .inspect(|_| Step::Take.taken::<P>())
                        .is_ok()
            });
        }
        // SAFETY: locked above.
        unsafe { self.queue.unlock(token) };
    }
}

impl<P: Platform, L: RawLock> HasFacts for Qrwlock<P, L> {
    const FACTS: Facts = Facts {
        about: "readers count in a word, everybody else waits in a queue; nobody sleeps",
        bound: Bound::Finite,
        freed_by_last_user: false,
        ..Facts::SPINNING
    };
}

impl<P: Platform> HasDiagram for Qrwlock<P> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&DIAGRAM, &queued::DIAGRAM];
}

// SAFETY: I1 and I2.
unsafe impl<P: Platform, L: RawLock> RawRwLock for Qrwlock<P, L> {
    type Read = ();
    type Write = ();

    const NAME: &'static str = "qrwlock";

    fn create() -> Result<Self, CreateError> {
        Ok(Qrwlock {
            word: P::U32::new(0),
            queue: L::create()?,
        })
    }

    #[inline]
    fn read(&self) {
        let seen = self.come();
        if seen & (WRITER | WAITING | FULL) == 0 {
            Step::Read.taken::<P>();
        } else {
            self.read_slow(seen);
        }
    }

    #[inline]
    fn try_read(&self) -> Option<()> {
        if self.word.load(Relaxed) & (WRITER | WAITING | FULL) != 0 {
            return None;
        }
        if self.come() & (WRITER | WAITING | FULL) != 0 {
            Step::NotYet.taken::<P>();
            self.back_off();
            return None;
        }
        Step::Read.taken::<P>();
        Some(())
    }

    #[inline]
    unsafe fn unlock_read(&self, (): ()) {
        crate::check!(
            self.word.load(Relaxed) >= READER,
            "unlock_read of a qrwlock without readers"
        );
        // (r, w, 0) -> (r - 1, w, 0). RU: release, pairs with WA.
        self.word.fetch_sub(READER, Release);
        Step::UnlockRead.taken::<P>();
    }

    #[inline]
    fn write(&self) {
        if !self.take() {
            self.write_slow();
        }
    }

    #[inline]
    fn try_write(&self) -> Option<()> {
        (self.word.load(Relaxed) == 0 && self.take()).then_some(())
    }

    #[inline]
    unsafe fn unlock_write(&self, (): ()) {
        crate::check!(
            self.word.load(Relaxed) & WRITER != 0,
            "unlock_write of a qrwlock without a writer"
        );
        // (r, w, 1) -> (r, w, 0). WU: release, pairs with RA and WA.
        self.word.byte0_store(0, Release);
        Step::UnlockWrite.taken::<P>();
    }

    /// A reader that turns out to have to wait counts too, for a moment.
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & !WAITING != 0
    }

    fn is_write_locked(&self) -> bool {
        self.word.load(Relaxed) & (WRITER | WAITING) != 0
    }

    /// Whether somebody waits in the queue, awake as all do here.
    fn is_contended(&self) -> bool {
        self.queue.is_locked()
    }
}

#[cfg(test)]
mod tests;
