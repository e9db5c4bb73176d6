//! Locks that live for a moment: whoever acquires one last frees it as soon as its own unlock has
//! returned, while the unlock that let it in may not have. A lock that is touched by that one then
//! is used after it was freed: nothing to notice here, but AddressSanitizer does.
//!
//! A thread makes one, acquires it, and shows it to the others for a moment. Those that end a step
//! by then come to it, and wait. How many they are is counted under the lock, so the last one knows
//! that it is the last. The last to come to a reader-writer lock, where it came as a reader, may
//! have others beside it: it comes again to write.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use overlock_core::raw::{CreateError, RawLock, RawRwLock};

use crate::plan::{How, Pause, Side, Step, Then};
use crate::settings::LOCKS;
use crate::violation::{Violation, ViolationKind};
use crate::worker::{Ask, Worker};
use crate::worker_state::Op;

/// The number of the lock that a thread waits for, where it is one of these.
pub const LOCK: usize = LOCKS;

/// Of so many steps of a thread one makes a lock.
const MAKES: u64 = 64;

/// The most that come to it.
const USERS: u32 = 3;

/// How long it is shown.
const SHOWN: Duration = Duration::from_micros(100);

/// The time between two polls of how many have come, in nanoseconds.
const POLL: u64 = 2_000;

/// A lock that its last user may free.
pub trait FreedLock: Send + Sync + Sized + 'static {
    type Token;

    fn create() -> Result<Self, CreateError>;

    /// How a user acquires it.
    fn side(bits: u64) -> Side;

    /// The operation of a thread that acquires it so.
    fn op(side: Side) -> Op;

    /// Acquires it: alone as a writer.
    fn acquire(&self, side: Side) -> Self::Token;

    /// Waits until nobody else is inside, where that may be.
    ///
    /// # Safety
    ///
    /// The token is of this lock and this thread.
    unsafe fn be_alone(&self, token: Self::Token) -> Self::Token;

    /// Releases it.
    ///
    /// # Safety
    ///
    /// As for [`be_alone`](Self::be_alone).
    unsafe fn release(&self, token: Self::Token);
}

impl<L: RawLock> FreedLock for L {
    type Token = L::Token;

    fn create() -> Result<Self, CreateError> {
        L::create()
    }

    fn side(_: u64) -> Side {
        Side::Write
    }

    fn op(_: Side) -> Op {
        Op::Lock
    }

    fn acquire(&self, _: Side) -> L::Token {
        self.lock()
    }

    unsafe fn be_alone(&self, token: L::Token) -> L::Token {
        token
    }

    unsafe fn release(&self, token: L::Token) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock(token) }
    }
}

/// A reader-writer lock, which others may read at the same time.
#[derive(Debug)]
pub struct ManyReaders<L>(L);

/// An acquisition of [`ManyReaders`].
pub enum Inside<L: RawRwLock> {
    Reads(L::Read),
    Writes(L::Write),
}

impl<L: RawRwLock> FreedLock for ManyReaders<L> {
    type Token = Inside<L>;

    fn create() -> Result<Self, CreateError> {
        Ok(ManyReaders(L::INIT))
    }

    fn side(bits: u64) -> Side {
        match bits & 1 {
            0 => Side::Read,
            _ => Side::Write,
        }
    }

    fn op(side: Side) -> Op {
        Op::of(side, How::Wait)
    }

    fn acquire(&self, side: Side) -> Inside<L> {
        match side {
            Side::Read => Inside::Reads(self.0.read()),
            _ => Inside::Writes(self.0.write()),
        }
    }

    unsafe fn be_alone(&self, token: Inside<L>) -> Inside<L> {
        if let Inside::Reads(token) = token {
            // SAFETY: the caller's promise.
            unsafe { self.0.unlock_read(token) };
            return Inside::Writes(self.0.write());
        }
        token
    }

    unsafe fn release(&self, token: Inside<L>) {
        match token {
            // SAFETY: the caller's promise.
            Inside::Reads(token) => unsafe { self.0.unlock_read(token) },
            // SAFETY: the caller's promise.
            Inside::Writes(token) => unsafe { self.0.unlock_write(token) },
        }
    }
}

pub type Unlock<L> = unsafe fn(&L, <L as FreedLock>::Token);

/// The locks of one type that live for a moment.
pub struct ShortLived<L> {
    /// The one that is shown, and how many have come.
    shown: Mutex<Option<(NonNull<Counted<L>>, u32)>>,
    /// Whether there is one: the threads poll this first.
    open: AtomicBool,
    made: AtomicU64,
    freed: AtomicU64,
}

struct Counted<L> {
    lock: L,
    /// How many have still to acquire it. Written under the lock; by readers at the same time.
    left: AtomicU32,
}

// SAFETY: the pointer leads to a lock and to a number, which any thread may use.
unsafe impl<L: Send + Sync> Send for ShortLived<L> {}
// SAFETY: as above.
unsafe impl<L: Send + Sync> Sync for ShortLived<L> {}

