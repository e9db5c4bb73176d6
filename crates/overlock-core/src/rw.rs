//! Reader-writer locks.

pub mod overlock_rw;
pub mod overlock_rw_posix;
pub mod percpu_rwsem;
pub mod qrwlock;

pub use overlock_rw::{OverlockRw, OverlockRwCounted};
pub use overlock_rw_posix::OverlockRwPosix;
pub use percpu_rwsem::PerCpuRwSem;
pub use qrwlock::Qrwlock;
