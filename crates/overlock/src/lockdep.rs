//! Validates lock order while the program runs (feature `lockdep`).
//!
//! With the feature, the locks with data of this crate report to the validator by themselves:
//! [`Lock`](crate::lock::Lock), [`SharedLock`](crate::rwlock::SharedLock), their aliases, and
//! [`Condvar`](crate::Condvar). A lock's class is the source line on which it was made, or its
//! [name](crate::lock::Lock::named). Reports go to standard error.
//!
//! The functions are those of crate [`overlock_lockdep`], which has a page on each of them. With
//! the feature `lockdep_raw` alone, the types do not call them.
#![cfg_attr(feature = "lockdep", doc = "```standalone_crate")]
#![cfg_attr(not(feature = "lockdep"), doc = "```ignore")]
//! use overlock::{Mutex, lockdep};
//!
//! # lockdep::set_output(-1);
//! let (a, b) = (Mutex::new(0), Mutex::new(0));
//! {
//!     let _a = a.lock();
//!     let _b = b.lock();
//! }
//! assert_eq!(lockdep::reports(), 0);
//!
//! {
//!     let _b = b.lock();
//!     let _a = a.lock(); // reported; no second thread is needed
//! }
//! assert_eq!(lockdep::reports(), 1);
//! ```

pub use overlock_lockdep::*;
