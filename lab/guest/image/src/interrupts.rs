//! Interrupts off and on, and a lock that holds them off.
//!
//! A lock that an interrupt handler takes is held with interrupts off by everybody else on that
//! vCPU. Otherwise the handler may wait for the code that it interrupts. [`InterruptLock`] makes
//! such a lock of any other.

use core::fmt;
use core::marker::PhantomData;

use lock_api::RawMutex;

use crate::backend;

/// Interrupts are off on this vCPU until this is dropped. They were on or off before, and are
/// so afterwards.
#[derive(Debug)]
pub struct Off {
    were_on: bool,
    /// Belongs to the vCPU: not `Send`.
    _here: PhantomData<*mut ()>,
}

impl Off {
    /// Turns interrupts off.
    #[inline]
    pub fn begin() -> Self {
        Off {
            were_on: backend::interrupts_off(),
            _here: PhantomData,
        }
    }

    /// Whether interrupts were on before.
    #[inline]
    pub fn were_on(&self) -> bool {
        self.were_on
    }
}

impl Drop for Off {
    #[inline]
    fn drop(&mut self) {
        if self.were_on {
            backend::interrupts_on();
        }
    }
}

/// Whether interrupts are on. False for a back end without interrupts.
pub fn are_on() -> bool {
    backend::interrupts_are_on()
}

/// Turns interrupts on, at the end of a vCPU's boot.
pub fn enable() {
    backend::interrupts_on();
}

/// A lock of `lock_api` that is held, and waited for, with interrupts off: the spinlock of a kernel
/// that its interrupt handlers may take as well.
///
/// ```ignore
/// static QUEUE: lock_api::Mutex<InterruptLock<overlock_family::spin::Hybrid<Guest>>, Queue> = ...;
/// ```
pub struct InterruptLock<R>(R);

impl<R> fmt::Debug for InterruptLock<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InterruptLock")
    }
}

/// The guard's state: that of the lock, then the interrupts.
#[derive(Debug)]
pub struct InterruptGuard<G>(G, Off);

// SAFETY: exclusion is that of the lock inside. Interrupts come back after its release only.
unsafe impl<R: RawMutex> RawMutex for InterruptLock<R> {
    const INIT: Self = InterruptLock(R::INIT);

    type Guard = InterruptGuard<R::Guard>;

    #[inline]
    fn lock(&self) -> Self::Guard {
        let off = Off::begin();
        InterruptGuard(self.0.lock(), off)
    }

    #[inline]
    fn try_lock(&self) -> Option<Self::Guard> {
        let off = Off::begin();
        self.0.try_lock().map(|guard| InterruptGuard(guard, off))
    }

    #[inline]
    unsafe fn unlock(&self, InterruptGuard(guard, off): Self::Guard) {
        // SAFETY: the caller passes the state of its acquisition.
        unsafe { self.0.unlock(guard) };
        drop(off);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}
