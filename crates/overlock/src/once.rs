//! One-time execution: [`Once`], and [`OnceLock`] for a value.

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::AtomicU8;

pub use overlock_core::sleep::once::OnceState;

use crate::System;
use crate::base as raw;

/// Runs a function once, in the first thread that calls; the others wait for it. 8 bytes.
///
/// Once it is done, a call is one load with acquire ordering, which makes the function's writes
/// visible. Waiters sleep, and are all woken at the end.
///
/// ```
/// use overlock::Once;
///
/// static START: Once = Once::new();
///
/// START.call_once(|| println!("printed once"));
/// START.call_once(|| unreachable!());
/// assert!(START.is_completed());
/// ```
///
/// As the standard library's and parking_lot's, it is poisoned by a panic: other threads must not
/// rely on work that is half done. From then on every call panics, until one insists:
///
/// ```
/// use overlock::{Once, OnceState};
///
/// let start = Once::new();
/// let fails = || start.call_once(|| panic!("the disk is full"));
/// assert!(std::panic::catch_unwind(fails).is_err());
/// assert_eq!(start.state(), OnceState::Poisoned);
///
/// start.call_once_force(|state| assert!(state.is_poisoned()));
/// start.call_once(|| unreachable!());
/// ```
///
/// `f` of a call must not call the same `Once` again, nor wait for it: it would wait for itself,
/// for ever.
///
/// Not for threads of [two copies](crate#two-copies-in-a-process) of this crate.
#[derive(Default)]
pub struct Once {
    raw: raw::Once<System>,
}

impl Once {
    /// Returns a `Once` whose function has not run.
    #[inline]
    pub const fn new() -> Self {
        Once {
            raw: raw::Once::new(),
        }
    }

    /// Returns a `Once` that is completed already.
    #[inline]
    pub const fn new_completed() -> Self {
        Once {
            raw: raw::Once::with_state(AtomicU8::new(OnceState::Done as u8)),
        }
    }

    /// Calls `f` unless that was done. Waits while another thread does it. Propagates a panic of
    /// `f`.
    ///
    /// # Panics
    ///
    /// If an earlier attempt has panicked, including one that this call waited for, and none has
    /// succeeded since.
    #[inline]
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        self.raw.call_once(f);
    }

    /// As [`call_once`](Self::call_once), but tries again after panics. `f` learns whether the last
    /// attempt has panicked.
    #[inline]
    pub fn call_once_force<F: FnOnce(OnceState)>(&self, f: F) {
        self.raw.call_once_force(f);
    }

    /// Waits until another thread has done it. The function's writes are visible afterwards.
    ///
    /// # Panics
    ///
    /// If an attempt has panicked, before or during the wait, and none has succeeded since.
    #[inline]
    #[track_caller]
    pub fn wait(&self) {
        self.raw.wait();
    }

    /// As [`wait`](Self::wait), but keeps waiting when attempts panic.
    #[inline]
    pub fn wait_force(&self) {
        self.raw.wait_force();
    }

    /// Returns the state. A snapshot, but [`Done`](OnceState::Done) is final.
    #[inline]
    pub fn state(&self) -> OnceState {
        self.raw.state()
    }

    /// Whether it was done. If so, the function's writes are visible.
    #[inline]
    pub fn is_completed(&self) -> bool {
        self.raw.is_done()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once")
            .field("state", &self.state())
            .finish()
    }
}

