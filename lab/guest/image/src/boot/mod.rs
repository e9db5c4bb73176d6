//! How the image starts, a module for each hypervisor, and how it ends.

pub mod pvh;
mod ring3;
mod xen;

use core::cell::UnsafeCell;
use core::fmt::Display;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use overlock_guest::backend::{self, Backend};
use overlock_guest::options::Options;
use overlock_guest::vcpu::{self, MAX_VCPUS};

use crate::console::say;

/// Bytes of a stack. `pvh.rs` and `ring3.rs` compute with it.
const STACK: usize = 1 << 15;

/// The stacks of all vCPUs.
#[repr(C, align(4096))]
struct Stacks(UnsafeCell<[[u8; STACK]; MAX_VCPUS]>);

// SAFETY: each vCPU uses its own, as its stack.
unsafe impl Sync for Stacks {}

#[unsafe(export_name = "stacks")]
static STACKS: Stacks = Stacks(UnsafeCell::new([[0; STACK]; MAX_VCPUS]));

/// The boot line, kept where no boot code can write.
struct BootLine {
    bytes: UnsafeCell<[u8; 1024]>,
    length: AtomicUsize,
}

// SAFETY: the first vCPU writes it, once, before it starts the others.
unsafe impl Sync for BootLine {}

#[unsafe(export_name = "boot_line")]
static LINE: BootLine = BootLine {
    bytes: UnsafeCell::new([0; 1024]),
    length: AtomicUsize::new(0),
};

/// Copies the boot line, which ends with a zero byte.
///
/// # Safety
///
/// It does end, and no other vCPU runs.
unsafe fn copy_line(mut from: *const u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = &mut *LINE.bytes.get();
        for place in bytes.iter_mut() {
            if from.is_null() || *from == 0 {
                break;
            }
            *place = *from;
            from = from.add(1);
            LINE.length.fetch_add(1, Relaxed);
        }
    }
}

/// The options of the boot line. Ends the guest if they are wrong.
fn options() -> Options<'static> {
    // SAFETY: written before, and not again.
    let bytes = unsafe { &(&*LINE.bytes.get())[..LINE.length.load(Relaxed)] };
    let line = str::from_utf8(bytes).unwrap_or("?=?");
    let options = Options::parse(line).unwrap_or_else(|wrong| refuse(wrong));
    let most = match backend::chosen() {
        Backend::Xen => overlock_guest::xen::MAX_VCPUS,
        Backend::Kvm | Backend::Ring3 => MAX_VCPUS,
    };
    if options.vcpus() > most {
        refuse(format_args!("more than {} vCPUs", most - 1));
    }
    vcpu::set_parallelism(options.cpus);
    if !options.preempted {
        backend::ignore_preemption();
    }
    options
}

/// Ends the guest, since its boot line is wrong.
fn refuse(why: impl Display) -> ! {
    say!("{{\"end\":\"failed\",\"why\":\"{}\"}}", crate::Quoted(why));
    end(2)
}

/// Ends the guest.
pub fn end(code: u32) -> ! {
    match backend::chosen() {
        Backend::Kvm => pvh::end(code),
        Backend::Xen => overlock_guest::xen::shut_down(),
        Backend::Ring3 => overlock_guest::ring3::done(code),
    }
}
