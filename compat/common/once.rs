//! The one-time execution: overlock's, with reports to the deadlock detection.

use std::fmt;
use std::ptr;

pub use overlock::OnceState;

use crate::deadlock::{self, Kind};

/// Runs a function once, in the first thread that calls; the others wait for it.
#[derive(Default)]
pub struct Once(overlock::Once);

impl Once {
    /// Returns a `Once` whose function has not run.
    #[inline]
    pub const fn new() -> Self {
        Once(overlock::Once::new())
    }

    /// Returns a `Once` that is completed.
    #[inline]
    pub const fn new_completed() -> Self {
        Once(overlock::Once::new_completed())
    }

    fn key(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Makes a call that may wait.
    fn wait_in(&self, call: impl FnOnce()) {
        let wait = || {
            call();
            false
        };
        deadlock::acquire(self.key(), Kind::Write, None, || false, wait);
    }

    /// Calls `f` unless that was done.
    ///
    /// # Panics
    ///
    /// If an earlier call has panicked.
    #[inline]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        if !self.0.is_completed() {
            self.wait_in(|| self.0.call_once(|| deadlock::run(self.key(), f)));
        }
    }

    /// As [`call_once`](Self::call_once), but after a panic it tries again.
    #[inline]
    pub fn call_once_force<F: FnOnce(OnceState)>(&self, f: F) {
        if !self.0.is_completed() {
            let run = |state| deadlock::run(self.key(), || f(state));
            self.wait_in(|| self.0.call_once_force(run));
        }
    }

    /// Waits until it is done.
    ///
    /// # Panics
    ///
    /// If a call has panicked.
    #[inline]
    pub fn wait(&self) {
        if !self.0.is_completed() {
            self.wait_in(|| self.0.wait());
        }
    }

    /// As [`wait`](Self::wait), also after panics.
    #[inline]
    pub fn wait_force(&self) {
        if !self.0.is_completed() {
            self.wait_in(|| self.0.wait_force());
        }
    }

    /// Returns the state.
    #[inline]
    pub fn state(&self) -> OnceState {
        self.0.state()
    }

    /// Whether it is done.
    #[inline]
    pub fn is_completed(&self) -> bool {
        self.0.is_completed()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
