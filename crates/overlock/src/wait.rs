//! Waiting for a word to change, for authors of primitives: [`wait`], [`wake_one`], [`wake_all`],
//! and a [`Parker`].
//!
//! The kernel compares the word and puts the thread to sleep in one step (futex(2)), so no wake-up
//! that follows a change is lost. A thread spins before it sleeps, for as long as a wake-up takes
//! where that has been worth it for this word; `OVERLOCK_SPIN` says for how long.
//!
//! ```
//! use std::sync::atomic::AtomicU32;
//! use std::sync::atomic::Ordering::{Acquire, Release};
//!
//! static READY: AtomicU32 = AtomicU32::new(0);
//!
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         READY.store(1, Release);
//!         overlock::wake_all(&READY);
//!     });
//!     while READY.load(Acquire) == 0 {
//!         overlock::wait(&READY, 0);
//!     }
//! });
//! ```

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use overlock_core::platform::{Deadline, Kick, Platform};

use crate::{System, deadline};

/// Waits until the word is said to have changed from `value`: by [`wake_one`] or [`wake_all`], or
/// since it has another value. May return for no reason.
///
/// It orders nothing: load the word after it, with Acquire.
#[inline]
pub fn wait(word: &AtomicU32, value: u32) {
    halt(word, value, None);
}

/// The same, until `end` at most. Returns whether the time has not passed.
#[inline]
pub fn wait_until(word: &AtomicU32, value: u32, end: Instant) -> bool {
    halt(word, value, Some(deadline::at(end).into()));
    Instant::now() < end
}

fn halt(word: &AtomicU32, value: u32, until: Option<Deadline>) {
    if !(until.is_none_or(Deadline::is_far::<System>)
        && System::spin_first(word.as_ptr().addr(), false, word, value))
    {
        System::halt(word, value, until);
    }
}

/// Wakes one thread that [waits](wait) for the word, if there is one.
///
/// It orders nothing: store to the word before it, with Release. The word may be gone by then, so
/// this takes its address.
#[inline]
pub fn wake_one(word: *const AtomicU32) {
    System::kick(word, Kick::One);
}

/// Wakes all of them, as [`wake_one`] does one.
#[inline]
pub fn wake_all(word: *const AtomicU32) {
    System::kick(word, Kick::All);
}

const EMPTY: u32 = 0;
const PARKED: u32 = 1;
const TOKEN: u32 = 2;

/// Blocks its thread until an [`Unparker`] of it gives it a token. A token that was given before is
/// taken at once; two are one.
///
/// [`unpark`](Unparker::unpark) has release ordering and the return from a park that has taken its
/// token acquire. An unpark of a thread that does not sleep makes no system call.
///
/// ```
/// use overlock::Parker;
///
/// let parker = Parker::new();
/// let unparker = parker.unparker().clone();
/// std::thread::spawn(move || unparker.unpark());
/// parker.park();
/// ```
#[derive(Debug, Default)]
pub struct Parker {
    unparker: Unparker,
    /// Only one thread parks at a time.
    _unshared: std::marker::PhantomData<std::cell::Cell<()>>,
}

/// Wakes the thread of a [`Parker`].
#[derive(Clone, Debug, Default)]
pub struct Unparker(Arc<AtomicU32>);

impl Parker {
    /// A parker without a token.
    pub fn new() -> Self {
        Self::default()
    }

    /// Its waker.
    pub fn unparker(&self) -> &Unparker {
        &self.unparker
    }

    /// Waits for a token, and takes it.
    pub fn park(&self) {
        self.park_limited(None);
    }

    /// Waits for a token for so long at most. Returns whether it has taken one.
    pub fn park_timeout(&self, timeout: Duration) -> bool {
        self.park_limited(Some(deadline::after(timeout).into()))
    }

    /// Waits for a token until `end` at most. Returns whether it has taken one.
    pub fn park_deadline(&self, end: Instant) -> bool {
        self.park_limited(Some(deadline::at(end).into()))
    }

    fn park_limited(&self, until: Option<Deadline>) -> bool {
        let word = &*self.unparker.0;
        // A token that is there is taken below. Relaxed, and so are the spin's loads.
        if !(until.is_none_or(Deadline::is_far::<System>)
            && System::spin_first(word.as_ptr().addr(), false, word, EMPTY))
        {
            // Fails if there is a token.
            let _ = word.compare_exchange(EMPTY, PARKED, Relaxed, Relaxed);
            while word.load(Relaxed) == PARKED
                && !until.is_some_and(|until| until.is_over::<System>())
            {
                System::halt(word, PARKED, until);
            }
        }
        // Acquire: pairs with the release of `unpark`.
        word.swap(EMPTY, Acquire) == TOKEN
    }
}

impl Unparker {
    /// Gives the thread a token, and wakes it if it sleeps.
    pub fn unpark(&self) {
        // Release: pairs with the acquire of `park`.
        if self.0.swap(TOKEN, Release) == PARKED {
            wake_one(Arc::as_ptr(&self.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_word_with_another_value_is_not_waited_for() {
        wait(&AtomicU32::new(1), 0);
    }

    #[test]
    fn a_wait_ends_at_its_deadline() {
        let word = AtomicU32::new(0);
        let end = Instant::now() + Duration::from_millis(5);
        while wait_until(&word, 0, end) {}
        assert!(Instant::now() >= end);
    }

    #[test]
    fn waiters_are_woken() {
        const THREADS: u32 = 4;
        let (word, awake) = (AtomicU32::new(0), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while word.load(Acquire) == 0 {
                        wait(&word, 0);
                    }
                    awake.fetch_add(1, Relaxed);
                });
            }
            thread::sleep(Duration::from_millis(5));
            word.store(1, Release);
            wake_one(&word);
            wake_all(&word);
        });
        assert_eq!(awake.load(Relaxed), THREADS);
    }

    #[test]
    fn a_token_is_kept_and_two_are_one() {
        let parker = Parker::new();
        parker.unparker().unpark();
        parker.unparker().unpark();
        parker.park();
        assert!(!parker.park_timeout(Duration::from_millis(1)));
        assert!(!parker.park_deadline(Instant::now()));
    }

    #[test]
    fn two_threads_wake_each_other() {
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        let (mine, yours) = (Parker::new(), Parker::new());
        let (to_me, to_you) = (mine.unparker().clone(), yours.unparker().clone());
        thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..rounds {
                    yours.park();
                    to_me.unpark();
                }
            });
            for _ in 0..rounds {
                to_you.unpark();
                mine.park();
            }
        });
    }
}
