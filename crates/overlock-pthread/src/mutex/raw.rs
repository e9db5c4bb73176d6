//! The locks that a mutex can be made of, and a mutex of any kind as a lock, for condition
//! variables.

use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64};

use overlock::Linux;
use overlock_core::raw::{CreateError, RawLock};
use overlock_core::{Platform, sleep};

use super::Mutex;
use crate::site::Site;

/// The recommended mutex.
pub type Main = sleep::Overlock<Linux>;
/// The kernel's mutex.
pub type Sleeping = sleep::Mutex<Linux>;

impl Mutex {
    /// The lock as one of those above: which, is the configuration's choice, for all mutexes of a
    /// process.
    #[inline(always)]
    pub(super) fn as_lock<L>(&self) -> &L {
        const {
            assert!(
                size_of::<L>() <= size_of::<[AtomicU64; 2]>()
                    && align_of::<L>() <= align_of::<u64>()
            )
        };
        // SAFETY: the lock's size and alignment fit, all zero bytes are an unlocked one, and all
        // accesses are through the same type: the configuration does not change.
        unsafe { &*core::ptr::from_ref(&self.lock).cast() }
    }

    #[inline(always)]
    pub(super) fn main(&self) -> &Main {
        self.as_lock()
    }

    /// How often the recommended mutex was acquired, modulo 2^32, where that is counted: in bytes
    /// that it leaves free. Owners write it.
    #[inline(always)]
    pub(super) fn acquisitions(&self) -> &AtomicU32 {
        const { assert!(size_of::<Main>() <= size_of::<AtomicU64>()) };
        let second = core::ptr::from_ref(&self.lock[1]);
        // SAFETY: four bytes of the mutex's own, that nothing else accesses while it is made of
        // `Main`.
        unsafe { &*second.cast() }
    }
}

/// Evaluates an expression for the lock that the mutex is made of.
macro_rules! raw {
    ($mutex:expr, |$lock:ident| $what:expr) => {
        match $crate::config::get().mutex {
            $crate::config::MutexLock::Mutex => {
                let $lock = $mutex.as_lock::<$crate::mutex::raw::Sleeping>();
                $what
            }
            _ => {
                let $lock = $mutex.main();
                $what
            }
        }
    };
}
pub(crate) use raw;

/// A mutex of any kind, glibc's too, as what a condition variable releases and acquires. What
/// acquiring it has returned is its token.
#[derive(Debug)]
#[repr(transparent)]
pub struct Any(Mutex);

thread_local! {
    /// Where the thread waits for a condition: the call site of the acquisition at the end of it.
    /// No destructor, no lazy initialisation: this is always there.
    static SITE: Cell<Site> = const { Cell::new(0) };
}

impl Any {
    pub(crate) fn of(mutex: &Mutex) -> &Self {
        // SAFETY: the one is a transparent wrapper of the other.
        unsafe { &*core::ptr::from_ref(mutex).cast() }
    }

    /// Where the calling thread waits for a condition, with whichever mutex.
    pub(crate) fn acquired_at(site: Site) {
        SITE.set(site);
    }
}

// SAFETY: acquisitions and releases are those of the mutex, whichever lock that is made of.
unsafe impl RawLock for Any {
    type Token = c_int;

    const NAME: &'static str = "pthread_mutex";

    fn create() -> Result<Self, CreateError> {
        Ok(Any(Mutex::new(0)))
    }

    fn lock(&self) -> c_int {
        self.0.acquire_any(SITE.get())
    }

    fn try_lock(&self) -> Option<c_int> {
        (self.0.try_acquire_any(SITE.get()) == 0).then_some(0)
    }

    unsafe fn unlock(&self, _: c_int) {
        self.0.release_any();
    }

    fn is_locked(&self) -> bool {
        raw!(self.0, |lock| lock.is_locked())
    }

    fn is_contended(&self) -> bool {
        raw!(self.0, |lock| lock.is_contended())
    }

    /// The lock is the first field.
    fn is_overlock<P: Platform>(&self) -> bool {
        self.0.is_ours() && raw!(self.0, |lock| lock.is_overlock::<P>())
    }

    fn lock_adopted(&self) -> c_int {
        self.0.acquire_adopted(SITE.get())
    }
}
