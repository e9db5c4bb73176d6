//! Doing something once: see [`Once`], and [`OnceLock`] for something that has a result.

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::AtomicU8;

use overlock_core::sleep::once as raw;

pub use overlock_core::sleep::once::OnceState;

use crate::Linux;

/// Does something once, whoever comes first; the others wait for it. 8 bytes.
///
/// Once it is done, a call is one load with acquire ordering: what was done is visible. Waiters
/// sleep, and are all woken at the end.
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
/// As the standard library's and parking_lot's, it is poisoned by a panic: others must not take for
/// granted what was only half done. From then on all panic that ask for it, until somebody insists:
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
#[derive(Default)]
pub struct Once {
    raw: raw::Once<Linux>,
}

impl Once {
    /// Nothing was done yet.
    #[inline]
    pub const fn new() -> Self {
        Once {
            raw: raw::Once::new(),
        }
    }

    /// What there was to do is done already.
    #[inline]
    pub const fn new_completed() -> Self {
        Once {
            raw: raw::Once::with_state(AtomicU8::new(OnceState::Done as u8)),
        }
    }

    /// Calls `f`, unless that was done; waits where another thread is at it. A panic of `f` is
    /// passed on.
    ///
    /// # Panics
    ///
    /// Where an earlier attempt has panicked, one that this call waited for included, and none has
    /// succeeded since.
    #[inline]
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        self.raw.call_once(f);
    }

    /// As [`call_once`](Self::call_once), but tries again where earlier attempts have panicked. `f`
    /// is told whether the last one has.
    #[inline]
    pub fn call_once_force<F: FnOnce(OnceState)>(&self, f: F) {
        self.raw.call_once_force(f);
    }

    /// Waits until another thread has done it; what was done is visible.
    ///
    /// # Panics
    ///
    /// Where an attempt has panicked, before or during the wait, and none has succeeded since.
    #[inline]
    #[track_caller]
    pub fn wait(&self) {
        self.raw.wait();
    }

    /// As [`wait`](Self::wait), but waits on where attempts panic.
    #[inline]
    pub fn wait_force(&self) {
        self.raw.wait_force();
    }

    /// How far it has come. A snapshot, but [`Done`](OnceState::Done) is for good.
    #[inline]
    pub fn state(&self) -> OnceState {
        self.raw.state()
    }

    /// Whether it was done; if so, what was done is visible.
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

/// A value that is set once, by whoever comes first, and then read without a lock. 8 bytes beside
/// the value.
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
/// The methods are those of the standard library's. Nothing is poisoned: where setting it panics,
/// it stays unset.
pub struct OnceLock<T> {
    once: Once,
    /// Written by who runs `once`; holds a value once that is completed (I1). Read-only from then
    /// on, but for an owner.
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: whoever comes first sends the value (`T: Send`: another thread may drop it), all share
// it.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

// What a panic can leave behind is an unset value.
impl<T: UnwindSafe> UnwindSafe for OnceLock<T> {}
impl<T: UnwindSafe + RefUnwindSafe> RefUnwindSafe for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// A value that is not set yet.
    #[inline]
    pub const fn new() -> Self {
        OnceLock {
            once: Once::new(),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// The value, if it is set. Does not wait.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        let value = self.value.get().cast::<T>();
        // SAFETY: I1; and nobody writes any more while `self` is borrowed.
        (self.once.is_completed()).then(|| unsafe { &*value })
    }

    /// The value, if it is set.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        let set = self.once.is_completed();
        // SAFETY: I1.
        set.then(|| unsafe { self.value.get_mut().assume_init_mut() })
    }

    /// The value; where it is not set, that of `f`. Waits where another thread is about to set it.
    /// A panic of `f` is passed on, the value stays unset, and whoever waits or comes tries
    /// again.
    ///
    /// `f` must not ask for this value: it would wait for itself, for ever.
    #[inline]
    pub fn get_or_init<F: FnOnce() -> T>(&self, f: F) -> &T {
        self.once.call_once_force(|_| {
            let value = f();
            // SAFETY: one thread at a time runs this, and nobody reads before it is completed.
            unsafe { self.value.get().cast::<T>().write(value) };
        });
        // SAFETY: I1, completed above; and nobody writes any more while `self` is borrowed.
        unsafe { &*self.value.get().cast::<T>() }
    }

    /// The value. Waits until another thread has set it, where it is not set.
    #[inline]
    pub fn wait(&self) -> &T {
        self.once.wait_force();
        // SAFETY: I1, completed above; and nobody writes any more while `self` is borrowed.
        unsafe { &*self.value.get().cast::<T>() }
    }

    /// Sets the value. Waits where another thread is about to.
    ///
    /// # Errors
    ///
    /// `value` itself, where there is one already.
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

    /// The value, if it is set.
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
