//! The Linux kernel's lock family, each lock written once against the trait
//! [`Platform`](overlock_core::Platform) of [`overlock_core`].
//!
//! These are the published algorithms, and the locks that they are held against. Programs want the
//! recommended locks of crate `overlock`; kernels, hypervisors, and people who choose or study
//! locks want these. The head of each file says where its lock was published, how it works, and why
//! no wake-up is lost.
//!
//! | module | what is there |
//! |---|---|
//! | [`spin`] | the spinlocks, from ticket to hybrid |
//! | [`sleep`] | the kernel's mutex, its queue of spinners, and its reader-writer semaphore |
//! | [`rw`] | the queued reader-writer spinlock |
//! | [`tables`] | what some of them keep outside of themselves: [`FamilyPlatform`] |
//! | [`fork`] | what a child of fork does about the threads that it does not have |
//! | [`registry`] | the lists of all locks |
#![no_std]
#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate std;

pub mod fork;
#[cfg(feature = "lock_api")]
mod lock_api;
pub mod registry;
pub mod rw;
pub mod sleep;
pub mod spin;
pub mod tables;
#[cfg(test)]
mod toy;

pub use tables::FamilyPlatform;

/// The examples of the crate's page are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
