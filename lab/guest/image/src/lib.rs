//! Guests as a platform of overlock-core: a vCPU is a slot, the hypervisor halts and kicks it.
//!
//! | module | contents |
//! |---|---|
//! | [`platform`] | [`Guest`], the platform |
//! | [`vcpu`] | per-vCPU state, and the protocol of halt and kick |
//! | [`publication`] | its core: how a kicker finds a halted vCPU |
//! | [`backend`] | the back end chosen at boot: [`kvm`], [`xen`] or [`ring3`] |
//! | [`clock`] | the paravirtual clock, or the time-stamp counter |
//! | [`interrupts`] | interrupts off and on, and a lock that holds them off |
//! | [`options`] | the boot line of the image |
//! | [`x86`] | the processor's instructions |
#![cfg_attr(not(test), no_std)]

pub mod backend;
pub mod clock;
pub mod interrupts;
pub mod kvm;
pub mod options;
pub mod platform;
pub mod publication;
pub mod ring3;
pub mod vcpu;
pub mod x86;
pub mod xen;

pub use platform::Guest;

/// The atomics of [`publication`], whose tests have others.
mod sync {
    pub(crate) use core::sync::atomic::{AtomicUsize, Ordering, fence};
}
