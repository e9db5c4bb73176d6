//! The lock that a thread releases while it waits for a condition, as the thread comes back to it.

use std::cell::Cell;

use overlock_core::Platform;
use overlock_core::raw::{Create, CreateError, RawLock};
use overlock_lockdep::__private::Held;

thread_local! {
    /// The acquisition that the calling thread has given up for a while, if the validator knows it.
    pub(super) static RELEASED: Cell<Option<Held>> = const { Cell::new(None) };
}

/// The lock `R`, whose acquisition at the end of a sleep is a wait that the validator sees.
#[repr(transparent)]
pub(crate) struct Back<R>(R);

impl<R> Back<R> {
    pub(super) fn of(raw: &R) -> &Self {
        // SAFETY: a transparent wrapper.
        unsafe { &*std::ptr::from_ref(raw).cast() }
    }
}

impl<R: Create> Create for Back<R> {
    fn create() -> Result<Self, CreateError> {
        R::create().map(Back)
    }
}

// SAFETY: acquisitions and releases are those of `R`, at the same address.
unsafe impl<R: RawLock> RawLock for Back<R> {
    type Token = R::Token;

    const NAME: &'static str = R::NAME;

    fn lock(&self) -> R::Token {
        match RELEASED.take() {
            Some(held) => {
                (self.0.try_lock()).unwrap_or_else(|| super::wait(&held, || self.0.lock()))
            }
            None => self.0.lock(),
        }
    }

    fn try_lock(&self) -> Option<R::Token> {
        self.0.try_lock()
    }

    unsafe fn unlock(&self, token: R::Token) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock(token) }
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    fn is_contended(&self) -> bool {
        self.0.is_contended()
    }

    fn is_overlock<P: Platform>(&self) -> bool {
        self.0.is_overlock::<P>()
    }

    fn is_watched(&self) -> bool {
        RELEASED.get().is_some()
    }

    fn lock_adopted(&self) -> R::Token {
        self.0.lock_adopted()
    }
}
