//! The material of the types: the locks of [`overlock_core`].

pub use overlock_core::rw::{OverlockRw, PerCpuRwSem, RecursiveRw};
pub use overlock_core::sleep::barrier::Barrier;
pub use overlock_core::sleep::condvar::Condvar;
pub use overlock_core::sleep::once::Once;
pub use overlock_core::sleep::semaphore::Semaphore;
pub use overlock_core::sleep::{FairOverlock, Overlock};

/// Calls `f` with a variable of the calling thread's own.
#[inline]
pub fn with_own<T>(f: impl FnOnce(&u8) -> T) -> T {
    thread_local!(static OWN: u8 = const { 0 });
    OWN.with(f)
}

/// Ends the process.
pub fn unwound() {
    std::process::abort();
}
