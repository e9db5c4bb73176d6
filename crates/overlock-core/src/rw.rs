//! Reader-writer locks.

pub mod overlock_rw;
pub mod percpu_rwsem;

pub use overlock_rw::{OverlockRw, RecursiveRw};
pub use percpu_rwsem::PerCpuRwSem;
