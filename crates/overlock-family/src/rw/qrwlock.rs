//! The queued reader-writer spinlock: fair to readers and writers, in 8 bytes.
//!
//! The kernel's rwlock since 2014 (Long). Readers count themselves in with one addition as long as
//! there is no writer. All waiters stand in one queue, that of a spinlock. Its owner alone watches
//! the count, and gets in before those behind it. A writer at the head of the queue sets a bit that
//! sends newcomers to the queue. Nobody sleeps, so this lock is for short sections, and for no more
//! threads than CPUs.
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
//! | `readers` | each reader, coming and going; briefly also a reader that has to wait |
//! | `full` | the top bit of `readers`: see [below](#where-this-deviates-from-the-published-form) |
//! | `queue` | see [`queued`](crate::spin::queued) |
//!
//! # States
//!
//! (readers, waiting, writer):
//!
//! ```text
//! (r, 0, 0)  --read-->              (r + 1, 0, 0)    a reader
//! (r, w, l)  --read-->              (r + 1, w, l)    not yet: there is a writer, or one waits ...
//! (r, w, l)  --back out-->          (r - 1, w, l)    ... so it goes to the queue; at its head
//! (r, w, l)  --count again-->       (r + 1, w, l)    it stays, a reader as soon as writer is 0
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
//! - I2: a reader holds the lock once it has counted itself in and has seen writer clear after
//!   that. While it counts, I1's exchange fails.
//! - I3: only the owner of the queue sets waiting, and it goes on to be the writer. While it is
//!   set, newcomers queue and the readers inside leave; only handlers still get in
//!   ([`read_in_handler`](Qrwlock::read_in_handler)).
//! - I4: the queue is served in order. While its head is a writer that has set waiting, nobody
//!   barges. Newcomers may barge past a head that is a reader, or a writer that has not set waiting
//!   yet.
//!
//! # Orderings
//!
//! - WU, the release store of writer = 0, pairs with RA, the acquire addition or load by which a
//!   reader finds it so, and with WA.
//! - RU, the release subtraction of a reader, pairs with WA, the acquire exchange that makes a
//!   writer. WA must be the exchange. A reader may come and go by `read_in_handler` between an
//!   acquire load of (0, 1, 0) and the exchange. The exchange succeeds all the same, and the load
//!   has not seen what that reader did. (A bug of 2021: the load acquired, the exchange did not.)
//!
//! # Why no wake-up is lost
//!
//! Nobody sleeps. The head of the queue polls the word until the threads leave that keep it out;
//! the others poll their place in the queue.
//!
//! # Where this deviates from the published form
//!
//! - Readers have 22 bits. Once they are all in use, `full` stops newcomers as a writer does. The
//!   published count would wrap, and let a writer in while readers are inside. Only leaked guards
//!   get there: the `checked` feature panics.
//! - The caller chooses between two methods for readers; the kernel checks whether it is handling
//!   an interrupt.
//! - The lock of the queue is a type parameter.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::spin::Queued;
use overlock_core::facts::{Bound, Facts, HasFacts};
use overlock_core::platform::{Atomic, ByteLanes, Pause, Platform, Spin};
use overlock_core::raw::{ConstLock, RawLock, RawRwLock};

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

impl<P: Platform, L: RawLock + ConstLock> Qrwlock<P, L> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        Qrwlock {
            word: Atomic::ZERO,
            queue: L::INIT,
        }
    }
}

impl<P: Platform, L: RawLock + ConstLock> Default for Qrwlock<P, L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, L: RawLock + ConstLock> ConstLock for Qrwlock<P, L> {
    const INIT: Self = Self::new();
}

impl<P: Platform, L: RawLock> Qrwlock<P, L> {
    /// As [`read`](RawRwLock::read), for a signal handler that may have interrupted a reader or a
    /// waiter of this lock. It waits only for the writer that holds the lock: a waiting writer may
    /// be waiting for the interrupted reader. The handler must not interrupt a thread that holds
    /// the lock for writing.
    #[inline]
    pub fn read_in_handler(&self) {
        let seen = self.count_in();
        if seen & (WRITER | FULL) != 0 {
            self.report_full(seen);
            self.wait_for_writer();
        }
    }

