//! Sleeping locks: their waiters block in the operating system.

pub mod barrier;
pub mod cancel;
pub mod condvar;
pub mod fair;
pub mod once;
pub mod overlock;
pub mod reentrant;
pub mod rt_mutex;
pub mod semaphore;
#[doc(hidden)]
pub mod wait_list;
pub mod ww_mutex;

pub use barrier::Barrier;
pub use condvar::Condvar;
pub use fair::FairOverlock;
pub use once::{Once, OnceState};
pub use overlock::Overlock;
pub use reentrant::Reentrant;
pub use rt_mutex::RtMutex;
pub use semaphore::Semaphore;
pub use ww_mutex::WwMutex;
