//! The image: a guest that measures and tests the locks of overlock-core on its vCPUs.
//!
//! One file serves all hypervisors: QEMU's `-kernel` finds the PVH entry, Xen that of a paravirtual
//! guest, and the monitor of `overlock-vm` the entry in ring 3. The boot line is that of
//! [`options`].
//!
//! [`options`]: overlock_guest::options
#![no_std]
#![no_main]

mod bench;
mod boot;
mod console;
mod coordinator;
mod events;
mod registry;
mod shared;
mod subject;
mod torture;

use core::panic::PanicInfo;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    console::say!("{{\"end\":\"failed\",\"why\":\"{}\"}}", Quoted(info));
    boot::end(1)
}

/// Text for a JSON string: without quotes, backslashes and line ends.
struct Quoted<T>(T);

impl<T: core::fmt::Display> core::fmt::Display for Quoted<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        struct Filter<'a, 'b>(&'a mut core::fmt::Formatter<'b>);
        impl core::fmt::Write for Filter<'_, '_> {
            fn write_char(&mut self, c: char) -> core::fmt::Result {
                core::fmt::Write::write_char(
                    self.0,
                    if matches!(c, '"' | '\\' | '\n') {
                        ' '
                    } else {
                        c
                    },
                )
            }
            fn write_str(&mut self, text: &str) -> core::fmt::Result {
                text.chars().try_for_each(|c| self.write_char(c))
            }
        }
        core::fmt::Write::write_fmt(&mut Filter(f), format_args!("{}", self.0))
    }
}
