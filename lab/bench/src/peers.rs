//! The locks that people use today, as their users get them: `Mutex<()>` and its guard.

pub mod condvar;
#[cfg(target_env = "gnu")]
pub mod glibc;
pub mod rw;

use crate::wrap::mutexes;

mutexes! {
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
