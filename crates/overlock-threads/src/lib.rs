//! Threads of a process as the platform of the locks of [`overlock_core`], on systems other than
//! Linux: see [`Threads`].
//!
//! Programs use crate `overlock`, which picks the platform of the system that it is built for.
#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod address;
mod barrier;
mod clock;
#[cfg(feature = "family")]
mod family;
mod slot;
mod threads;

pub use threads::Threads;

/// The examples of the crate's page are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