/// A value that the first thread sets and that is then read without a lock. 8 bytes beside the
/// value.
///
/// ```
/// use overlock::OnceLock;
///
/// static NAME: OnceLock<String> = OnceLock::new();
///
/// assert_eq!(NAME.get(), None);
/// assert_eq!(NAME.get_or_init(|| "first".into()), "first");
/// assert_eq!(NAME.get_or_init(|| "second".into()), "first");
/// ```
///
/// The methods are those of the standard library's. There is no poisoning: if setting it panics, it
/// stays unset.
///
/// Not for threads of [two copies](crate#two-copies-in-a-process) of this crate.
pub struct OnceLock<T> {
    once: Once,
    /// Written by the thread that runs `once`; holds a value once that is completed (I1). Read-only
    /// from then on, except for an owner.
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the first thread sends the value (`T: Send`: another thread may drop it), all share it.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

// A panic leaves an unset value at worst.
impl<T: UnwindSafe> UnwindSafe for OnceLock<T> {}
impl<T: UnwindSafe + RefUnwindSafe> RefUnwindSafe for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// Returns an unset value.
    #[inline]
    pub const fn new() -> Self {
        OnceLock {
            once: Once::new(),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Returns the value, if it is set. Does not wait.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        let value = self.value.get().cast::<T>();
        // SAFETY: I1; and nobody writes any more while `self` is borrowed.
        (self.once.is_completed()).then(|| unsafe { &*value })
    }

    /// Returns the value, if it is set.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        let set = self.once.is_completed();
        // SAFETY: I1.
        set.then(|| unsafe { self.value.get_mut().assume_init_mut() })
    }

    /// Returns the value. If it is unset, sets it to the result of `f`; waits while another thread
    /// does.
    ///
    /// A panic of `f` is propagated and leaves the value unset; waiters and later callers try
    /// again. `f` must not ask for this value: it would wait for itself, for ever.
    #[inline]
    pub fn get_or_init<F: FnOnce() -> T>(&self, f: F) -> &T {
        if !self.once.is_completed() {
            self.init(f);
        }
        // SAFETY: I1, completed above; and nobody writes any more while `self` is borrowed.
        unsafe { &*self.value.get().cast::<T>() }
    }

    /// Apart, so that a caller who finds the value saves no registers for `f`.
    #[cold]
    fn init<F: FnOnce() -> T>(&self, f: F) {
        self.once.call_once_force(|_| {
            let value = f();
            // SAFETY: one thread at a time runs this, and nobody reads before it is completed.
            unsafe { self.value.get().cast::<T>().write(value) };
        });
    }

    /// Returns the value. Waits until another thread has set it.
    #[inline]
    pub fn wait(&self) -> &T {
        self.once.wait_force();
        // SAFETY: I1, completed above; and nobody writes any more while `self` is borrowed.
        unsafe { &*self.value.get().cast::<T>() }
    }

    /// Sets the value. Waits while another thread sets it.
    ///
    /// # Errors
    ///
    /// `value` itself, if there is one already.
    #[inline]
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.get_or_init(|| value.take().expect("called once"));
        match value {
            None => Ok(()),
            Some(value) => Err(value),
        }
    }

    /// Takes the value out, if it is set; it can be set again.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        let mut taken = std::mem::take(self);
        let set = taken.once.is_completed();
        // Nothing is left for its drop.
        taken.once = Once::new();
        // SAFETY: I1; this is the one use of it.
        set.then(|| unsafe { taken.value.get_mut().assume_init_read() })
    }

    /// Returns the value, if it is set.
    #[inline]
    pub fn into_inner(mut self) -> Option<T> {
        self.take()
    }
}

impl<T> Drop for OnceLock<T> {
    #[inline]
    fn drop(&mut self) {
        if self.once.is_completed() {
            // SAFETY: I1; nobody uses it any more.
            unsafe { self.value.get_mut().assume_init_drop() };
        }
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        OnceLock::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> Self {
        let cell = OnceLock::new();
        cell.get_or_init(|| value);
        cell
    }
}

impl<T: Clone> Clone for OnceLock<T> {
    fn clone(&self) -> Self {
        self.get().cloned().map_or_else(OnceLock::new, Self::from)
    }
}

impl<T: PartialEq> PartialEq for OnceLock<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceLock<T> {}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_tuple("OnceLock");
        match self.get() {
            Some(value) => shown.field(value),
            None => shown.field(&format_args!("<uninit>")),
        };
        shown.finish()
    }
}
