//! Locks that live for a moment: whoever acquires one last frees it as soon as its own unlock has returned, while the unlock that let it in may
//! not have. A lock that is touched by that one then is used after it was freed: nothing to notice here, but AddressSanitizer does.
//!
//! A thread makes one, acquires it, and shows it to the others for a moment. Those that end a step by then come to it, and wait. How many
//! they are is written under the lock, so the last one knows that it is the last.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use overlock::core::raw::RawLock;

use crate::place::Op;
use crate::plan::{How, Pause, Side, Step, Then};
use crate::settings::LOCKS;
use crate::violation::{Kind, Violation};
use crate::worker::{Ask, Worker};

/// The number of the lock that a thread waits for, where it is one of these.
pub const LOCK: usize = LOCKS;

/// Of so many steps of a thread one makes a lock.
const MAKES: u64 = 64;

/// The most that come to it.
const GUESTS: u32 = 3;

/// How long it is shown.
const SHOWN: Duration = Duration::from_micros(100);

/// From one look at who has come to the next, in nanoseconds.
const LOOK: u64 = 2_000;

/// A way to unlock.
type Unlock<L> = unsafe fn(&L, <L as RawLock>::Token);

/// The locks of one type that live for a moment.
pub struct Mortals<L> {
    /// The one that is shown, and how many have come.
    shown: Mutex<Option<(NonNull<Mortal<L>>, u32)>>,
    /// Whether there is one: the threads look here first.
    open: AtomicBool,
    made: AtomicU64,
    freed: AtomicU64,
}

/// One of them.
struct Mortal<L> {
    lock: L,
    /// How many have still to acquire it. Plain memory, under the lock.
    left: u32,
}

// SAFETY: the pointer leads to a lock, which any thread may use, and to a number that is used under it.
unsafe impl<L: Send + Sync> Send for Mortals<L> {}
// SAFETY: as above.
unsafe impl<L: Send + Sync> Sync for Mortals<L> {}

impl<L> Default for Mortals<L> {
    fn default() -> Self {
        Self {
            shown: Mutex::new(None),
            open: AtomicBool::new(false),
            made: AtomicU64::new(0),
            freed: AtomicU64::new(0),
        }
    }
}

impl<L: RawLock> Mortals<L> {
    /// After a step of `worker`, which holds nothing: it comes to the one that is shown, or makes one now and then.
    pub fn step(&self, worker: &Worker, step: &Step, fair: Option<Unlock<L>>) {
        let unlock = match fair {
            Some(fair) if step.then == Then::LeaveFair => fair,
            _ => L::unlock,
        };
        if self.open.load(Relaxed) {
            self.come(worker, unlock);
        } else if (step.bits >> 32).is_multiple_of(MAKES) {
            self.make(worker, unlock);
        }
    }

    fn shown(&self) -> MutexGuard<'_, Option<(NonNull<Mortal<L>>, u32)>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, worker: &Worker, unlock: Unlock<L>) {
        let Ok(lock) = L::create() else { return };
        let mortal = NonNull::from(Box::leak(Box::new(Mortal { lock, left: 0 })));
        self.made.fetch_add(1, Relaxed);
        let Some(token) = acquire(worker, mortal) else {
            return;
        };
        let mine = {
            let mut shown = self.shown();
            let free = shown.is_none();
            if free {
                *shown = Some((mortal, 0));
                self.open.store(true, Relaxed);
            }
            free
        };
        let guests = if mine { self.show(worker) } else { 0 };
        // SAFETY: nobody frees it before the guests have acquired it, and this thread holds it.
        unsafe { (*mortal.as_ptr()).left = guests };
        self.leave(worker, mortal, token, unlock, guests == 0);
    }

    /// Shows the lock that this thread has made for a moment; how many have come.
    fn show(&self, worker: &Worker) -> u32 {
        let end = Instant::now() + SHOWN;
        loop {
            // Not a yield: on a crowded machine that costs a slice, or many.
            worker.pause(Pause::Spin(LOOK));
            let mut shown = self.shown();
            let come = shown.map_or(0, |(_, come)| come);
            if come == GUESTS || Instant::now() >= end {
                *shown = None;
                self.open.store(false, Relaxed);
                return come;
            }
        }
    }

    fn come(&self, worker: &Worker, unlock: Unlock<L>) {
        let mortal = match &mut *self.shown() {
            Some((mortal, come)) if *come < GUESTS => {
                *come += 1;
                *mortal
            }
            _ => return,
        };
        let Some(token) = acquire(worker, mortal) else {
            return;
        };
        // SAFETY: it lives until all guests have acquired it, of which this thread is one, and this thread holds it.
        let last = unsafe {
            let left = &mut (*mortal.as_ptr()).left;
            *left -= 1;
            *left == 0
        };
        self.leave(worker, mortal, token, unlock, last);
    }

    /// Unlocks, and frees the lock where this thread was the last to acquire it.
    fn leave(
        &self,
        worker: &Worker,
        mortal: NonNull<Mortal<L>>,
        token: L::Token,
        unlock: Unlock<L>,
        last: bool,
    ) {
        // SAFETY: callers hold it, so it lives until the unlock has released it.
        let lock = unsafe { &(*mortal.as_ptr()).lock };
        // SAFETY: this is their token. It is freed below alone: by this thread after this, or by one that acquires it after this has
        // released it, which is what the lock's docs allow.
        worker.release(LOCK, || unsafe { unlock(lock, token) });
        if last {
            // SAFETY: from a box, and all that knew of it have acquired it.
            drop(unsafe { Box::from_raw(mortal.as_ptr()) });
            self.freed.fetch_add(1, Relaxed);
        }
    }

    /// Whether all that were made are gone, while all threads rest.
    ///
    /// # Errors
    ///
    /// Where some are not.
    pub fn at_rest(&self) -> Result<(), Violation> {
        let (made, freed) = (self.made.load(Relaxed), self.freed.load(Relaxed));
        if made == freed {
            return Ok(());
        }
        Err(Violation::new(
            Kind::Count,
            format!(
                "does not exclude: of {made} locks that the last to acquire them frees {freed} were freed"
            ),
        ))
    }
}

fn acquire<L: RawLock>(worker: &Worker, mortal: NonNull<Mortal<L>>) -> Option<L::Token> {
    let ask = Ask {
        op: Op::Lock,
        lock: LOCK,
        side: Side::Write,
        how: How::Wait,
    };
    // SAFETY: it lives until all that know of it have acquired it, of which the caller is one.
    let lock = || unsafe { &(*mortal.as_ptr()).lock }.lock();
    worker.acquire(ask, || 0, |_| Some(lock()))
}

#[cfg(test)]
mod tests;
