//! Threads of a Linux process as the platform of the locks of [`overlock_core`]: see [`Linux`].
//!
//! Programs use crate `overlock`. The platform is a crate of its own because the validator of lock
//! order, `overlock-lockdep`, runs on it too.
#![deny(missing_docs)]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "overlock works on Linux only. For other systems take the locks of crate overlock-core, and \
     implement its trait Platform."
);

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub use linux::{__private, Linux};
