//! Locks of others, written once over [`FutexPlatform`](overlock_core::FutexPlatform) from their
//! published descriptions: models, which are simulated beside our locks.
//!
//! They are for comparison, not for programs: `docs/evidence/peers.md` says what each leaves out.
//! There is no code of the originals here.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod cna;
#[cfg(test)]
mod course;
mod flexguard;
mod glibc;
mod glibc_adaptive;
mod malthusian;
mod parking_lot;
mod queue;
mod random;
mod reciprocating;
mod rust_std;
mod shfllock;
mod spinbit;
mod word;

pub use cna::Cna;
pub use flexguard::FlexGuard;
pub use glibc::Glibc;
pub use glibc_adaptive::GlibcAdaptive;
pub use malthusian::Malthusian;
pub use parking_lot::{ParkingLot, ParkingLot13};
pub use queue::Token;
pub use reciprocating::{Passage, Reciprocating};
pub use rust_std::RustStd;
pub use shfllock::ShflLock;
pub use spinbit::Spinbit;

/// Calls `$callback!` with one line a lock: the name of its type, without the platform.
#[macro_export]
macro_rules! peers {
    ($callback:ident) => {
        $callback! {
            RustStd;
            Glibc;
            GlibcAdaptive;
            ParkingLot;
            ParkingLot13;
            Cna;
            ShflLock;
            Malthusian;
            FlexGuard;
            Spinbit;
            Reciprocating;
        }
    };
}
