//! Sleeping locks: their waiters spin first, then block in the operating system.

pub mod mutex;
pub mod osq;
pub mod rwsem;

pub use overlock_core::sleep::Overlock;

pub use mutex::{KernelMutex, KernelMutexInside, KernelMutexNone};
pub use osq::Osq;
pub use rwsem::{RwSem, RwSemCounted, RwSemNone};
