//! lock_api's `Raw*` traits for every lock: see [`overlock_core::lock_api`].

macro_rules! mutexes {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {
        $(mutexes!(@ $lock, $kind);)*
    };
    // A fallible lock has no `INIT`.
    (@ $lock:ident, fallible) => {};
    (@ $lock:ident, $kind:ident) => {
        overlock_core::lock_api_mutex!(crate::spin::$lock);
    };
}

crate::spin_locks!(mutexes);
// In place of `FastQueue`, which is fallible.
#[cfg(target_has_atomic = "64")]
overlock_core::lock_api_mutex!(crate::spin::LazyFastQueue: crate::FamilyPlatform);
overlock_core::lock_api_mutex!(crate::sleep::KernelMutex);
overlock_core::lock_api_mutex!(crate::sleep::KernelMutexInside);
overlock_core::lock_api_mutex!(crate::sleep::KernelMutexNone);
overlock_core::lock_api_rwlock!(crate::rw::Qrwlock);
overlock_core::lock_api_rwlock!(crate::sleep::RwSem);
overlock_core::lock_api_rwlock!(crate::sleep::RwSemNone);
overlock_core::lock_api_rwlock!(crate::sleep::RwSemCounted);
