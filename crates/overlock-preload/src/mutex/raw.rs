//! The lock that a mutex is made of, and mutexes of any kind as a lock for condition
//! variables.

use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64};

use overlock::Linux;
use overlock_core::raw::{Create, CreateError, RawLock};
use overlock_core::{Platform, sleep};

use super::Mutex;
use super::functions::acquired;
use crate::config;
use crate::ends;
use crate::order::Object;
use crate::site::Site;

/// The recommended mutex.
pub type Main = sleep::Overlock<Linux>;

impl Mutex {
    #[inline(always)]
    pub(super) fn main(&self) -> &Main {
        const {
            assert!(
                size_of::<Main>() <= size_of::<AtomicU64>()
                    && align_of::<Main>() <= align_of::<u64>()
            )
        };
        // SAFETY: the lock's size and alignment fit, all zero bytes are an unlocked one, and all
        // accesses are through the same type.
        unsafe { &*core::ptr::from_ref(&self.lock).cast() }
    }

    /// The lock as the validator knows it.
    pub(super) fn object(&self) -> Object<'_> {
        let lock: *const AtomicU32 = core::ptr::from_ref(&self.lock[0]).cast();
        const { assert!(size_of::<Main>() <= size_of::<AtomicU32>()) };
        Object {
            address: core::ptr::from_ref(self).addr(),
            // SAFETY: four bytes of the mutex's own, between the lock and the next field.
            mark: unsafe { &*lock.wrapping_add(1) },
        }
    }
}

/// A mutex of any kind, glibc's too, as the lock that a condition variable releases and acquires.
/// Its token is the result of the acquisition: 0 or an errno.
#[derive(Debug)]
#[repr(transparent)]
pub struct Any(Mutex);

thread_local! {
    /// The call site of the calling thread's wait for a condition, for the acquisition at its end.
    /// It has no destructor and no lazy initialisation, so it exists at any time.
    static SITE: Cell<Site> = const { Cell::new(0) };

    /// The address of that condition.
    static AWAITED: Cell<usize> = const { Cell::new(0) };
}

/// The address of the condition that the calling thread has waited for last, which may have been
/// freed.
pub(super) fn awaited() -> usize {
    AWAITED.get()
}

/// The call site of the calling thread's wait for a condition.
pub(crate) fn site() -> Site {
    SITE.get()
}

impl Any {
    pub(crate) fn of(mutex: &Mutex) -> &Self {
        // SAFETY: `Any` is a transparent wrapper of `Mutex`.
        unsafe { &*core::ptr::from_ref(mutex).cast() }
    }

    /// Records the call site at which the calling thread waits for a condition, with any mutex, and
    /// that condition's address.
    pub(crate) fn acquired_at(site: Site, cond: usize) {
        SITE.set(site);
        AWAITED.set(cond);
    }
}

impl Create for Any {
    fn create() -> Result<Self, CreateError> {
        Ok(Any(Mutex::new(0)))
    }
}

// SAFETY: acquisitions and releases are those of the mutex, whichever lock that is made of.
unsafe impl RawLock for Any {
    type Token = c_int;

    const NAME: &'static str = "pthread_mutex";

    fn lock(&self) -> c_int {
        let result = self.0.acquire_again_any(SITE.get());
        ends::has_again();
        acquired(&self.0, result)
    }

    fn try_lock(&self) -> Option<c_int> {
        (self.0.try_acquire_any(SITE.get()) == 0).then_some(0)
    }

    unsafe fn unlock(&self, _: c_int) {
        self.0.release_any();
        ends::has_released(&self.0);
    }

    fn is_locked(&self) -> bool {
        self.0.main().is_locked()
    }

    fn is_contended(&self) -> bool {
        self.0.main().is_contended()
    }

    /// The lock is the first field.
    fn is_overlock<P: Platform>(&self) -> bool {
        self.0.is_ours() && self.0.main().is_overlock::<P>()
    }

    fn is_watched(&self) -> bool {
        config::get().lockdep
    }

    fn lock_adopted(&self) -> c_int {
        let result = self.0.acquire_adopted(SITE.get());
        ends::has_again();
        acquired(&self.0, result)
    }
}