    /// Counts a reader in. Returns the word before.
    #[inline]
    fn count_in(&self) -> u32 {
        // (r, w, l) -> (r + 1, w, l). RA: acquire, pairs with WU.
        self.word.fetch_add(READER, Acquire)
    }

    #[inline]
    fn take(&self) -> bool {
        // (0, 0, 0) -> (0, 0, 1). WA: acquire, pairs with WU and RU.
        self.word
            .compare_exchange(0, WRITER, Acquire, Relaxed)
            .is_ok()
    }

    /// Takes the lock as the writer at the head of the queue, once nobody holds it.
    fn wait_as_head(&self) {
        loop {
            // Relaxed: the exchange acquires.
            let _ = P::wait_until(&self.word, Relaxed, Spin::Forever, |word| word == WAITING);
            // (0, 1, 0) -> (0, 0, 1). WA: acquire, pairs with WU and RU.
            let taken = self
                .word
                .compare_exchange(WAITING, WRITER, Acquire, Relaxed);
            if taken.is_ok() {
                return;
            }
            P::pause(Pause::Iterations(1));
        }
    }

    #[cold]
    fn read_slow(&self, seen: u32) {
        self.report_full(seen);
        self.back_out();
        let token = self.queue.lock();
        self.count_in();
        self.wait_for_writer();
        // SAFETY: locked above.
        unsafe { self.queue.unlock(token) };
    }

    #[inline]
    fn back_out(&self) {
        // (r, w, l) -> (r - 1, w, l). Relaxed: it has read nothing.
        self.word.fetch_sub(READER, Relaxed);
    }

    /// Waits, counted in, until there is no writer.
    #[cold]
    fn wait_for_writer(&self) {
        // RA: acquire, pairs with WU.
        let _ = P::wait_until(&self.word, Acquire, Spin::Forever, |word: u32| {
            word & (WRITER | FULL) == 0
        });
    }

    /// Reports a reader that is one too many, which is misuse. The caller is counted in.
    fn report_full(&self, seen: u32) {
        if seen & FULL != 0 {
            self.word.fetch_sub(READER, Relaxed);
            overlock_core::check!(false, "more readers than a qrwlock counts");
            self.count_in();
        }
    }

    #[cold]
    fn write_slow(&self) {
        let token = self.queue.lock();
        if !self.take() {
            // (r, 0, l) -> (r, 1, l). Relaxed: it protects no data.
            self.word.fetch_or(WAITING, Relaxed);
            self.wait_as_head();
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

// SAFETY: I1 and I2.
unsafe impl<P: Platform, L: RawLock + ConstLock> RawRwLock for Qrwlock<P, L> {
    type Read = ();
    type Write = ();

    const NAME: &'static str = "qrwlock";

    #[inline]
    fn read(&self) {
        let seen = self.count_in();
        if seen & (WRITER | WAITING | FULL) != 0 {
            self.read_slow(seen);
        }
    }

    #[inline]
    fn try_read(&self) -> Option<()> {
        if self.word.load(Relaxed) & (WRITER | WAITING | FULL) != 0 {
            return None;
        }
        if self.count_in() & (WRITER | WAITING | FULL) != 0 {
            self.back_out();
            return None;
        }
        Some(())
    }

    #[inline]
    unsafe fn unlock_read(&self, (): ()) {
        overlock_core::check!(
            self.word.load(Relaxed) >= READER,
            "unlock_read of a qrwlock without readers"
        );
        // (r, w, 0) -> (r - 1, w, 0). RU: release, pairs with WA.
        self.word.fetch_sub(READER, Release);
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
        overlock_core::check!(
            self.word.load(Relaxed) & WRITER != 0,
            "unlock_write of a qrwlock without a writer"
        );
        // (r, w, 1) -> (r, w, 0). WU: release, pairs with RA and WA.
        self.word.byte0_store(0, Release);
    }

    /// A reader that has to wait counts too, briefly.
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & !WAITING != 0
    }

    fn is_write_locked(&self) -> bool {
        self.word.load(Relaxed) & (WRITER | WAITING) != 0
    }

    /// Whether a waiter is in the queue.
    fn is_contended(&self) -> bool {
        self.queue.is_locked()
    }
}

#[cfg(test)]
mod tests;
