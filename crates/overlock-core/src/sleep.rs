//! Sleeping locks: their waiters block in the operating system.

pub mod barrier;
mod batch;
pub mod cancel;
pub mod condvar;
pub mod mutex;
pub mod once;
pub mod osq;
pub mod overlock;
pub mod rt_mutex;
pub mod rwsem;
pub mod semaphore;
pub(crate) mod wait_list;
pub mod ww_mutex;

pub use barrier::Barrier;
pub use condvar::Condvar;
pub use mutex::{Mutex, MutexInside, MutexNone};
pub use once::{Once, OnceState};
pub use osq::Osq;
pub use overlock::Overlock;
pub use rt_mutex::RtMutex;
pub use rwsem::{RwSem, RwSemCounted, RwSemNone};
pub use semaphore::Semaphore;
pub use ww_mutex::WwMutex;
