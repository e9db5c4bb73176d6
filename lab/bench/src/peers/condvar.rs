//! The condition variables that people use today, each with the mutex of its family.

use super::{
    ParkingLot as ParkingLotMutex, ParkingLot012 as ParkingLot012Mutex, Std as StdMutex,
    Usync as UsyncMutex,
};
use crate::wrap::condvars;

condvars! {
    /// `std::sync::Condvar`, poisoning included.
    Std(std::sync::Condvar), StdMutex,
        |condvar, guard| condvar.wait(guard).expect("a worker panicked while it held the lock");
    /// `parking_lot` 0.13's `Condvar`.
    ParkingLot(parking_lot::Condvar), ParkingLotMutex,
        |condvar, mut guard| { condvar.wait(&mut guard); guard };
    /// `parking_lot` 0.12's `Condvar`.
    ParkingLot012(parking_lot_012::Condvar), ParkingLot012Mutex,
        |condvar, mut guard| { condvar.wait(&mut guard); guard };
    /// `usync`'s `Condvar`.
    Usync(usync::Condvar), UsyncMutex,
        |condvar, mut guard| { condvar.wait(&mut guard); guard };
}
