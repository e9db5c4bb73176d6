//! Reader-writer spinlocks.

pub mod qrwlock;

pub use overlock_core::rw::{OverlockRw, PerCpuRwSem};

pub use qrwlock::Qrwlock;
