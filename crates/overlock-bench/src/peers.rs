//! The locks that people use today, as their users get them: `Mutex<()>` and its guard.

#[cfg(target_env = "gnu")]
pub mod glibc;

use crate::lock::{BenchLock, CreateError};

/// Wraps a `Mutex<()>` whose `lock` returns its guard.
macro_rules! guarded {
    ($($(#[$doc:meta])* $name:ident($mutex:ty), $guard:ty, $lock:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name($mutex);

        impl BenchLock for $name {
            type Guard<'a> = $guard;

            fn create() -> Result<Self, CreateError> {
                Ok(Self(<$mutex>::new(())))
            }

            #[inline]
            fn lock(&self) -> Self::Guard<'_> {
                let lock: fn(&$mutex) -> Self::Guard<'_> = $lock;
                lock(&self.0)
            }
        }
    )*};
}

guarded! {
    /// `std::sync::Mutex`, poisoning included.
    Std(std::sync::Mutex<()>), std::sync::MutexGuard<'a, ()>,
        |m| m.lock().expect("a worker panicked while it held the lock");
    /// `parking_lot` 0.13's `Mutex`.
    ParkingLot(parking_lot::Mutex<()>), parking_lot::MutexGuard<'a, ()>, |m| m.lock();
    /// `parking_lot` 0.12's `Mutex`.
    ParkingLot012(parking_lot_012::Mutex<()>), parking_lot_012::MutexGuard<'a, ()>, |m| m.lock();
    /// `parking_lot` 0.13's `FairMutex`.
    ParkingLotFair(parking_lot::FairMutex<()>), parking_lot::FairMutexGuard<'a, ()>, |m| m.lock();
    /// `parking_lot` 0.12's `FairMutex`.
    ParkingLotFair012(parking_lot_012::FairMutex<()>), parking_lot_012::FairMutexGuard<'a, ()>, |m| m.lock();
    /// `spin`'s test-and-set lock.
    SpinMutex(spin::mutex::SpinMutex<()>), spin::mutex::SpinMutexGuard<'a, ()>, |m| m.lock();
    /// `spin`'s ticket lock.
    SpinTicket(spin::mutex::TicketMutex<()>), spin::mutex::TicketMutexGuard<'a, ()>, |m| m.lock();
    /// `usync`'s `Mutex`.
    Usync(usync::Mutex<()>), usync::MutexGuard<'a, ()>, |m| m.lock();
}
