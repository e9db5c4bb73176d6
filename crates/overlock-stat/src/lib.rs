//! Statistics of locks, recorded in a [table](overlock_shared) that a file shares with its reader:
//! what all libraries of locks share.
//!
//! The drop-in counts pthread's locks by it. Programs that use crate overlock or liboverlock count
//! their own [locks](lock), by name, and read the [figures](report()) themselves.
//!
//! A thread finds the [`Spot`] of an acquisition, which
//! is an entry of the table, before the acquisition. A [`Wait`] is recorded with its length and
//! with the owner that it found. A recorded acquisition is a [flight], which begins at the
//! acquisition and ends at the release. All slow work happens after the release, where it delays no
//! waiter.
//!
//! Nothing here allocates, and nothing of the C library's that locks is called: it may run inside
//! of an allocator, and in a signal handler.
//!
//! Callers are known on x86-64 and AArch64, and there is a table where a word has 64 bits.
#![cfg(target_os = "linux")]

mod call;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod cfi;
pub mod clock;
mod deferred;
pub mod figures;
pub mod flight;
pub mod lock;
pub mod mode;
mod modules;
pub mod objects;
mod places;
pub mod record;
pub mod report;
pub mod sampling;
pub mod single;
pub mod spot;
mod stacks;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod steps;
pub mod table;
pub mod threads;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod unmarked;
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    path = "unwind/none.rs"
)]
pub mod unwind;
mod wait;
mod walked;

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub use overlock_shared::ObjectKind;
pub use report::report;
pub use spot::{Spot, Where};
pub use wait::{Over, Wait};

/// A call site: a return address.
pub type Site = usize;

/// Whether the process has taken a lock that is counted.
static USED: AtomicBool = AtomicBool::new(false);

/// See [`takes_lock`].
#[inline]
pub fn is_used() -> bool {
    USED.load(Relaxed)
}

/// The process takes a lock that is counted. Returns whether that is the first; the table says so
/// from then on.
#[inline]
pub fn takes_lock() -> bool {
    let is_first = !is_used();
    if is_first {
        USED.store(true, Relaxed);
        table::show_use();
    }
    is_first
}

/// The examples of the crate's page are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
