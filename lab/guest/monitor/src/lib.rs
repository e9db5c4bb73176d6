//! A monitor for overlock's guest image, `lab/guest/image`.
//!
//! Each vCPU is a thread of this process, and runs in ring 3 with I/O privilege level 3. The guest
//! has no ring 0, and takes no interrupts: its requests are port writes. A halted vCPU sleeps in a
//! futex of the host, and a kick wakes it. So the host's scheduler shares its CPUs among the vCPUs,
//! as it does under any KVM guest. A KVM that emulates ring 0 runs this guest at full speed.
//!
//! | module | contents |
//! |---|---|
//! | [`image`] | the image: what is loaded, and the note that says where vCPUs begin |
//! | [`monitor`] | the monitor: [`monitor::run`] |
//! | [`speed`] | whether this KVM executes ring 0 or emulates it |
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

pub mod image;
pub mod monitor;
mod ports;
pub mod speed;
mod vcpu;
