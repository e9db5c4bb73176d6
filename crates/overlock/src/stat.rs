//! Statistics of the program's own locks (feature `stat`).
//!
//! `report` has figures by the [names](crate::lock::Lock::named) of the locks: their acquisitions,
//! the lengths of the waits, how long the locks were held. A lock without a name is known by the
//! line on which it was made. [`snapshot`] has the counters of all locks together.
//!
//! All of it is off until the program calls [`enable`], or runs with `OVERLOCK_STAT=1`. With that
//! variable `overlock top`, `overlock report` and `overlock profile` see the locks, too.
#![cfg_attr(feature = "stat", doc = "```")]
#![cfg_attr(not(feature = "stat"), doc = "```ignore")]
//! use overlock::{Mutex, stat};
//!
//! static POOL: Mutex<u32> = Mutex::named("pool", 0);
//!
//! stat::enable(true);
//! *POOL.lock() += 1;
//! let report = stat::report();
//! assert_eq!((report.locks[0].name.as_str(), report.locks[0].acquisitions), ("pool", 1));
//! print!("{report}");
//! ```
//!
//! An acquisition that ends a wait for a [`Condvar`](crate::Condvar), or an upgrade, is not counted
//! again. Other types than [`Lock`](crate::lock::Lock), [`SharedLock`](crate::rwlock::SharedLock)
//! and [`ReentrantLock`](crate::reentrant::ReentrantLock) do not count.

pub use overlock_core::stat::*;
#[cfg(feature = "stat")]
pub use overlock_stat::report::{Figures, Kind, Report, report};

/// Starts or stops counting, for the whole program. Does nothing without the feature `stat`.
///
/// With `OVERLOCK_STAT=1` in the environment the figures by name are always counted.
pub fn enable(on: bool) {
    overlock_core::stat::enable(on);
    #[cfg(feature = "stat")]
    overlock_stat::mode::enable(on);
}

/// Sets all counters and figures to 0. Events that happen meanwhile may be counted or lost.
pub fn reset() {
    overlock_core::stat::reset();
    #[cfg(feature = "stat")]
    overlock_stat::report::reset();
}
