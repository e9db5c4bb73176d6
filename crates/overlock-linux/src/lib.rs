//! Threads of a Linux process as the platform of the locks of [`overlock_core`]: see [`Linux`].
//!
//! Programs use crate `overlock`. The platform is a crate of its own because the validator of lock
//! order, `overlock-lockdep`, runs on it too.
#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(not(any(target_os = "linux", target_os = "android")))]
compile_error!(
    "overlock-linux works on Linux and Android only. Crate overlock takes overlock-threads on other \
     systems. Its features `stat`, `lockdep` and `deadlock_detection` are for Linux: name them under \
     [target.'cfg(target_os = \"linux\")'.dependencies]"
);

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub use linux::{__private, Linux};

/// The examples of the crate's page are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
