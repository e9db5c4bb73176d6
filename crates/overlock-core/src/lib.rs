//! Locks that stay fast when there are more threads (or vCPUs) than CPUs.
//!
//! Each lock of the family is written here once, against one small trait, [`Platform`]:
//! its atomics, the way to wait, to halt and to kick. On Linux a thread plays the vCPU
//! and the operating system the hypervisor; a model checker, a simulator and a kernel bring their
//! own. This crate is `no_std` and allocates nothing. Programs use the crate `overlock`, which
//! binds the locks to Linux threads.
//!
//! | module | what is there |
//! |---|---|
//! | [`spin`] | the spinlocks, one file each |
//! | [`sleep`] | the locks whose waiters sleep |
//! | [`rw`] | reader-writer locks |
//! | [`platform`] | the door to the machine |
//! | [`node`] | per-thread queue nodes |
//! | [`tables`] | what locks keep outside of themselves |
//! | [`fork`] | what a child of fork does about the threads that it does not have |
//! | [`raw`] | the traits that all locks share |
//! | [`registry`] | the list of all locks |
//! | [`facts`] | what a lock promises, one row a lock |
//! | [`diagram`] | the locks' state diagrams as data |
//! | [`stat`] | counters and latency histograms |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(test, feature = "toy"))]
extern crate std;

pub mod diagram;
pub mod facts;
pub mod fork;
mod links;
#[cfg(feature = "lock_api")]
pub mod lock_api;
#[cfg(feature = "lock_api_04")]
mod lock_api_04;
pub mod node;
pub mod platform;
pub mod raw;
pub mod registry;
pub mod rw;
pub mod sleep;
mod slot;
pub mod spin;
pub mod stat;
pub mod tables;
#[cfg(any(test, feature = "toy"))]
pub mod toy;

pub use platform::{Atomics, ConstPlatform, Cpu, Deadline, Instant, Platform, Spin};
