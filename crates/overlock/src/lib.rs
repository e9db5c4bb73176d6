//! Locks that stay fast when there are more threads than CPUs.
#![cfg(target_os = "linux")]

mod linux;

pub use linux::Linux;
pub use overlock_core::{self as core, Instant};
