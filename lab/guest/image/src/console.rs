//! The console: lines of text, whole.

use core::fmt::{self, Write};

use overlock_guest::backend::{self, Backend};
use overlock_guest::{ring3, x86, xen};

/// The first serial port of a PC.
const COM1: u16 = 0x3f8;
const LINE_STATUS: u16 = COM1 + 5;
const TRANSMITTER_EMPTY: u8 = 1 << 5;

/// Bytes of the longest line: a round of [`MAX_VCPUS`](overlock_guest::vcpu::MAX_VCPUS) vCPUs.
const LONGEST: usize = 2048;

/// A line as it comes together. The part that does not fit is cut off.
struct Line {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.length..];
        let length = text.floor_char_boundary(room.len());
        room[..length].copy_from_slice(&text.as_bytes()[..length]);
        self.length += length;
        Ok(())
    }
}

pub fn print(line: fmt::Arguments<'_>) {
    let mut text = Line {
        bytes: [0; LONGEST],
        length: 0,
    };
    let _ = text.write_fmt(line);
    let _ = text.write_str("\n");
    put(str::from_utf8(&text.bytes[..text.length]).unwrap_or_default());
}

fn put(text: &str) {
    match backend::chosen() {
        Backend::Kvm => text.bytes().for_each(send),
        Backend::Xen => xen::put(text),
        Backend::Ring3 => ring3::put(text),
    }
}

fn send(byte: u8) {
    // SAFETY: in ring 0 the serial port takes bytes, one after another.
    unsafe {
        while x86::inb(LINE_STATUS) & TRANSMITTER_EMPTY == 0 {
            core::hint::spin_loop();
        }
        x86::outb(COM1, byte);
    }
}

/// Prints a line, in the form of `println!`.
macro_rules! say {
    ($($format:tt)*) => { $crate::console::print(format_args!($($format)*)) };
}
pub(crate) use say;
