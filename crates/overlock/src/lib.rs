//! Locks that stay fast when there are more threads than CPUs.
//!
//! A spinlock collapses as soon as its holder loses its CPU; a mutex pays a wake-up for each change of owner.
//! [`SpinLock`] does neither: its waiters spin only while that is worth it, then sleep; those that run
//! pass those that sleep, up to a bound; and unlocking is one plain store.
//!
//! ```
//! use overlock::SpinLock;
//!
//! let queue = SpinLock::new(Vec::new());
//! std::thread::scope(|scope| {
//!     for i in 0..16 {
//!         let queue = &queue;
//!         scope.spawn(move || queue.lock().push(i));
//!     }
//! });
//! assert_eq!(queue.lock().len(), 16);
//! ```
//!
//! The whole family of the kernel's spinlocks is in [`spin`]. The locks themselves are in
//! [`overlock_core`], written once for every platform; [`Linux`] is the one here.
//!
//! # Features
//!
//! - `lock_api` (default), `lock_api_04`: the `RawMutex` traits of lock_api 0.5 and 0.4 for every lock.
//! - `stat`: counters and latency histograms ([`stat`]).
//! - `checked`: misuse that is otherwise silent panics, as it does in debug builds.
#![cfg(target_os = "linux")]

mod linux;
pub mod spin;
mod spin_lock;

pub use linux::Linux;
pub use overlock_core::{self as core, Instant, stat};
pub use spin_lock::{SpinLock, SpinLockGuard};
