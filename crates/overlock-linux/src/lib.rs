//! Threads of a Linux process as the platform of the locks of [`overlock_core`]: see [`Linux`].
//!
//! Crate `overlock` is what programs use. This one is apart because the validator of lock order,
//! `overlock-lockdep`, runs on it too.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "overlock works on Linux only. For other systems take the locks of crate overlock-core, and \
     implement its trait Platform."
);

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub use linux::{__private, Linux};