impl<L> Default for ShortLived<L> {
    fn default() -> Self {
        Self {
            shown: Mutex::new(None),
            open: AtomicBool::new(false),
            made: AtomicU64::new(0),
            freed: AtomicU64::new(0),
        }
    }
}

impl<L: FreedLock> ShortLived<L> {
    /// After a step of `worker`, which holds nothing: it comes to the one that is shown, or makes
    /// one now and then.
    pub fn step(&self, worker: &Worker, step: &Step, fair: Option<Unlock<L>>) {
        let unlock = match fair {
            Some(fair) if step.then == Then::LeaveFair => fair,
            _ => L::release,
        };
        if self.open.load(Relaxed) {
            self.come(worker, L::side(step.bits), unlock);
        } else if (step.bits >> 32).is_multiple_of(MAKES) {
            self.make(worker, unlock);
        }
    }

    fn shown(&self) -> MutexGuard<'_, Option<(NonNull<Counted<L>>, u32)>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, worker: &Worker, unlock: Unlock<L>) {
        let Ok(lock) = L::create() else { return };
        let counted = NonNull::from(Box::leak(Box::new(Counted {
            lock,
            left: AtomicU32::new(0),
        })));
        self.made.fetch_add(1, Relaxed);
        let Some(token) = acquire(worker, counted, Side::Write) else {
            return;
        };
        let mine = {
            let mut shown = self.shown();
            let free = shown.is_none();
            if free {
                *shown = Some((counted, 0));
                self.open.store(true, Relaxed);
            }
            free
        };
        let users = if mine { self.show(worker) } else { 0 };
        // SAFETY: nobody frees it before the users have acquired it, and this thread holds it,
        // alone.
        unsafe { (*counted.as_ptr()).left.store(users, Relaxed) };
        self.leave(worker, counted, token, unlock, users == 0);
    }

    /// Shows the lock that this thread has made for a moment; how many have come.
    fn show(&self, worker: &Worker) -> u32 {
        let end = Instant::now() + SHOWN;
        loop {
            // Not a yield: on a crowded machine that costs a slice, or many.
            worker.pause(Pause::Spin(POLL));
            let mut shown = self.shown();
            let come = shown.map_or(0, |(_, come)| come);
            if come == USERS || Instant::now() >= end {
                *shown = None;
                self.open.store(false, Relaxed);
                return come;
            }
        }
    }

    fn come(&self, worker: &Worker, side: Side, unlock: Unlock<L>) {
        let counted = match &mut *self.shown() {
            Some((counted, come)) if *come < USERS => {
                *come += 1;
                *counted
            }
            _ => return,
        };
        let Some(token) = acquire(worker, counted, side) else {
            return;
        };
        // SAFETY: it lives until all users have acquired it, of which this thread is one, and this
        // thread holds it.
        let last = unsafe { (*counted.as_ptr()).left.fetch_sub(1, Relaxed) == 1 };
        self.leave(worker, counted, token, unlock, last);
    }

    /// Unlocks, and frees the lock where this thread was the last to acquire it.
    fn leave(
        &self,
        worker: &Worker,
        counted: NonNull<Counted<L>>,
        mut token: L::Token,
        unlock: Unlock<L>,
        last: bool,
    ) {
        // SAFETY: callers hold it, so it lives until the unlock has released it.
        let lock = unsafe { &(*counted.as_ptr()).lock };
        if last {
            // SAFETY: this is their token. Nobody else frees it.
            token = unsafe { lock.be_alone(token) };
        }
        // SAFETY: this is their token. It is freed below alone: by this thread after this, or by
        // one that acquires it after this has released it, which is what the lock's docs
        // allow.
        worker.release(LOCK, || unsafe { unlock(lock, token) });
        if last {
            // SAFETY: from a box, and all that knew of it have acquired it.
            drop(unsafe { Box::from_raw(counted.as_ptr()) });
            self.freed.fetch_add(1, Relaxed);
        }
    }

    /// Whether all that were made are gone, while all threads rest.
    ///
    /// # Errors
    ///
    /// If some are not.
    pub fn at_rest(&self) -> Result<(), Violation> {
        let (made, freed) = (self.made.load(Relaxed), self.freed.load(Relaxed));
        if made == freed {
            return Ok(());
        }
        Err(Violation::new(
            ViolationKind::Count,
            format!(
                "does not exclude: of {made} locks that the last to acquire them frees {freed} were freed"
            ),
        ))
    }
}

fn acquire<L: FreedLock>(
    worker: &Worker,
    counted: NonNull<Counted<L>>,
    side: Side,
) -> Option<L::Token> {
    let ask = Ask {
        op: L::op(side),
        lock: LOCK,
        side,
        how: How::Wait,
    };
    // SAFETY: it lives until all that know of it have acquired it, of which the caller is one.
    let lock = || unsafe { &(*counted.as_ptr()).lock }.acquire(side);
    worker.acquire(ask, || 0, |_| Some(lock()))
}

#[cfg(test)]
mod tests;
