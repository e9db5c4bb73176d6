//! Locks that stay fast when there are more threads (or vCPUs) than CPUs.
//!
//! Each lock is written here once, against one small trait, [`Platform`]: its atomics, the way to
//! wait, to halt and to kick. On Linux a thread plays the vCPU
//! and the operating system the hypervisor; a model checker, a simulator and a kernel bring their
//! own. This crate is `no_std` and allocates nothing. It has the recommended locks, and what the
//! locks of other crates share with them: the kernel's family is in `overlock_family`. Programs use
//! the crate `overlock`, which binds the locks to Linux threads.
//!
//! | module | what is there |
//! |---|---|
//! | [`sleep`] | the mutex, the condition variable, and all else whose waiters sleep |
//! | [`rw`] | reader-writer locks |
//! | [`platform`] | the door to the machine |
//! | [`node`] | queue nodes, in the slot of each thread |
//! | [`tables`] | the slots of all threads |
//! | [`fork`] | what a child of fork does about the threads that it does not have |
//! | [`raw`] | the traits that all locks share |
//! | [`facts`] | what a lock promises, one row a lock |
//! | [`stat`] | counters and latency histograms |
#![no_std]
#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(test, feature = "toy"))]
extern crate std;

pub mod facts;
pub mod fork;
#[doc(hidden)]
pub mod links;
#[cfg(feature = "lock_api")]
pub mod lock_api;
pub mod node;
pub mod platform;
pub mod raw;
pub mod rw;
pub mod sleep;
mod slot;
pub mod stat;
pub mod tables;
#[cfg(any(test, feature = "toy"))]
pub mod toy;

pub use platform::{Atomics, Cpu, Deadline, FutexPlatform, Instant, Platform, Spin};

/// The examples of the crate's page are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
