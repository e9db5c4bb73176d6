//! Ring 3 of a monitor: the guest never leaves ring 3, and its requests are port writes (its I/O
//! privilege level is 3). The monitor sleeps in a futex for a halted vCPU.
//!
//! | port | 32 bits written | request |
//! |---|---|---|
//! | [`HALT`] | microseconds, 0 for no limit | sleep until a kick; one that came before ends it |
//! | [`KICK`] | number of a vCPU | end its sleep, or its next |
//! | [`PUT`] | address of a [`Line`] | print it |
//! | [`DONE`] | exit code | end the guest |

use core::sync::atomic::{AtomicU32, AtomicU64};

use overlock_core::{Instant, Platform};

use crate::platform::Guest;
use crate::x86::outl;

pub const HALT: u16 = 0x500;
pub const KICK: u16 = 0x504;
pub const PUT: u16 = 0x508;
/// Ends the guest.
pub const DONE: u16 = 0x50c;

/// The boot block: the monitor fills it before it starts a vCPU. The image's ELF note says where it
/// is.
#[derive(Debug)]
#[repr(C)]
pub struct Boot {
    /// The number of vCPUs, all of which start.
    pub vcpus: AtomicU64,
    /// The CPUs that they run on.
    pub cpus: AtomicU64,
    /// The frequency of the time-stamp counter.
    pub tsc_khz: AtomicU64,
    /// The length of the boot line.
    pub line_length: AtomicU64,
}

/// Text for [`PUT`].
#[derive(Debug)]
#[repr(C)]
pub struct Line {
    length: AtomicU32,
    address: AtomicU32,
}

pub(crate) fn sleep(until: Option<Instant>) {
    let micros = until.map_or(0, |until| {
        let nanos = until.nanos_since(Guest::now());
        nanos.div_ceil(1_000).clamp(1, u32::MAX.into()) as u32
    });
    // SAFETY: in ring 3 the monitor takes this port.
    unsafe { outl(HALT, micros) };
}

pub(crate) fn kick(vcpu: usize) {
    // SAFETY: as in `sleep`.
    unsafe { outl(KICK, vcpu as u32) };
}

/// Prints text, which lies below 4 GiB as the whole image does.
pub fn put(text: &str) {
    let line = Line {
        length: AtomicU32::new(text.len() as u32),
        address: AtomicU32::new(text.as_ptr().expose_provenance() as u32),
    };
    // SAFETY: as in `sleep`. The monitor reads the line and the text before the write returns.
    unsafe { outl(PUT, core::ptr::from_ref(&line).expose_provenance() as u32) };
}

/// Ends the guest.
pub fn done(code: u32) -> ! {
    loop {
        // SAFETY: as in `sleep`.
        unsafe { outl(DONE, code) };
    }
}
